# SPDX-License-Identifier: GPL-3.0-or-later
"""A target that is killed in the midst of its work leaves a recording that has all of it: the target
tells in shared memory what it has done, to the call."""

import contextlib
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
def limited_memory():
    """A control group whose processes get MEMORY_BYTES; its directory, and how many were killed."""
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
        (group / limit).write_text(str(MEMORY_BYTES))
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


@pytest.mark.parametrize("words", [[]], ids=["checkpoint"])
def test_no_checkpoints(runner, allocprof, target, tmp_path, engine, words):
    obedient = Obedient(runner, [allocprof, "record", "-q", f"--engine={engine}", "--no-checkpoints", "-o", tmp_path / "data",
                                 "--", target("sleeper")])
    # Longer than until the first one.
    time.sleep(8)
    assert os.listdir(tmp_path) == []
    obedient.exit()
