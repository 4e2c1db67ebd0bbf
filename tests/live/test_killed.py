# SPDX-License-Identifier: GPL-3.0-or-later
"""A target that is killed in the midst of its work leaves a recording that has all of it: the target
tells in shared memory what it has done, to the call."""

import contextlib
import json
import os
import pathlib
import re
import signal
import struct
import subprocess
import time

import pytest

from conftest import unavailable
from support import Obedient, Recording, TIMEOUT_SECONDS, command_of, shell_status, wait_until

pytestmark = pytest.mark.engines("uprobe", "preload")

SIZE = 4000
MEMORY_BYTES = 64 << 20


def memory_hierarchy():
    """Where control groups that limit memory are made, and whether it is cgroup v2."""
    for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines():
        place, (kind, _, options) = line.split()[4], line.split(" - ")[1].split()[:3]
        if kind == "cgroup" and "memory" in options.split(","):
            return pathlib.Path(place), False
        if kind == "cgroup2":
            children = pathlib.Path(place, "cgroup.subtree_control")
            if children.exists() and "memory" in children.read_text().split():
                return pathlib.Path(place), True
    return None


@contextlib.contextmanager
def limited_memory(limit_bytes=MEMORY_BYTES):
    """A control group whose processes get @limit_bytes; its directory, and how many were killed."""
    found = memory_hierarchy()
    if not found:
        unavailable("no control groups that limit memory are mounted")
    group = found[0] / f"allocprof-test-{os.getpid()}"
    limit, events = (("memory.max", "memory.events") if found[1] else
                     ("memory.limit_in_bytes", "memory.oom_control"))
    try:
        group.mkdir()
    except OSError as error:
        unavailable(f"no control group can be made: {error}")
    try:
        (group / limit).write_text(str(limit_bytes))
        swap = group / "memory.swap.max"
        if swap.exists():
            swap.write_text("0")
        yield group, lambda: int(re.search(r"^oom_kill (\d+)$", (group / events).read_text(),
                                           re.MULTILINE)[1])
    finally:
        wait_until(lambda: not (group / "cgroup.procs").read_text(), f"{group} is empty")
        group.rmdir()


class Told:
    """What until_killed says of its calls. In memory, so that it is never written back."""

    def __init__(self):
        self.fd = os.memfd_create("calls")
        os.ftruncate(self.fd, 4096)
        # Its pages are this process's, and not the control group's.
        os.pwrite(self.fd, bytes(4096), 0)
        self.path = f"/proc/{os.getpid()}/fd/{self.fd}"

    def calls(self):
        """Of malloc, begun and ended, and of free."""
        return struct.unpack("4Q", os.pread(self.fd, 32, 0))

    def close(self):
        os.close(self.fd)


@pytest.fixture
def told():
    told = Told()
    yield told
    told.close()


def assert_all_there(run, allocprof, data, told):
    """Every call that had returned is in the recording with its block; at most one was under way."""
    begun, ended, free_begun, free_ended = told.calls()
    assert (begun - ended) + (free_begun - free_ended) in (0, 1)
    recording = Recording(data)
    ((process, end_ns),) = recording.sql(
        "SELECT id, end_ns FROM processes WHERE comm = 'until_killed' AND NOT execed")
    assert end_ns
    ((calls, size, allocations, got, frees, freed),) = recording.sql(
        "SELECT sum(c.calls), sum(c.bytes), sum(b.allocations), sum(b.bytes), sum(b.frees), "
        "sum(b.freed_bytes) FROM counts c JOIN blocks b ON b.count = c.id "
        "JOIN uninlined u ON u.count = c.id "
        "WHERE c.process = ? AND u.called_by = 'main' AND c.function = 'malloc'", process)
    # malloc's probe sees the call after the target has said that it begins, and its return before
    # the target has said that it ended; free's is at its entry.
    assert ended <= allocations <= calls <= begun
    assert free_ended <= frees <= free_begun
    assert (size, got, freed) == (calls * SIZE, allocations * SIZE, frees * SIZE)
    assert recording.ledger["unfinished"] == calls - allocations
    assert recording.ledger["lost"] == recording.ledger["untracked"] == 0
    assert not recording.unbalanced()
    report = run([allocprof, "report", "-i", data, "--leaks", "--strict", "--through=main",
                  "--process=until_killed"], expect=0).stdout.decode()
    assert f"Leaked: {got - freed:,} bytes in {allocations - frees:,} blocks of 1 stack\n" in report
    return allocations


def test_out_of_memory(run, allocprof, target, tmp_path, told):
    """The kernel kills the target, as its control group, of which allocprof is no member, may not
    have more memory."""
    data = tmp_path / "data"
    with limited_memory() as (group, killed):
        result = run([allocprof, "record", "--live", "--expect", target("until_killed"), "-o", data,
                      "--", "sh", "-c", 'echo 0 >"$1/cgroup.procs" && exec "$2" "$3" "$4"', "sh",
                      group, target("until_killed"), told.path, SIZE], expect=128 + signal.SIGKILL)
        assert killed() == 1
    assert b"allocprof: not freed: " in result.stderr
    allocations = assert_all_there(run, allocprof, data, told)
    # Three of four stay. The limit holds page tables too.
    assert 0.8 * MEMORY_BYTES < allocations * SIZE * 3 / 4 < MEMORY_BYTES


def in_group(group, *argv):
    return ["sh", "-c", 'echo 0 >"$1/cgroup.procs" && shift && exec "$@"', "sh", group, *argv]


@pytest.mark.fast("preload-beside")
@pytest.mark.parametrize("_", [0], ids=["beside"])
def test_beside_a_limit(run, allocprof, target, tmp_path, engine, _):
    """allocprof in a group with the command, which needs most of what the limit allows: it is not killed for what allocprof keeps of
    its blocks, and is told what that is."""
    # A million blocks of 48 bytes take 64 MiB, and what follows them took another 64 before there was a bound.
    limit_mib = {"preload": 108, "uprobe": 256}[engine]
    data = tmp_path / "data"
    with limited_memory(limit_mib << 20) as (group, killed):
        result = run(in_group(group, allocprof, "record", "--live", f"--engine={engine}", "-o", data, "--",
                              target("many_live"), 1000000, 48), expect=0)
        assert killed() == 0
    assert re.search(rf"the control group /\S+ has \S+ MiB left below its limit of {limit_mib} MiB, for what is measured "
                     r"and allocprof, which has \S+ .iB and takes up to \S+ MiB: ", result.stderr.decode())
    assert b" calls are not followed (live_full)" in result.stderr
    recording = Recording(data)
    assert recording.ledger["attributed"] >= 1000000 and recording.ledger["lost"] == 0
    assert int(recording.meta["group_limit_bytes"]) == limit_mib << 20 and int(recording.meta["own_bytes"]) > 1 << 20
    said = run([allocprof, "report", data], expect=0).stdout.decode()
    assert f"the limit of memory of the target's control group is {limit_mib} MiB, of which allocprof itself had " in said


def test_no_room_for_probes(run, allocprof, target, tmp_path):
    """The programs alone would not fit: the kernel would kill a process of the group, perhaps the service that is measured."""
    with limited_memory() as (group, killed):
        result = run(in_group(group, allocprof, "record", "--live", "--engine=uprobe", "-o", tmp_path / "data", "-p", os.getpid()),
                     expect=125)
        assert killed() == 0
    assert re.search(rb"the control group that allocprof runs in has \d+ MiB left below its limit of memory: the kernel would "
                     rb"kill a process of it; run allocprof outside of the group \(-p PID\)$", result.stderr.strip())


@pytest.mark.fast("preload-oom")
@pytest.mark.parametrize("_", [0], ids=["oom"])
def test_end_by_the_kernel(run, allocprof, target, tmp_path, told, engine, _):
    """A report says by which signal the command ended, that it was for want of memory, and what allocprof had of that."""
    data, page = tmp_path / "data", tmp_path / "page.html"
    with limited_memory(MEMORY_BYTES if engine == "preload" else 4 * MEMORY_BYTES) as (group, killed):
        result = run(in_group(group, allocprof, "record", "--live", f"--engine={engine}", "-o", data, "--",
                              target("until_killed"), told.path, SIZE), expect=128 + signal.SIGKILL)
        assert killed() == 1
    sentence = re.compile(rb"the command was ended by the signal SIGKILL: the kernel ended 1 process of its control group for want of "
                          rb"memory \(OOM\); the group's limit is \d+.* MiB, of which allocprof itself had \S+ MiB")
    assert sentence.search(result.stderr), result.stderr
    assert sentence.search(run([allocprof, "report", data], expect=0).stdout)
    report = json.loads(run([allocprof, "report", "--json", data], expect=0).stdout)
    assert (report["exit_status"], report["exit_signal"], report["oom_kills"]) == (137, 9, 1)
    run([allocprof, "html", "-o", page, data], expect=0)


@pytest.mark.fast("preload-signal")
@pytest.mark.parametrize("_", [0], ids=["signal"])
def test_end_by_a_signal(run, allocprof, tmp_path, engine, _):
    """Also where it was not the kernel's."""
    data = tmp_path / "data"
    kill = ["--", "sh", "-c", "kill -SEGV $$"]
    status = 128 + signal.SIGSEGV
    result = run([allocprof, "record", f"--engine={engine}", "-o", data, *kill], expect=status)
    assert b"the command was ended by the signal SIGSEGV\n" in result.stderr
    assert b"the command was ended by the signal SIGSEGV\n" in run([allocprof, "report", data], expect=0).stdout
    counted = json.loads(run([allocprof, "stat", "--json", f"--engine={engine}", *kill], expect=status).stderr)
    assert (counted["exit_signal"], counted["oom_kills"]) == (11, 0)


@pytest.mark.fast("kill")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT],
                         ids=["kill", "term", "int"])
def test_signal(runner, run, allocprof, target, tmp_path, told, number):
    """Ctrl-C goes to allocprof too, as it does on a terminal."""
    data = tmp_path / "data"
    process = runner.start([allocprof, "record", "--live", "-o", data, "--",
                            target("until_killed"), told.path, SIZE], stderr=subprocess.PIPE)
    wait_until(lambda: process.poll() is not None or told.calls()[1] > 20000, "20000 calls")
    assert process.poll() is None
    os.kill(command_of(process.pid), number)
    if number == signal.SIGINT:
        process.send_signal(number)
    _, stderr = process.communicate(timeout=TIMEOUT_SECONDS)
    assert shell_status(process.returncode) == 128 + number
    assert b"allocprof: not freed: " in stderr
    assert assert_all_there(run, allocprof, data, told) > 20000


def mallocs(path):
    return Recording(path).sql("SELECT coalesce(sum(calls), 0) FROM counts WHERE function = 'malloc'")[0][0]


@pytest.mark.fast("preload-checkpoint")
@pytest.mark.parametrize("words", [["--events"], ["--live"], []], ids=["events", "live", "checkpoint"])
def test_recorder_is_killed(runner, run, allocprof, target, tmp_path, engine, words):
    """What it has counted until some seconds before can be reported from; one that ends as it should leaves the data file
    alone."""
    if "--events" in words and engine == "preload":
        words = []  # It has no event log.
    data, partial = tmp_path / "data", tmp_path / "data.partial"
    for kills in (True, False):
        # Its target waits for commands, so that each copy is of a process at rest.
        obedient = Obedient(runner, [allocprof, "record", "-q", f"--engine={engine}", *words, "-o", data, "--",
                                     target("sleeper")])
        obedient.ask("alloc 321")
        # The first one may have come before the calls.
        wait_until(lambda: partial.exists() and mallocs(partial) >= 321, "a checkpoint")
        if kills:
            os.kill(obedient.pid, signal.SIGKILL)
            obedient.process.wait(TIMEOUT_SECONDS)
            done = run([allocprof, "report", data], expect=2)
            assert f"no such file {data}, but {partial}, what a recording has kept".encode() in done.stderr
        else:
            obedient.exit()
            assert data.exists() and not partial.exists() and not (tmp_path / "data.partial.old").exists()
        recording = Recording(partial if kills else data)
        assert not recording.unbalanced() and recording.ledger["lost"] == 0
        assert mallocs(recording.path) >= 321
        run([allocprof, "report", partial if kills else data], expect=0)
        assert (recording.meta.get("dump") == "1") == kills
        partial.unlink(missing_ok=True)


@pytest.mark.parametrize("words", [["--events"], ["--live"]], ids=["events", "live"])
def test_all_are_killed(runner, run, allocprof, target, tmp_path, engine, words):
    """As where a control group is killed as a whole, while the target allocates without pause: what is left can be reported from
    and named, and says how exact it is; so does the log of events."""
    if "--events" in words and engine == "preload":
        words = ["--live"]
    data, partial, log = tmp_path / "data", tmp_path / "data.partial", tmp_path / "data.events"
    obedient = Obedient(runner, [allocprof, "record", "-q", f"--engine={engine}", *words, "-o", data, "--",
                                 target("busy_threads"), 2])
    pids = (obedient.pid, command_of(obedient.pid))
    obedient.send("alloc 1000000000")
    # On a busy machine the target may have stood still while one was made; another one follows.
    wait_until(lambda: partial.exists() and mallocs(partial) > 100 and "torn_ms" in Recording(partial).gaps,
               "a checkpoint of a target that allocates meanwhile")
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    obedient.process.wait(TIMEOUT_SECONDS)
    recording = Recording(partial)
    assert recording.gaps["torn_ms"][0][0] >= 1, recording.gaps
    torn = b" passed while this copy was taken of a running target"
    assert torn in run([allocprof, "report", partial], expect=0).stderr
    assert torn in run([allocprof, "report", "--strict", partial], expect=1).stderr
    run([allocprof, "symbolize", partial], expect=0)
    assert b"work" in run([allocprof, "report", partial], expect=0).stdout
    recording = Recording(partial)
    ((allocations, frees),) = recording.sql("SELECT sum(allocations), sum(frees) FROM blocks")
    assert 0 <= allocations - frees < allocations
    run([allocprof, "html", "-o", tmp_path / "page.html", partial], expect=0)
    if "--events" not in words:
        return
    said = run([allocprof, "report", log], expect=2).stderr.decode()
    assert f"{log} is a log of events" in said and f"name the data file of the same recording, {partial}" in said
    for name in (log, partial):
        done = run([allocprof, "export", "--format=events", "--backtrace=name", "-o", tmp_path / "events", name],
                   expect=0)
        assert f"{partial} was written before the recording ended".encode() in done.stderr
        assert b"the recording was cut off: the log has its first " in done.stderr
        assert '"backtrace":["work"' in (tmp_path / "events").read_text()


@pytest.mark.parametrize("words", [[]], ids=["checkpoint"])
def test_no_checkpoints(runner, allocprof, target, tmp_path, engine, words):
    obedient = Obedient(runner, [allocprof, "record", "-q", f"--engine={engine}", "--no-checkpoints", "-o", tmp_path / "data",
                                 "--", target("sleeper")])
    # Longer than until the first one.
    time.sleep(8)
    assert os.listdir(tmp_path) == []
    obedient.exit()
