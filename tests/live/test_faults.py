# SPDX-License-Identifier: GPL-3.0-or-later
"""Page faults by stack: as many as getrusage(2) and wait4(2) count for the same processes, and beneath the functions that a
program states."""

import json
import shutil
import signal
import sqlite3

import pytest

from support import TIMEOUT_SECONDS, Obedient, folded, unavailable, wait_until_counting

PAGE = 4096
KINDS = ["minor-fault", "major-fault"]
# The kernel takes the faults of these itself, and raises no event for them.
BY_THE_KERNEL = ["filled", "locked"]
LARGE = "memory = bytes(1) * (120 << 20)"
THREADS = """
import threading
def work():
    for i in range(40):
        bytes(1) * 1000000
threads = [threading.Thread(target=work) for i in range(6)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""


def programs(target):
    return {
        "faults": [target("faults")],
        "threads": [target("threads")],
        "forks": [target("fork_storm")],
        "spawn": [target("spawn")],
        "exec": [target("exec_itself")],
        "exec_by_thread": [target("exec_nonleader")],
        "jq": ["jq", "-n", "[range(200000)] | map(tostring) | length"],
        "pipeline": ["sh", "-c", "ls /usr/bin | sort --parallel=2 | grep a | wc -l; (true; false) || date"],
        "python_large": ["/usr/bin/python3", "-c", LARGE],
        "python_threads": ["/usr/bin/python3", "-c", THREADS],
        "git": ["git", "--no-pager", "log", "--oneline", "-3"],
    }


@pytest.fixture(name="sees_all")
def fixture_sees_all(run, allocprof):
    """Whether programs can be where the kernel takes faults itself."""
    lines = run([allocprof, "doctor"]).stdout.decode().splitlines()
    return any(line.split()[:3] == ["fentry", "programs", "yes"] for line in lines)


def figures(lines):
    return {name: int(number) for name, _, number in (line.partition("=") for line in lines) if number}


def recorded(path):
    """The faults by process id, and the ledger."""
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    totals = dict(connection.execute("SELECT pid, sum(calls) FROM calls GROUP BY 1"))
    (calls, size), = connection.execute("SELECT sum(calls), sum(bytes) FROM calls")
    functions = {name for name, in connection.execute("SELECT DISTINCT function FROM calls")}
    ledger = dict(connection.execute("SELECT name, value FROM ledger"))
    connection.close()
    assert size == calls * PAGE and functions <= set(KINDS)
    assert ledger["events"] == ledger["attributed"] + ledger["lost"] and ledger["lost"] == ledger.get("lost_unseen", 0)
    return totals, ledger


@pytest.mark.fast("faults", "forks", "exec", "python_large")
@pytest.mark.parametrize("name", list(programs(str)))
def test_equal_to_wait4(run, allocprof, target, tmp_path, sees_all, name):
    """From the fork on, an exec's own faults among them."""
    argv = programs(target)[name]
    if not shutil.which(argv[0]):
        unavailable(f"{argv[0]} is not installed: scripts/setup --test")
    data = tmp_path / "data"
    result = run([allocprof, "record", "-q", "--faults", "-o", str(data), "--", target("faults"), "measure", *argv], expect=None)
    forked, measured = (line.split() for line in result.stdout.decode().splitlines()[-2:])
    assert (forked[0], measured[0]) == ("forked", "measured"), result.stdout
    totals, ledger = recorded(data)
    of_command = sum(calls for pid, calls in totals.items() if pid != int(forked[1]))
    assert of_command + ledger["lost"] == int(measured[1]) + int(measured[2])
    if sees_all:
        assert ledger["lost"] == 0


def test_preempted_programs(run, allocprof, target, tmp_path):
    """Each event at several programs, as on kernels that preempt these."""
    data = tmp_path / "data"
    result = run([allocprof, "record", "-q", "--faults", "--inject", "preemption=1", "-o", str(data), "--",
                  target("faults"), "measure", target("threads")], expect=0)
    forked, measured = (line.split() for line in result.stdout.decode().splitlines()[-2:])
    totals, ledger = recorded(data)
    of_command = sum(calls for pid, calls in totals.items() if pid != int(forked[1]))
    assert of_command + ledger["lost"] == int(measured[1]) + int(measured[2])


def test_stacks(run, allocprof, target, tmp_path, sees_all):
    data = tmp_path / "data"
    result = run([allocprof, "record", "-q", "--faults", "-o", str(data), target("faults")], expect=0)
    said = figures(result.stdout.decode().splitlines())
    assert said["lazily"] == 1000 and said["copied"] == 300 and said["shared"] == 100 and said["handed"] == 64, said
    lines, _ = folded(run, allocprof, data)
    got = {name: sum(calls for stack, calls in lines.items() if name in stack.split(";")) for name in [*said, "work"]}
    assert got.pop("work") == 200
    # The threads' stacks do not begin beneath the function that made them.
    assert got.pop("threaded") <= said.pop("threaded") - 200
    for name in BY_THE_KERNEL:
        if not sees_all:
            assert got.pop(name) + said[name] >= said.pop(name)
    assert got == said
    _, ledger = recorded(data)
    assert ledger["lost"] == (0 if sees_all else ledger["lost_unseen"])
    assert ledger["complete"] >= 0.99 * ledger["attributed"]


def test_nothing_of_ours(run, allocprof, target, tmp_path):
    """What allocprof's child does before it executes the command is not the command's."""
    data = tmp_path / "data"
    run([allocprof, "record", "-q", "--faults", "-o", str(data), target("nothing")], expect=0)
    connection = sqlite3.connect(f"file:{data}?mode=ro", uri=True)
    assert {name for name, in connection.execute("SELECT DISTINCT comm FROM calls")} == {"nothing"}
    (frames,), = connection.execute("SELECT count(*) FROM frame_names WHERE module LIKE '%/cli/allocprof'")
    connection.close()
    assert frames == 0


def counted_by_kernel(pid):
    """The process's own faults, and those of threads that have ended."""
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        fields = file.read().rpartition(")")[2].split()
    return int(fields[7]) + int(fields[9])


@pytest.mark.fast("record")
@pytest.mark.parametrize("command", ["record", "stat"])
def test_attached(run, runner, allocprof, target, tmp_path, sees_all, command):
    out = tmp_path / "out"
    process = Obedient(runner, [target("faults"), "wait"])
    before = counted_by_kernel(process.pid)
    words = ["-q", "-o", str(out)] if command == "record" else ["--json", "-o", str(out)]
    recorder = runner.start([allocprof, command, "--faults", *words, "-p", str(process.pid)])
    wait_until_counting(allocprof, recorder)
    process.send("go")
    while process.read_line() != "done":
        pass
    recorder.send_signal(signal.SIGINT)
    assert recorder.wait(TIMEOUT_SECONDS) == 0
    expected = counted_by_kernel(process.pid) - before
    process.exit()
    assert expected > 1500
    if command == "record":
        totals, ledger = recorded(out)
        assert totals[process.pid] + ledger["lost"] == expected and list(totals) == [process.pid]
        if sees_all:
            assert ledger["lost"] == 0
        return
    # Without stacks, none is unseen: the kernel's own counters tell the number.
    report = json.loads(out.read_text())
    assert report["complete"] and sum(report["functions"][name]["calls"] for name in KINDS) == expected
    assert report["functions"]["minor-fault"]["bytes"] == PAGE * report["functions"]["minor-fault"]["calls"]
    assert report["allocations"] == 0 and report["total_allocated_bytes"] == 0


@pytest.mark.parametrize("command", ["record", "stat"])
def test_within(run, allocprof, target, tmp_path, command):
    out = tmp_path / "out"
    words = [allocprof, command, "--faults", "--within", "lazily", "-o", str(out)]
    if command == "record":
        run([*words, target("faults")], expect=0)
        connection = sqlite3.connect(f"file:{out}?mode=ro", uri=True)
        (calls,), = connection.execute("SELECT sum(calls) FROM calls")
        connection.close()
        assert calls == 1000
        return
    run([*words, "--json", target("faults")], expect=0)
    assert json.loads(out.read_text())["functions"]["minor-fault"]["calls"] == 1000


def test_beside_malloc(run, allocprof, target, tmp_path):
    """With --allocator faults both count, and the report says what is what."""
    alone = json.loads(run([allocprof, "stat", "--json", target("every_function")], expect=3).stderr)
    both = json.loads(run([allocprof, "stat", "--json", "--allocator", "faults", target("every_function")], expect=3).stderr)
    assert both["functions"]["minor-fault"]["calls"] > 50
    for name, entry in alone["functions"].items():
        assert both["functions"][name] == entry
    assert both["total_allocations"] == alone["total_allocations"]
    data = tmp_path / "data"
    run([allocprof, "record", "-q", "--allocator", "faults", "-o", str(data), target("every_function")], expect=3)
    assert " are page faults: memory that became resident" in run([allocprof, "report", str(data)]).stdout.decode()


def test_threads_without_room(run, allocprof, target, tmp_path):
    """Where not every thread's counters can be kept, faults may be unseen that nobody counts: the recording is not complete."""
    data = tmp_path / "data"
    run([allocprof, "record", "-q", "--faults", "--inject", "threads=1", "-o", str(data), target("threads")], expect=0)
    result = run([allocprof, "report", "--strict", str(data)], expect=1)
    assert b"not complete" in result.stdout + result.stderr


@pytest.mark.parametrize("words, message, status", [
    (["--engine=preload", "--faults"], "cannot be used with the engine preload, which sets no probes", 125),
    (["--live", "--faults"], "page faults hand out no blocks", 64),
    (["--allocator", "faults:outermost"], "a page fault has no calls beneath it", 64),
], ids=["preload", "live", "outermost"])
def test_refused(run, allocprof, tmp_path, words, message, status):
    result = run([allocprof, "record", *words, "-o", str(tmp_path / "data"), "true"], expect=status)
    assert message in result.stderr.decode() and len(result.stderr.splitlines()) == 1
