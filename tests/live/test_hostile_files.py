# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that would cost who reads them gigabytes or minutes: they cost neither, and no command ends by a signal."""

import os
import sqlite3
import subprocess

import pytest

import hostile_files
from support import BUILD

# Of all processes of a command; it takes some thirty megabytes for a file that means no harm.
MOST_MB = 300
# Of the processor, not of the clock.
MOST_SECONDS = 20


@pytest.fixture
def bounded(allocprof, tmp_path):
    """Runs a command within the bounds; its output and errors as text."""
    def bounded_run(*arguments):
        with open(tmp_path / "output", "w+b") as output:
            process = subprocess.Popen([allocprof, *arguments], stdin=subprocess.DEVNULL, stdout=output,
                                       stderr=subprocess.STDOUT, cwd=tmp_path)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            output.seek(0)
            text = output.read().decode(errors="replace")
        assert process.returncode >= 0, f"ended by signal {-process.returncode}: {text}"
        megabytes, seconds = usage.ru_maxrss / 1024, usage.ru_utime + usage.ru_stime
        print(f"{megabytes:.0f} MB, {seconds:.1f} s, status {process.returncode}: {text[:200]}")
        assert megabytes < MOST_MB and seconds < MOST_SECONDS, text
        return text
    return bounded_run


@pytest.mark.fast("overlapping_code", "notes_in_segments")
@pytest.mark.parametrize("name", hostile_files.CODE)
def test_code(bounded, tmp_path, name):
    path = tmp_path / "file.so"
    hostile_files.CODE[name](path)
    assert "file.so" in bounded("doctor", path)


def test_search_for_libraries(bounded, tmp_path):
    """In directories whose names become too long with the library's, each counts as one that was looked into."""
    hostile_files.many_directories(tmp_path / "program")
    bounded("doctor", tmp_path / "program")
    bounded("stat", "--", tmp_path / "program")


def write_data(path, module):
    """A recording in whose module there are no names yet."""
    subprocess.run([BUILD / "tests" / "golden" / "write_fixture", path], check=True)
    with sqlite3.connect(path) as database:
        database.execute("DELETE FROM lines")
        database.execute("UPDATE modules SET build_id = '', path = ? WHERE id = 1", (str(module),))
        database.execute("UPDATE frames SET offset = 4096 + 8 * id WHERE module = 1")
    database.close()


@pytest.mark.fast("unpacks_to_gigabytes", "split_unit")
@pytest.mark.parametrize("name", hostile_files.NAMES)
def test_names(bounded, tmp_path, name):
    path = tmp_path / "file.so"
    hostile_files.NAMES[name](path)
    write_data(tmp_path / "data", path)
    bounded("symbolize", "-i", "data")
    assert "malloc" in bounded("report", "-i", "data", "--raw-stacks")


def test_bounds_are_for_hostile_files_only(bounded, tmp_path):
    """Compressed DWARF of a compiler is read."""
    path = tmp_path / "file.so"
    subprocess.run(["gcc", "-x", "c", "-", "-g", "-gz", "-shared", "-fPIC", "-nostdlib", "-Wl,-Ttext=0x1000,--build-id=none",
                    "-o", path],
                   input="int work(int n)\n{\n\treturn " + "+".join(["n"] * 4000) + ";\n}\n", text=True, check=True)
    write_data(tmp_path / "data", path)
    bounded("symbolize", "-i", "data")
    assert "work" in bounded("report", "-i", "data", "--raw-stacks")


@pytest.mark.fast("many_frames")
@pytest.mark.parametrize("name", hostile_files.DATA)
def test_data(bounded, tmp_path, name):
    """Recordings that say much in few bytes."""
    subprocess.run([BUILD / "tests" / "golden" / "write_fixture", tmp_path / "data"], check=True)
    with sqlite3.connect(tmp_path / "data") as database:
        hostile_files.DATA[name](database)
    database.close()
    bounded("report", "-i", "data", "--top=0")


def test_lines_for_blocks_that_there_are_not(bounded, tmp_path):
    """A format with a line for each block takes no number of blocks for granted."""
    subprocess.run([BUILD / "tests" / "golden" / "write_fixture", tmp_path / "data"], check=True)
    with sqlite3.connect(tmp_path / "data") as database:
        assert database.execute("UPDATE blocks SET allocations = allocations + (1 << 40)").rowcount > 0
    database.close()
    text = bounded("export", "-i", "data", "--format=heaptrack", "-o", "out.gz")
    assert "cannot export 1099511627808 blocks for heaptrack" in text, text
    assert not (tmp_path / "out.gz").exists()
    assert "cannot" not in bounded("export", "-i", "data", "--format=dhat", "-o", "out.json")


DAMAGES = {
    "blocks": ("UPDATE blocks SET bytes = bytes * 1000", 1, "blocks of this data file do not add up"),
    "more blocks than calls": ("UPDATE blocks SET allocations = allocations + 1000000", 1,
                               "blocks of this data file do not add up"),
    "more failed calls": ("UPDATE blocks SET failed = failed + (1 << 40)", 1, "blocks of this data file do not add up"),
    "peak": ("UPDATE blocks SET peak = allocations + 1", 1, "blocks of this data file do not add up"),
    "bytes of the peak": ("UPDATE blocks SET peak_bytes = bytes + 1", 1, "blocks of this data file do not add up"),
    "lifetimes of blocks": ("UPDATE lifetime_histogram SET blocks = blocks + (1 << 40)", 1,
                            "blocks of this data file do not add up"),
    "bytes by epochs": ("UPDATE lifetimes SET bytes = bytes + (1 << 50)", 1, "blocks of this data file do not add up"),
    "live blocks by epochs": ("UPDATE lifetimes SET died = NULL", 1, "blocks of this data file do not add up"),
    "a number in letters": ("INSERT INTO meta VALUES('sample_bytes', '0x')", 2, "is damaged"),
    "no lifetimes": ("DELETE FROM lifetimes", 1, "blocks of this data file do not add up"),
    "epochs in words": ("UPDATE meta SET value = '1e5' WHERE key = 'epoch_ns'", 2, "is damaged"),
    "no sum of losses": ("DELETE FROM ledger WHERE name = 'lost'", 1, "ledger of this data file does not add up"),
    "no ledger": ("DELETE FROM ledger", 1, "ledger of this data file does not add up"),
    "bytes in a name": ("UPDATE ledger SET name = CAST(x'6ced' AS TEXT) WHERE name = 'lost'", 2, "is damaged"),
    "more calls": ("UPDATE counts SET calls = calls + 1", 1, "ledger of this data file does not add up"),
}


@pytest.mark.fast("report-blocks")
@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("command", (["report"], ["folded"], ["export", "-o", "out"], ["graph", "-o", "out.svg"]),
                         ids=lambda words: words[0])
def test_damaged_figures(run, allocprof, tmp_path, damage, command):
    """Each command says that figures contradict each other, and its status does."""
    sql, status, message = DAMAGES[damage]
    data = tmp_path / "data"
    subprocess.run([BUILD / "tests" / "golden" / "write_fixture", data], check=True)
    arguments = [allocprof, command[0], "-i", data, *command[1:]]
    sound = run(arguments, cwd=tmp_path, expect=0)
    assert b"add up" not in sound.stderr
    with sqlite3.connect(data) as database:
        assert database.execute(sql).rowcount > 0
    database.close()
    damaged = run(arguments, cwd=tmp_path, expect=status)
    assert message.encode() in damaged.stderr


NOBODY = 65534


@pytest.fixture
def links(public_directory):
    """A directory for all, as /tmp is, with another user's link and file in it, and a file of ours elsewhere."""
    shared = public_directory / "shared"
    shared.mkdir()
    os.chmod(shared, 0o1777)
    own = public_directory / "own"
    own.write_text("kept")
    (shared / "link").symlink_to(own)
    (shared / "file").write_text("kept")
    for name in ("link", "file"):
        os.chown(shared / name, NOBODY, NOBODY, follow_symlinks=False)
    (shared / "ours").symlink_to(own)
    return shared


@pytest.mark.skipif(os.geteuid() != 0, reason="needs files of another user")
@pytest.mark.fast("link")
@pytest.mark.parametrize("name", ("link", "file"))
def test_output_through_what_others_made(run, allocprof, links, tmp_path, name):
    subprocess.run([BUILD / "tests" / "golden" / "write_fixture", tmp_path / "data"], check=True)
    result = run([allocprof, "folded", "-i", tmp_path / "data", "-o", links / name], expect=2)
    assert b"cannot write" in result.stderr
    assert (links / name).read_text() == "kept"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a FIFO of another user")
@pytest.mark.parametrize("is_read", (False, True), ids=["waits", "is_read"])
def test_output_into_another_user_s_fifo(run, allocprof, links, tmp_path, is_read):
    """Nobody is waited for, and nobody gets what is in the data file."""
    subprocess.run([BUILD / "tests" / "golden" / "write_fixture", tmp_path / "data"], check=True)
    os.mkfifo(links / "fifo")
    os.chown(links / "fifo", NOBODY, NOBODY)
    reader = os.open(links / "fifo", os.O_RDONLY | os.O_NONBLOCK) if is_read else -1
    result = run([allocprof, "folded", "-i", tmp_path / "data", "-o", links / "fifo"], expect=2)
    assert b"cannot write" in result.stderr
    if is_read:
        assert os.read(reader, 1) == b""
        os.close(reader)


def test_output_into_own_fifo(run, runner, allocprof, links, tmp_path):
    subprocess.run([BUILD / "tests" / "golden" / "write_fixture", tmp_path / "data"], check=True)
    os.mkfifo(links / "fifo")
    writer = runner.start([allocprof, "folded", "-i", tmp_path / "data", "-o", links / "fifo"])
    assert b";malloc " in (links / "fifo").read_bytes()
    assert writer.wait() == 0


@pytest.mark.parametrize("name", ("ours", "/dev/stdout", "/proc/self/fd/1"))
def test_output_through_own_links(run, allocprof, links, tmp_path, name):
    subprocess.run([BUILD / "tests" / "golden" / "write_fixture", tmp_path / "data"], check=True)
    result = run([allocprof, "folded", "-i", tmp_path / "data", "-o", links / name], expect=0)
    text = result.stdout if name.startswith("/") else (links / name).read_bytes()
    assert b";malloc " in text


def test_archive_has_relative_names(run, allocprof, tmp_path):
    """Also where a data file has a path with two slashes."""
    hostile_files.ElfFile().write(tmp_path / "file")
    write_data(tmp_path / "data", "/" + str(tmp_path / "file"))
    run([allocprof, "archive", "-i", "data", "-o", "out.tar.gz"], cwd=tmp_path)
    names = subprocess.run(["tar", "-tzPf", "out.tar.gz"], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert str(tmp_path / "file")[1:] in names.stdout.splitlines()
