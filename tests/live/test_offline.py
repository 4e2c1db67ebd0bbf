# SPDX-License-Identifier: GPL-3.0-or-later
"""Names that are looked up later, or on another machine, are those of a recording that looked them up
at once."""

import contextlib
import pathlib
import shutil
import sqlite3
import subprocess

import pytest

import support

EXIT_STATUS = 3  # every_function's


def folded(run, allocprof, data):
    return run([allocprof, "folded", "-i", data, "--lines"], expect=0).stdout


@pytest.fixture
def recorded(run, allocprof, tmp_path):
    """A program in a place of its own, and its stacks as a recording with names has them."""
    program = tmp_path / "bin" / "every_function"
    program.parent.mkdir()
    shutil.copy(support.target("every_function"), program)
    run([allocprof, "record", "-o", tmp_path / "named", "--", program],
        expect=EXIT_STATUS)
    run([allocprof, "record", "--no-symbols", "-o", tmp_path / "data", "--", program],
        expect=EXIT_STATUS)
    return program, folded(run, allocprof, tmp_path / "named")


def test_without_symbols_there_are_addresses(run, allocprof, tmp_path, recorded):
    lines = folded(run, allocprof, tmp_path / "data").decode().splitlines()
    frames = [frame for line in lines for frame in line.split(";")[1:-1]]
    assert frames and all("[" in frame and "+0x" in frame for frame in frames), \
        f"names in spite of --no-symbols: {lines}"


def test_later(run, allocprof, tmp_path, recorded):
    _, named = recorded
    run([allocprof, "symbolize", "-i", tmp_path / "data"], expect=0)
    assert folded(run, allocprof, tmp_path / "data") == named
    assert (tmp_path / "data.old").exists()


def contents(data):
    with contextlib.closing(sqlite3.connect(data)) as database:
        return list(database.iterdump())


@pytest.mark.fast("named")
@pytest.mark.parametrize("options", [[], ["--no-symbols"]], ids=["named", "no-symbols"])
def test_again_changes_nothing(run, allocprof, tmp_path, options):
    """Of a program whose names are mangled."""
    data = tmp_path / "data"
    run([allocprof, "record", *options, "-o", data, "--", support.target("throw")], expect=6)
    run([allocprof, "symbolize", "-i", data], expect=0)
    once = contents(data)
    assert any("'std::vector<char>::vector'" in line for line in once), "no C++ function has its name"
    for _ in range(2):
        run([allocprof, "symbolize", "-i", data], expect=0)
        run([allocprof, "report", "-i", data], expect=0)
        assert contents(data) == once


def assert_named_elsewhere(run, allocprof, directory, gone, named, debug_dir=None):
    """On a machine that has none of the files @gone an archive of directory/data makes its stacks those that are @named."""
    data, symbols = directory / "data", directory / "symbols"
    run([allocprof, "archive", "-i", data, *(["--debug-dir", debug_dir] if debug_dir else [])], expect=0)
    for path in gone:
        path.unlink()
    symbols.mkdir()
    subprocess.run(["tar", "-C", symbols, "-xf", directory / "data.tar.gz"], check=True)
    assert (symbols / "data").read_bytes() == data.read_bytes()
    run([allocprof, "symbolize", "-i", data, "-o", directory / "without"], expect=0)
    assert folded(run, allocprof, directory / "without") != named
    run([allocprof, "symbolize", "-i", data, "--debug-dir", symbols], expect=0)
    assert folded(run, allocprof, data) == named


def test_elsewhere(run, allocprof, tmp_path, recorded):
    """The machine that names are looked up on does not have the program."""
    program, named = recorded
    assert_named_elsewhere(run, allocprof, tmp_path, [program], named)


@pytest.mark.parametrize("where", ["program", "debug-file"])
def test_elsewhere_with_a_common_file(run, allocprof, tmp_path, recorded, where):
    """dwz has moved what the program and another one have in common to a file of its own, which is no program: out of the
    program itself, or out of its debug file. Without it there are no lines."""
    program, named = recorded
    debug, common = tmp_path / "debug" / "every_function.debug", tmp_path / "common.debug"
    debug.parent.mkdir()
    shrunk = program
    if where == "debug-file":
        subprocess.run(["objcopy", "--only-keep-debug", program, debug], check=True)
        subprocess.run(["strip", program], check=True)
        shrunk = debug
    subprocess.run(["dwz", "-m", common, "-M", common, shrunk, shutil.copy(shrunk, tmp_path / "second")], check=True)
    common_id = support.build_id(common)
    assert_named_elsewhere(run, allocprof, tmp_path, {program, shrunk, common}, named, debug.parent)
    packed = tmp_path / "symbols" / ".build-id" / common_id[:2] / f"{common_id[2:]}.debug"
    packed.unlink()
    run([allocprof, "symbolize", "-i", tmp_path / "without", "--debug-dir", tmp_path / "symbols"], expect=0)
    assert folded(run, allocprof, tmp_path / "without") != named, "nothing was in the common file"


@pytest.mark.parametrize("without_id", ["debug-file", "program"])
def test_elsewhere_with_a_debug_file_known_by_its_checksum(run, allocprof, tmp_path, recorded, without_id):
    """.gnu_debuglink has the checksum of a file without a build id of its own; the program may have none either."""
    program, named = recorded
    debug = program.parent / "elsewhere.debug"
    if without_id == "program":
        subprocess.run(["objcopy", "--remove-section", ".note.gnu.build-id", program], check=True)
    subprocess.run(["objcopy", "--only-keep-debug", "--remove-section", ".note.gnu.build-id", program, debug], check=True)
    subprocess.run(["strip", program], check=True)
    subprocess.run(["objcopy", f"--add-gnu-debuglink={debug}", program], check=True)
    if without_id == "program":
        run([allocprof, "record", "--no-symbols", "-o", tmp_path / "data", "--", program], expect=EXIT_STATUS)
    assert_named_elsewhere(run, allocprof, tmp_path, [program, debug], named)


@pytest.mark.slow
def test_debug_file_that_comes_later(run, allocprof, tmp_path):
    """Stripped when it was recorded: names without lines, until the debug file is there."""
    program = tmp_path / "every_function"
    debug = tmp_path / "debug" / "every_function.debug"
    debug.parent.mkdir()
    shutil.copy(support.target("every_function"), program)
    run([allocprof, "record", "-o", tmp_path / "named", "--", program],
        expect=EXIT_STATUS)
    subprocess.run(["objcopy", "--only-keep-debug", program, debug], check=True)
    subprocess.run(["strip", program], check=True)
    run([allocprof, "record", "-o", tmp_path / "data", "--", program],
        expect=EXIT_STATUS)
    named = folded(run, allocprof, tmp_path / "named")
    assert folded(run, allocprof, tmp_path / "data") != named
    run([allocprof, "symbolize", "-i", tmp_path / "data", "--debug-dir", debug.parent], expect=0)
    assert folded(run, allocprof, tmp_path / "data") == named
    found = contents(tmp_path / "data")
    debug.unlink()
    run([allocprof, "symbolize", "-i", tmp_path / "data"], expect=0)
    assert contents(tmp_path / "data") == found, "what was known is forgotten without its source"


def test_another_file_is_refused(run, allocprof, tmp_path, recorded):
    """A newer build at the same path would give wrong names that look right."""
    program, _ = recorded
    before = folded(run, allocprof, tmp_path / "data")
    program.unlink()
    shutil.copy(support.target("threads"), program)
    done = run([allocprof, "symbolize", "-i", tmp_path / "data"], expect=0)
    assert b"is another file now: its build id is" in done.stderr, done.stderr
    own = [line for line in before.splitlines() if b"[every_function+" in line]
    assert own and all(b"[every_function+" in line for line in folded(
        run, allocprof, tmp_path / "data").splitlines() if line.startswith(b"every_function;"
                                                                            b"[every_function"))


@pytest.mark.slow
def test_archive_leaves_out_what_is_gone(run, allocprof, tmp_path, recorded):
    program, _ = recorded
    program.unlink()
    done = run([allocprof, "archive", "-i", tmp_path / "data", "-o", tmp_path / "a.tar.gz"],
               expect=0)
    assert b"left out: " in done.stderr and str(program).encode() in done.stderr, done.stderr
    names = subprocess.run(["tar", "-tf", tmp_path / "a.tar.gz"], capture_output=True, text=True,
                           check=True).stdout.splitlines()
    assert names[0] == "data" and names[1:] and all(name.startswith(".build-id/") for name in names[1:]), names


def test_archive_without_data(run, allocprof, tmp_path, recorded):
    run([allocprof, "archive", "--without-data", "-i", tmp_path / "data"], expect=0)
    names = subprocess.run(["tar", "-tf", tmp_path / "data.tar.gz"], capture_output=True, text=True, check=True).stdout
    assert names and "data" not in names.splitlines()


def test_flat_directory(run, allocprof, tmp_path, recorded):
    """Programs and debug files that somebody has copied into one directory, by their names."""
    program, named = recorded
    flat = tmp_path / "flat"
    flat.mkdir()
    program.rename(flat / program.name)
    program.write_bytes(b"another program")
    run([allocprof, "symbolize", "-i", tmp_path / "data", "-o", tmp_path / "without"], expect=0)
    assert folded(run, allocprof, tmp_path / "without") != named
    run([allocprof, "symbolize", "-i", tmp_path / "data", "--debug-dir", flat], expect=0)
    assert folded(run, allocprof, tmp_path / "data") == named


@pytest.mark.parametrize("words, sentence", [
    (["symbolize", "-i", "none"], "no such file none"),
    (["symbolize", "--debug-dir", "none"], "none is no directory"),
    (["archive", "-i", "none"], "no such file none"),
], ids=lambda value: value if isinstance(value, str) else "-".join(value))
def test_bad_input(run, allocprof, words, sentence):
    assert_refused(run([allocprof, *words]), sentence)


def test_archive_that_cannot_be_written(run, allocprof, tmp_path, recorded):
    assert_refused(run([allocprof, "archive", "-i", tmp_path / "data", "-o", "none/x"]),
                   "cannot write none/x: No such file or directory")


def assert_refused(done, sentence):
    assert done.status in (2, 64)
    assert sentence in done.stderr.decode(), done.stderr
    assert done.stderr.count(b"\n") == 1, done.stderr


@pytest.mark.parametrize("command", ["archive", "symbolize"])
def test_file_that_only_the_process_sees(run, allocprof, compiled, tmp_path, command):
    """The program is on a file system that is mounted in its mount namespace alone, as a container's is."""
    place = tmp_path / "place"
    place.mkdir()
    program = compiled("#include <stdlib.h>\n#include <unistd.h>\nint main(void) { for (;;) { free(malloc(9)); usleep(1000); } }")
    script = 'mount -t tmpfs none "$0" && cp "$1" "$0/only_there" && exec "$0/only_there"'
    with subprocess.Popen(["unshare", "-m", "--propagation", "private", "sh", "-c", script, place, program]) as process:
        try:
            comm = pathlib.Path(f"/proc/{process.pid}/comm")
            support.wait_until(lambda: comm.read_text() == "only_there\n", "the program runs")
            data = tmp_path / "data"
            run([allocprof, "record", "--no-symbols", "--duration", "1s", "-o", data, "-p", process.pid], expect=0)
            if command == "archive":
                result = run([allocprof, "archive", "-i", data, "-o", tmp_path / "x.tar.gz"], expect=0)
            else:
                result = run([allocprof, "symbolize", "-i", data], expect=0)
            assert b"only_there" not in result.stderr, result
        finally:
            process.kill()
    # When it has ended, what helps is named.
    result = run([allocprof, "archive", "-i", data, "-o", tmp_path / "y.tar.gz"], expect=0)
    assert b"only_there is not there any more; if it is a container's" in result.stderr and b"--debug-dir" in result.stderr


@pytest.mark.parametrize("how", ["zstd", "split"])
def test_debug_information_that_cannot_be_read(run, allocprof, compiled, tmp_path, how):
    """A sentence says why lines and inlined functions are missing, if they are: newer versions of elfutils unpack zstd."""
    source = """#include <stdlib.h>
static inline __attribute__((always_inline)) void *inlined(int n) { return malloc(n); }
__attribute__((noinline)) void *builds(int n) { void *p = inlined(n); __asm__("" ::: "memory"); return p; }
int main(void) { for (int i = 1; i < 100; i++) free(builds(i)); return 0; }"""
    flags = {"zstd": ["-g", "-Wl,--compress-debug-sections=zstd"], "split": ["-g", "-gsplit-dwarf"]}[how]
    program = compiled(source, *flags)
    for path in tmp_path.glob("*.dwo"):
        path.unlink()
    run([allocprof, "record", "-o", tmp_path / "data", "--", program], expect=0)
    told = run([allocprof, "report", "-i", tmp_path / "data"], expect=0).stderr.decode()
    stacks = folded(run, allocprof, tmp_path / "data").decode()
    if "inlined" in stacks:
        assert how == "zstd" and "names are missing" not in told
    else:
        assert f"names are missing: {program}" in told and "inlined functions and source lines may be missing" in told
        assert {"zstd": "zstd", "split": ".dwo"}[how] in told
        assert ("has the line of one that was inlined into it" in told) == (how == "split")
