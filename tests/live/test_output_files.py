# SPDX-License-Identifier: GPL-3.0-or-later
"""What -o names is written as people expect of it: a pipe into the pipe, a link into what it leads to; and nothing that was
read is lost."""

import os
import signal
import subprocess
import tarfile

import pytest

from conftest import unavailable
from support import Obedient


def record(run, allocprof, directory, name="p", *words):
    run([allocprof, "record", "-q", "--engine=preload", "--no-symbols", "-o", name, *words, "--", "ls", "/"], cwd=directory,
        expect=0)
    return directory / name


def assert_refused(done, *words):
    lines = done.stderr.decode().splitlines()
    assert done.status and len(lines) == 1, done
    for word in words:
        assert word in lines[0], done


def members(path):
    with tarfile.open(path) as archive:
        return archive.getnames()


def test_archive_into_pipe(run, allocprof, tmp_path):
    record(run, allocprof, tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with open(tmp_path / "read", "wb") as file:
        reader = subprocess.Popen(["cat", tmp_path / "pipe"], stdout=file)
    run([allocprof, "archive", "-i", "p", "-o", "pipe"], cwd=tmp_path, expect=0)
    assert reader.wait(timeout=60) == 0
    assert members(tmp_path / "read")
    assert (tmp_path / "pipe").is_fifo()


def test_archive_through_link_to_own_stdout(run, allocprof, tmp_path):
    record(run, allocprof, tmp_path)
    (tmp_path / "link").symlink_to("/proc/self/fd/1")
    done = run([allocprof, "archive", "-i", "p", "-o", "link"], cwd=tmp_path, expect=0)
    (tmp_path / "read").write_bytes(done.stdout)
    assert members(tmp_path / "read")
    assert (tmp_path / "link").is_symlink()


@pytest.mark.parametrize("is_there", [True, False])
def test_archive_through_link(run, allocprof, tmp_path, is_there):
    record(run, allocprof, tmp_path)
    (tmp_path / "there").mkdir()
    if is_there:
        (tmp_path / "there/file").write_text("old")
    (tmp_path / "link").symlink_to("there/file")
    run([allocprof, "archive", "-i", "p", "-o", "link"], cwd=tmp_path, expect=0)
    assert (tmp_path / "link").is_symlink()
    assert members(tmp_path / "there/file")
    assert os.listdir(tmp_path / "there") == ["file"]


def symbolize(run, allocprof, directory, output):
    return run([allocprof, "symbolize", "--no-debuginfod", "-i", "p", "-o", output], cwd=directory)


def record_again(run, allocprof, directory, output):
    return run([allocprof, "record", "-q", "--engine=preload", "-o", output, "--", "ls", "/"], cwd=directory)


@pytest.mark.parametrize("write", [symbolize, record_again])
def test_data_file_through_link(run, allocprof, tmp_path, write):
    record(run, allocprof, tmp_path)
    (tmp_path / "there").mkdir()
    (tmp_path / "there/file").write_text("old")
    (tmp_path / "link").symlink_to("there/file")
    assert write(run, allocprof, tmp_path, "link").status == 0
    assert (tmp_path / "link").is_symlink()
    assert sorted(os.listdir(tmp_path / "there")) == ["file", "file.old"]
    assert (tmp_path / "there/file.old").read_text() == "old"
    run([allocprof, "report", "link"], cwd=tmp_path, expect=0)


@pytest.mark.parametrize("write", [symbolize, record_again])
def test_data_file_is_no_stdout_and_no_pipe(run, allocprof, tmp_path, write):
    record(run, allocprof, tmp_path)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    (tmp_path / "stdout").symlink_to("/proc/self/fd/1")
    before = sorted(os.listdir(tmp_path))
    for name in ["pipe", "link", "stdout"]:
        assert_refused(write(run, allocprof, tmp_path, name), f"cannot write {name}: it is not a regular file", "-o")
    assert sorted(os.listdir(tmp_path)) == before
    assert (tmp_path / "link").is_symlink() and (tmp_path / "stdout").is_symlink()


def test_event_log_is_beside_the_data(run, allocprof, tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to("there/file")
    record(run, allocprof, tmp_path, "link", "--engine=uprobe", "--events")
    assert sorted(os.listdir(tmp_path / "there")) == ["file", "file.events"]
    for name in ["link", "there/file"]:
        done = run([allocprof, "export", "--format=events", "-i", name], cwd=tmp_path, expect=0)
        assert done.stdout


@pytest.fixture
def recorded(run, allocprof, tmp_path):
    """Files that commands read: data files p and b, p's event log, a budget, and lists."""
    record(run, allocprof, tmp_path, "p", "--engine=uprobe", "--events")
    record(run, allocprof, tmp_path, "b")
    (tmp_path / "budget").write_text('{"tests": {"t": {"command": ["true"], "total_allocations": {"max": 5}}}}')
    (tmp_path / "known").write_text("leak:nothing\n")
    (tmp_path / "wrappers").write_text("nothing\n")
    (tmp_path / "link").symlink_to("p.events")
    return tmp_path


@pytest.mark.parametrize("words", [
    "html p --base b -o b",
    "flamegraph p --base b -o b",
    "flamegraph p --base p -o p",
    "html b --base p -o p.events",
    "diff p b -o p",
    "diff b p -o p.events",
    "export --format=events p -o p",
    "export --format=events p.events -o p",
    "export --format=events p.events -o p.events",
    "export --format=events p -o link",
    "export p -o p.events",
    "report p -o p.events",
    "query -i p -o p.events --schema",
    "archive p -o p.events",
    "symbolize --no-debuginfod p -o p.events",
    "check --engine=preload -b budget -o budget",
    "check --engine=preload -b budget --junit budget",
    "folded p --wrappers=wrappers -o wrappers",
    "diff b p --wrappers=wrappers -o wrappers",
])
def test_what_is_read_is_not_written(run, allocprof, recorded, words):
    before = {path: path.read_bytes() for path in recorded.iterdir()}
    done = run([allocprof, *words.split()], cwd=recorded)
    assert_refused(done, " itself; name another file with ", "--junit" if "--junit" in words else "-o")
    assert {path: path.read_bytes() for path in recorded.iterdir()} == before


def test_suppressions_are_not_written(run, allocprof, recorded):
    run([allocprof, "record", "-q", "--engine=preload", "--live", "-o", "b", "--", "ls", "/"], cwd=recorded, expect=0)
    done = run([allocprof, "report", "b", "--leaks", "--suppressions=known", "-o", "known"], cwd=recorded)
    assert_refused(done, "known is the file of --suppressions itself; name another file with -o")
    assert (recorded / "known").read_text() == "leak:nothing\n"


def test_option_of_the_report_is_named(run, allocprof, recorded):
    done = run([allocprof, "check", "--engine=preload", "-b", "budget", "--junit", "none/x.xml"], cwd=recorded)
    assert_refused(done, "cannot write none/x.xml: No such file or directory; name another file with --junit")


REPORTS = ["html", "flamegraph", "flamegraph -o x.svg", "folded", "report", "report --json", "graph", "diff b p",
           "query 'SELECT * FROM frames a, frames b'", "archive",
           *(f"export --format={name}" for name in ["pprof", "otlp", "json", "speedscope", "firefox", "dhat", "heaptrack", "collapsed"])]


@pytest.mark.parametrize("older", [False, True], ids=["new", "older"])
def test_no_room_for_a_report(run, allocprof, tmp_path, older):
    """No command leaves a piece of what it was to write, which may look as if it were all; an older file stays."""
    record(run, allocprof, tmp_path, "p", "--live")
    record(run, allocprof, tmp_path, "b", "--live")
    (tmp_path / "full").mkdir()
    prepare = "printf kept >x; cp x x.svg;" if older else ""
    for words in REPORTS:
        output = "" if " -o " in words else "-o x"
        data = "" if "diff" in words else "-i ../p"
        # Nothing is left: one page is for the directory.
        script = (f"mount -t tmpfs -o size=8k none full && cd full && {prepare} cat /dev/zero >filler 2>/dev/null; rm -f one; "
                  f'"$0" {words.replace("diff b p", "diff ../b ../p")} {data} {output}; status=$?; rm filler; '
                  "for file in *; do echo \"$file: $(cat \"$file\")\"; done; exit $status")
        done = run(["unshare", "-m", "sh", "-c", script, allocprof], cwd=tmp_path)
        assert done.status == 2 and b"No space left on device" in done.stderr, (words, done)
        left = done.stdout.decode().split("\n")[:-1]
        assert left == (["x: kept", "x.svg: kept"] if older else ["*: "]), (words, left)


def test_mode_and_owner_stay(run, allocprof, tmp_path):
    record(run, allocprof, tmp_path)
    for name in ["new", "older"]:
        if name == "older":
            (tmp_path / name).write_text("older")
            os.chmod(tmp_path / name, 0o640)
            if not os.geteuid():
                os.chown(tmp_path / name, 65534, 65534)
        before = (tmp_path / name).stat() if name == "older" else None
        run(["sh", "-c", 'umask 027; exec "$0" "$@"', allocprof, "folded", "-i", "p", "-o", name], cwd=tmp_path, expect=0)
        after = (tmp_path / name).stat()
        assert after.st_size > 10 and after.st_mode & 0o777 == 0o640
        if before:
            assert (after.st_uid, after.st_gid) == (before.st_uid, before.st_gid)


WRITES = {
    "record": "record -q --engine=preload -o {} -- true",
    "stat": "stat --engine=preload -o {} -- true",
    "report": "report -i p -o {}",
    "html": "html -i p -o {}",
    "export": "export -i p -o {}",
    "query": "query -i p -o {} 'SELECT * FROM meta'",
    "symbolize": "symbolize --no-debuginfod -i p -o {}",
    "archive": "archive -i p -o {}",
    "check": "check --engine=preload --update -b {} -- true",
    "junit": "check --engine=preload -b budget --junit {}",
}


@pytest.mark.parametrize("name", WRITES)
def test_link_of_another_user(run, allocprof, public_directory, tmp_path, name):
    """It is not followed in the middle of a path either: root would write where its maker may not. One of root's is."""
    if os.geteuid():
        unavailable("not root")
    record(run, allocprof, tmp_path)
    (tmp_path / "budget").write_text('{"tests": {"t": {"command": ["true"], "total_allocations": {"max": 5000, "min": 0}}}}')
    (public_directory / "to").mkdir(mode=0o700)
    theirs = public_directory / "theirs"
    theirs.mkdir()
    for link, owner in [("link", 65534), ("way", 65534), ("ours", 0)]:
        (theirs / link).symlink_to("../to" if link != "way" else "ours")
        os.chown(theirs / link, owner, owner, follow_symlinks=False)
    for link in ["link", "way"]:
        done = run(["sh", "-c", 'eval "exec \\"$0\\" $1"', allocprof, WRITES[name].format(f"{theirs}/{link}/x")], cwd=tmp_path)
        assert_refused(done, f"{theirs}/{link}/x: a link of another user's is on the way")
        assert os.listdir(public_directory / "to") == []
    run(["sh", "-c", 'eval "exec \\"$0\\" $1"', allocprof, WRITES[name].format(f"{theirs}/ours/x")], cwd=tmp_path, expect=0)
    assert "x" in os.listdir(public_directory / "to")


@pytest.mark.parametrize("words", ["", "--live", "--events"])
def test_killed_recording_leaves_nothing(runner, allocprof, target, tmp_path, words):
    """Of SIGKILL, and of its socket nothing after the next recording."""
    engine = "uprobe" if words == "--events" else "preload"
    target_run = Obedient(runner, [allocprof, "record", "-q", f"--engine={engine}", *words.split(), "--", target("sleeper")],
                          cwd=tmp_path)
    target_run.ask("alloc 10")
    os.kill(target_run.pid, signal.SIGKILL)
    os.waitpid(target_run.pid, 0)
    assert set(os.listdir(tmp_path)) <= {"allocprof.data.events"}


@pytest.mark.parametrize("sql", [
    "SELECT instr(zeroblob(16000000), zeroblob(8000000) || x'01')",
    "SELECT length(replace(hex(zeroblob(8000000)), hex(zeroblob(500000)) || '1', ''))",
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n",
])
def test_query_ends_in_time(run, allocprof, tmp_path, sql):
    """Also where one function alone takes longer; the limit of the kernel's would kill it."""
    record(run, allocprof, tmp_path)
    done = run(["prlimit", "--cpu=30", allocprof, "query", "--timeout", "0.1s", "-i", "p", "-o", "x", sql], cwd=tmp_path, expect=2)
    assert done.stderr.decode().count("\n") == 1 and "the query was stopped when its processor time was over" in \
        done.stderr.decode(), done
    assert os.listdir(tmp_path) == ["p"]
