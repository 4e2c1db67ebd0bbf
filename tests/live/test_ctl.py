# SPDX-License-Identifier: GPL-3.0-or-later
"""`allocprof ctl` with a recording that runs. Targets allocate when they are told to and say when they are
done, so that it is known what has happened before each request."""

import os
import pathlib
import signal
import socket
import struct
import subprocess

import pytest

from containers import own_mounts
from support import (Obedient, Recording, TIMEOUT_SECONDS, command_of, mapped_code, read_report, wait_until)

ENGINES = pytest.mark.parametrize("engine", ["uprobe", "preload"])

RUN = pathlib.Path("/run/allocprof")


@pytest.fixture(scope="module", autouse=True)
def own_run():
    """Recordings of the machine that are not these tests' are not seen."""
    with own_mounts():
        subprocess.run(["mount", "-t", "tmpfs", "none", "/run"], check=True)
        yield


class Controlled:
    """A recording of an obedient target, which it starts itself."""

    def __init__(self, runner, allocprof, command, argv, directory, *options, stderr=None):
        self.run, self.allocprof = runner.run, allocprof
        self.output = directory / f"{command}.out"
        words = ["--json"] if command == "stat" else []
        self.target = Obedient(runner, [allocprof, command, *words, "-o", self.output, *options,
                                        "--", *argv], cwd=directory, stderr=stderr)
        self.pid = self.target.pid

    def ctl(self, *words, expect=0):
        return self.run([self.allocprof, "ctl", "-p", self.pid, *words], expect=expect)

    def say(self, *words):
        return self.ctl(*words).stdout.decode()

    def alloc(self, n):
        self.target.ask(f"alloc {n}")

    def end(self, expect=0):
        self.target.exit(expect)

    def recording(self, path=None):
        recording = Recording(path or self.output)
        assert not recording.unbalanced()
        return recording

    def calls(self, path=None):
        """Of a file with nothing lost."""
        recording = self.recording(path)
        assert recording.ledger["lost"] == 0
        return recording.ledger["events"]


@pytest.fixture
def controlled(runner, allocprof, target, tmp_path):
    made = []

    def make(command, *options, argv=("sleeper",), **popen):
        directory = tmp_path / str(len(made))
        directory.mkdir()
        made.append(Controlled(runner, allocprof, command, [target(argv[0]), *argv[1:]], directory,
                               *options, **popen))
        return made[-1]

    return make


def total(one, command):
    """What a recording that has ended counted."""
    if command == "stat":
        report = read_report(one.output)
        assert report["complete"]
        return report["total_allocations"]
    return one.calls()


@pytest.mark.fast("plain-stat", "live-record")
@pytest.mark.parametrize("command", ["stat", "record"])
@pytest.mark.parametrize("live", [[], ["--live"]], ids=["plain", "live"])
def test_start_and_stop(controlled, command, live):
    one = controlled(command, "--paused", *live)
    assert "not counting since" in one.say("status")
    one.alloc(1000)
    assert one.say("start").startswith("counting since")
    one.alloc(77)
    assert one.say("stop").startswith("not counting since")
    one.alloc(500)
    assert one.say("start").startswith("counting since")
    one.alloc(3)
    assert one.say("start").startswith("counting since")
    one.say("stop")
    one.alloc(9)
    one.end()
    assert total(one, command) == 80
    if command == "record":
        recording = one.recording()
        assert (recording.meta["window_paused"], recording.meta["stops"]) == ("1", "2")
        if live:
            assert (recording.ledger["frees"], recording.ledger["frees_unknown"]) == (80, 0)
        assert [kind for kind, in recording.sql("SELECT kind FROM marks ORDER BY time_ns")] == ["start", "stop", "start", "stop"]
    else:
        assert read_report(one.output)["deallocations"] == 80


def test_never_started(controlled):
    """Nothing was measured, and no silent zero."""
    one = controlled("stat", "--paused", stderr=subprocess.PIPE)
    one.alloc(10)
    one.end(expect=125)
    assert b"nothing was measured: `allocprof ctl start` was not called" in one.target.process.stderr.read()


def test_stop_ends_a_delay(controlled):
    one = controlled("record", "--delay", "1000s")
    one.alloc(5)
    one.say("start")
    one.alloc(6)
    one.say("stop")
    one.alloc(7)
    one.end()
    assert one.calls() == 6


def test_gate_and_stack(controlled):
    """A call counts where the gate of the run is open and its stack says that it is within."""
    one = controlled("record", "--within", "main")
    one.alloc(5)
    one.say("dump")
    one.say("stop")
    one.alloc(100)
    one.say("start")
    one.alloc(7)
    one.say("dump", "--reset")
    one.alloc(2)
    one.end()
    output = one.output.name
    assert [one.calls(one.output.with_name(f"{output}.{n}")) for n in (1, 2)] == [5, 12]
    assert one.calls() == 2


@pytest.mark.fast("preload")
@ENGINES
def test_dump(controlled, engine):
    one = controlled("record", f"--engine={engine}")
    one.alloc(100)
    dumps = []
    for n in (1, 2):
        path = one.output.with_name(f"record.out.{n}")
        said = one.say("dump")
        dumps.append(one.calls(path))
        assert said == f"{dumps[-1]:,} calls in {path}\n"
        one.alloc(10)
    one.end()
    # What comes before main() is in all of them.
    assert [dumps[1], one.calls()] == [dumps[0] + 10, dumps[0] + 20]
    dump, last = one.recording(one.output.with_name("record.out.1")), one.recording()
    assert dump.meta["dump"] == "1" and "dump" not in last.meta
    assert "exit_status" not in dump.meta and last.meta["exit_status"] == "0"
    stacks = dump.texts()
    assert stacks and stacks.keys() == last.texts().keys()
    assert any(text.endswith("main") for text in stacks), "named like any other"


@pytest.mark.slow
@ENGINES
def test_dump_with_live(controlled, engine):
    """What is live at that moment; the last file is as if there had been none."""
    one = controlled("record", "--live", f"--engine={engine}")
    one.say("dump")
    started = one.recording(one.output.with_name("record.out.1")).ledger
    one.alloc(100)
    one.target.ask("keep 50")
    one.say("dump")
    one.target.ask("release 20")
    one.target.ask("keep 7")
    one.say("dump")
    one.end()
    files = [one.output.with_name("record.out.2"), one.output.with_name("record.out.3"), one.output]
    for path, calls, frees in zip(files, (150, 157, 157), (100, 120, 120)):
        recording = one.recording(path)
        ledger = {name: value - started.get(name, 0) for name, value in recording.ledger.items()}
        assert ledger["lost"] == ledger["untracked"] == ledger["lifetimes_missing"] == 0
        assert (ledger["events"], ledger["allocations"], ledger["frees"]) == (calls, calls, frees)
        ((live,),) = recording.sql("SELECT sum(allocations - frees) FROM blocks")
        ((lasting,),) = recording.sql("SELECT sum(blocks) FROM lifetimes WHERE died IS NULL")
        assert live == lasting == recording.ledger["allocations"] - recording.ledger["frees"]
        ((ended,),) = recording.sql("SELECT sum(blocks) FROM lifetimes WHERE died IS NOT NULL")
        assert ended == recording.ledger["frees"]
        ((last,),) = recording.sql("SELECT live FROM timeline ORDER BY time_ns DESC LIMIT 1")
        assert last == live
    assert b"cannot be reset" in controlled("record", "--live").ctl("reset", expect=1).stderr


@ENGINES
def test_live_dump_of_a_busy_target(controlled, engine):
    """Threads that allocate without pause, and one that waits in a system call, are held for a moment: the dump is exact,
    none of their calls is lost, and nobody traces them afterwards. The preloaded library may be held in the middle of a
    call of each thread."""
    slack = 4 if engine == "preload" else 0
    one = controlled("record", "--live", f"--engine={engine}", argv=("busy_threads", "4"))
    one.target.send("alloc 1000000")
    for number in (1, 2):
        said = one.say("dump")
        assert "held for" in said or "calls in" in said, said
        dump = one.recording(one.output.with_name(f"record.out.{number}"))
        ((live,),) = dump.sql("SELECT sum(allocations - frees) FROM blocks")
        ((lasting,),) = dump.sql("SELECT sum(blocks) FROM lifetimes WHERE died IS NULL")
        ledger = dump.ledger
        numbers = [live, lasting, ledger["allocations"] - ledger["frees"]]
        assert max(numbers) - min(numbers) <= slack, numbers
        assert abs(ledger["allocations"] + ledger["unfinished"] - ledger["attributed"]) <= slack, ledger
    pid = command_of(one.pid)
    for thread in pathlib.Path(f"/proc/{pid}/task").iterdir():
        status = dict(line.split(":\t", 1) for line in (thread / "status").read_text().splitlines())
        assert status["TracerPid"] == "0" and status["State"][0] in "RSD", status
    os.kill(pid, signal.SIGKILL)
    one.target.process.wait(TIMEOUT_SECONDS)
    assert one.recording().ledger["lost"] == 0


@pytest.mark.slow
def test_live_dump_without_hold(controlled):
    """Exact, or not at all."""
    one = controlled("record", "--live", argv=("busy_threads", "4"))
    one.target.send("alloc 50000")
    result = one.run([one.allocprof, "ctl", "-p", one.pid, "dump", "--no-hold"])
    one.target.expect_line("done")
    if result.status:
        assert b"with --live try again when it is idle" in result.stderr
    else:
        ledger = one.recording(one.output.with_name("record.out.1")).ledger
        assert ledger["allocations"] + ledger["unfinished"] == ledger["attributed"]
    one.say("dump", "-o", one.output.with_name("rests"))
    one.end()
    assert one.recording(one.output.with_name("rests")).ledger == one.recording().ledger
    assert one.recording().ledger["lost"] == 0


def test_dump_to_a_file(controlled, tmp_path):
    one = controlled("record")
    one.alloc(100)
    one.run([one.allocprof, "ctl", "-p", one.pid, "dump", "-o", "here"], expect=0, cwd=tmp_path)
    before = one.calls(tmp_path / "here")
    result = one.ctl("dump", "-o", tmp_path / "no" / "such", expect=1)
    assert b"no/such" in result.stderr and not result.stdout
    one.alloc(1)
    one.end()
    assert one.calls() == before + 1


@ENGINES
def test_dump_after_stop(controlled, engine):
    """The window was open, in the dump's part of the run and for the run."""
    one = controlled("record", "--paused", f"--engine={engine}")
    dump = one.output.with_name("dump")
    one.say("start")
    one.alloc(10)
    one.say("stop")
    one.say("dump", "--reset", "-o", dump)
    one.end()
    assert one.calls(dump) == 10 and one.calls() == 0
    assert one.recording(dump).meta["window_opened"] == one.recording().meta["window_opened"] == "1"
    one.run([one.allocprof, "report", "--strict", dump], expect=0)


@ENGINES
def test_dump_that_cannot_be_written(controlled, tmp_path, engine):
    """What cannot be created is not begun; what fails later has lost its calls, and they are reported."""
    one = controlled("record", f"--engine={engine}")
    one.alloc(100)
    assert b"no/such" in one.ctl("dump", "--reset", "-o", tmp_path / "no" / "such", expect=1).stderr
    one.say("dump", "-o", tmp_path / "whole")
    n = one.calls(tmp_path / "whole")
    assert n >= 100
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "none", small], check=True)
    try:
        one.ctl("dump", "--reset", "-o", small / "dump", expect=1)
        one.alloc(7)
        one.end()
    finally:
        subprocess.run(["umount", small], check=True)
    ledger = one.recording().ledger
    assert (ledger["events"], ledger["attributed"], ledger["lost_unaccounted"]) == (n + 7, 7, n)


@pytest.mark.fast("record-uprobe")
@ENGINES
@pytest.mark.parametrize("command", ["stat", "record"])
def test_reset(controlled, command, engine):
    one = controlled(command, f"--engine={engine}")
    one.alloc(1000)
    assert one.say("reset").startswith("begun anew at")
    one.alloc(30)
    one.say("reset")
    one.alloc(31)
    one.end()
    assert total(one, command) == 31
    if command == "record":
        assert one.recording().meta["resets"] == "2"
    else:
        report = read_report(one.output)
        assert (report["total_allocated_bytes"], report["deallocations"]) == (31 * 32, 31)


@pytest.mark.slow
def test_reset_while_paused(controlled):
    one = controlled("record", "--paused")
    one.say("start")
    one.alloc(10)
    one.say("stop")
    one.say("reset")
    assert one.say("status").startswith("not counting")
    one.alloc(10)
    one.say("start")
    one.alloc(4)
    one.end()
    assert one.calls() == 4


@pytest.mark.slow
@pytest.mark.parametrize("inject", [[], ["--inject", "counts=4"], ["--inject", "multi=0"], ["--engine=preload"]],
                         ids=["plain", "full", "single", "preload"])
def test_pieces_make_the_whole(controlled, inject):
    """Threads allocate all the time: each call is in one of the dumps or in the last file."""
    one = controlled("record", *inject, argv=("busy_threads", "4"))
    one.say("reset")
    one.target.send("alloc 20000")
    paths = []
    for n in range(20):
        paths.append(one.output.with_name(f"piece.{n}"))
        one.say("dump", "--reset", "-o", paths[-1])
    one.target.expect_line("done")
    one.end()
    assert sum(one.calls(path) for path in [*paths, one.output]) == 4 * 20000


@pytest.mark.slow
@ENGINES
def test_dumps_of_a_busy_target(controlled, engine):
    """Each has what the one before has and more, and the last file has all."""
    one = controlled("record", f"--engine={engine}", argv=("busy_threads", "4"))
    one.say("reset")
    one.target.send("alloc 20000")
    last = 0
    for n in range(10):
        one.say("dump")
        calls = one.calls(one.output.with_name(f"record.out.{n + 1}"))
        assert last <= calls <= 4 * 20000
        last = calls
    one.target.expect_line("done")
    one.end()
    assert one.calls() == 4 * 20000


@pytest.mark.slow
@ENGINES
def test_resets_of_a_busy_target(controlled, engine):
    one = controlled("stat", f"--engine={engine}", argv=("busy_threads", "4"))
    one.target.send("alloc 30000")
    for _ in range(20):
        one.say("reset")
    one.target.expect_line("done")
    one.say("reset")
    one.alloc(100)
    one.end()
    report = read_report(one.output)
    assert report["complete"]
    assert (report["total_allocations"], report["total_allocated_bytes"],
            report["deallocations"]) == (400, 400 * 32, 400)


@pytest.mark.slow
def test_attached(runner, allocprof, target, tmp_path):
    """A recording of a process that runs is found by either's process id, and ends as it would."""
    sleeper = Obedient(runner, [target("sleeper")])
    output = tmp_path / "attached.data"
    recording = runner.start([allocprof, "record", "-o", output, "-p", sleeper.pid])
    ctl = [allocprof, "ctl", "-p", sleeper.pid]
    wait_until(lambda: runner.run([*ctl, "status"]).status == 0, "the recording listens")
    sleeper.ask("alloc 10")
    runner.run([*ctl, "dump", "-o", tmp_path / "dump"], expect=0)
    sleeper.ask("alloc 5")
    recording.send_signal(signal.SIGINT)
    assert recording.wait(TIMEOUT_SECONDS) == 0
    assert Recording(tmp_path / "dump").ledger["events"] == 10
    assert Recording(output).ledger["events"] == 15
    assert not (RUN / f"{recording.pid}.sock").exists()
    sleeper.exit()


@pytest.mark.slow
def test_several(controlled, run, allocprof):
    first, second = controlled("record"), controlled("stat")
    result = run([allocprof, "ctl", "stop"], expect=1)
    assert b"2 recordings run; name one by -p" in result.stderr
    for one, command in ((first, "record"), (second, "stat")):
        assert f"{one.pid}: {command} {one.target.process.args[-1]} (process ".encode() in result.stderr
    first.say("stop")
    assert second.say("status").startswith("counting")
    first.end()
    assert run([allocprof, "ctl", "status"], expect=0).stdout.startswith(b"counting")
    second.end()
    assert b"no recording runs" in run([allocprof, "ctl", "status"], expect=1).stderr


@pytest.mark.parametrize("words, status, sentence", [
    ([], 64, "nothing to do"),
    (["strat"], 64, "did you mean 'start'"),
    (["start", "stop"], 64, "stop"),
    (["-p", "x", "start"], 64, "'x' is no process id"),
    (["-p", "-4", "start"], 64, "'-4' is no process id"),
    (["-o", "f", "start"], 64, "mean nothing without dump"),
    (["--reset", "stop"], 64, "mean nothing without dump"),
    (["--no-hold", "stop"], 64, "mean nothing without dump"),
    (["--no-hold", "--reset", "dump"], 64, "leave one of them out"),
    (["-p", "4194304", "start"], 1, "4194304 is neither a recording nor recorded"),
])
def test_bad_words(run, allocprof, words, status, sentence):
    result = run([allocprof, "ctl", *words], expect=status)
    assert sentence.encode() in result.stderr and result.stderr.count(b"\n") == 1


def test_what_is_refused(controlled):
    one = controlled("stat")
    assert b"stat keeps no stacks" in one.ctl("dump", expect=1).stderr
    one.end()


@pytest.mark.parametrize("options, sentence", [
    (["--paused", "--delay", "1s"], "--delay and --paused cannot be used together"),
    (["--paused", "-r", "2"], "-r and --paused cannot be used together"),
])
def test_options_that_exclude_each_other(run, allocprof, options, sentence):
    assert sentence.encode() in run([allocprof, "stat", *options, "true"], expect=64).stderr


def connect(pid):
    client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    client.connect(str(RUN / f"{pid}.sock"))
    client.settimeout(TIMEOUT_SECONDS)
    return client


def test_hostile_clients(controlled):
    one = controlled("record")
    one.say("reset")
    silent = [connect(one.pid) for _ in range(40)]
    one.alloc(1000)
    for request in (b"x", b"\0\0\0", b"start\0stop", b"dump", b"stop ", b"start\n", os.urandom(4000)):
        with connect(one.pid) as client:
            client.send(request)
            assert client.recv(100) == b"1 unknown request; use the allocprof that made the recording"
    with connect(one.pid) as client:
        client.send(b"dump " + b"/" * 100000)
        assert b"is too long" in client.recv(100)
    with connect(one.pid) as client, pytest.raises(OSError):
        client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65536)
        client.send(b"y" * (1 << 20))
    # Who asks and leaves, and who asks twice.
    with connect(one.pid) as client:
        client.send(b"status")
    with connect(one.pid) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.send(b"status")
        try:
            client.send(b"status")
        except BrokenPipeError:
            pass
    assert one.say("status").startswith("counting")
    one.alloc(1000)
    one.end()
    assert one.calls() == 2000
    for client in silent:
        client.close()


def test_stale_socket_is_removed(controlled, run, allocprof):
    one = controlled("record")
    stale = RUN / "4194304.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as dead:
        dead.bind(str(stale))
    (RUN / "12.sock").symlink_to("/etc/passwd")
    (RUN / "other").write_text("is left alone")
    try:
        assert run([allocprof, "ctl", "status"], expect=0).stdout.startswith(b"counting")
        assert not stale.exists() and (RUN / "other").exists()
    finally:
        (RUN / "12.sock").unlink(missing_ok=True)
        (RUN / "other").unlink()
    one.end()


def test_killed_recording(controlled, run, allocprof):
    one = controlled("record")
    one.target.process.kill()
    one.target.process.wait()
    assert b"no recording runs" in run([allocprof, "ctl", "status"], expect=1).stderr
    assert not (RUN / f"{one.pid}.sock").exists()


# What is in the place of /run/allocprof, in a /run of the test's own.
PLACES = {
    "link": "mkdir -m 700 /run/else && ln -s /run/else /run/allocprof",
    "file": "touch /run/allocprof",
    "open": "mkdir -m 755 /run/allocprof",
    "others": "mkdir -m 700 /run/allocprof && chown 1234 /run/allocprof",
}


@pytest.mark.fast("link", "open")
@pytest.mark.parametrize("place", PLACES)
def test_hostile_directory(run, allocprof, tmp_path, place):
    """Nothing is made there; the recording goes on, unless it could never be started."""
    output = tmp_path / "out"
    prepared = ["unshare", "-m", "sh", "-ec", f"mount -t tmpfs none /run; {PLACES[place]}; exec \"$@\"",
                "sh"]
    listing = ["sh", "-c", "ls -R /run"]
    result = run([*prepared, allocprof, "stat", "-o", output, "--", *listing], expect=0)
    assert b".sock" not in result.stdout and not result.stderr
    result = run([*prepared, allocprof, "stat", "--paused", "-o", output, "--", *listing], expect=125)
    assert b"a recording that is --paused could not be started: " in result.stderr
    assert b"/run/allocprof" in result.stderr and not result.stdout
    assert b"/run/allocprof" in run([*prepared, allocprof, "ctl", "status"], expect=1).stderr


def test_other_users(controlled, run, allocprof):
    """The directory lets nobody in."""
    one = controlled("record")
    assert oct(RUN.stat().st_mode & 0o777) == "0o700"
    result = run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "/usr/bin/python3", "-c",
                  f"import socket; socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET).connect("
                  f"'{RUN}/{one.pid}.sock')"])
    assert result.status == 1 and b"Permission" in result.stderr
    one.end()


@pytest.mark.slow
def test_target_has_nothing_of_it(run, allocprof, tmp_path):
    script = "ls -l /proc/self/fd; cat /proc/self/status | grep ^SigBlk"
    bare = run(["sh", "-c", script], expect=0).stdout
    ours = run([allocprof, "record", "-o", tmp_path / "data", "sh", "-c", script], expect=0).stdout
    assert b"socket:" not in ours and ours.count(b"->") == bare.count(b"->")


def test_probes_go_while_a_dump_is_written(runner, allocprof, target, tmp_path):
    """The process that writes keeps nothing in the target that outlives the recording."""
    sleeper = Obedient(runner, [target("sleeper")])
    libc = next(path for path in map(str.strip, open(f"/proc/{sleeper.pid}/maps")) if "libc.so" in path)
    libc = libc.split()[-1]
    before = mapped_code(sleeper.pid, libc)
    recording = runner.start([allocprof, "record", "-o", tmp_path / "data", "-p", sleeper.pid])
    ctl = [allocprof, "ctl", "-p", recording.pid]
    wait_until(lambda: runner.run([*ctl, "status"]).status == 0, "the recording listens")
    for n in range(3):
        runner.run([*ctl, "dump", "-o", tmp_path / f"dump.{n}"], expect=0)
    recording.send_signal(signal.SIGINT)
    assert recording.wait(TIMEOUT_SECONDS) == 0
    assert mapped_code(sleeper.pid, libc) == before
    sleeper.exit()
