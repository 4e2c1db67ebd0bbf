# SPDX-License-Identifier: GPL-3.0-or-later
"""Windows that begin or end while the target allocates (tests/targets/pairs.c): all functions begin and cease
to count at one moment, so of the calls that a thread makes by turns one may be counted more often by one."""

import os
import signal
import subprocess
import time

import pytest

from support import TIMEOUT_SECONDS, Recording, read_report, wait_until_counting

SINGLE = ["--inject", "multi=0"]  # as on kernels without uprobe_multi: a perf event for each probe
THREADS = 4
MANY = int(os.environ.get("ALLOCPROF_TRIES", 4))

# What ends the window of a process that runs: time, or a signal.
ENDS = {
    "duration": ["--duration", "50ms"],
    "delay": ["--delay", "20ms", "--duration", "70ms"],
    "int": signal.SIGINT,
    "term": signal.SIGTERM,
}


def calls(command, output):
    """Calls by function, of a recording or report that is complete."""
    if command == "record":
        recording = Recording(output)
        assert recording.ledger["lost"] == 0 and not recording.unbalanced()
        return {name: n for name, (n, _) in recording.functions.items()}
    report = read_report(output)
    assert report["complete"] and not report["lost"]["total"], report
    return {name: function["calls"] for name, function in report["functions"].items()}


def requests_in_pairs(command, output):
    """How many requests were counted, of which each thread may have one without its partner."""
    got = calls(command, output)
    requests = got.get("malloc", 0) + got.get("calloc", 0)
    apart = got.get("malloc", 0) - got.get("calloc", 0)
    assert abs(apart) <= THREADS, f"malloc and calloc are {apart} apart, by {THREADS} threads: {got}"
    if command == "stat":
        apart = requests - got["free"]
        assert abs(apart) <= THREADS, f"requests and frees are {apart} apart, by {THREADS} threads: {got}"
    return requests


def argv_of(allocprof, command, output, *words):
    return [allocprof, command, *(["--json"] if command == "stat" else []), "-o", output, *words]


def open_windows(window, n):
    """@n of them, and more where nothing was counted in these: window() opens one and returns how many requests it
    counted. On a loaded machine a target may not run within a short one."""
    deadline = time.monotonic() + TIMEOUT_SECONDS
    requests = sum(window() for _ in range(n))
    while not requests:
        assert time.monotonic() < deadline, "nothing was counted in any window"
        requests = window()


def windows_of_a_process(runner, allocprof, target, output, command, end, options, n):
    pairs = runner.start([target("pairs"), THREADS], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert pairs.stdout.readline() == b"ready\n"

    def window():
        words = end if isinstance(end, list) else []
        process = runner.start([*argv_of(allocprof, command, output, *options, *words), "-p", pairs.pid],
                               stderr=subprocess.PIPE)
        if not words:
            wait_until_counting(allocprof, process)
            process.send_signal(end)
        _, stderr = process.communicate(timeout=TIMEOUT_SECONDS)
        assert process.returncode == 0, stderr
        return requests_in_pairs(command, output)

    open_windows(window, n)
    pairs.stdin.close()
    assert pairs.wait(TIMEOUT_SECONDS) == 0


def windows_of_a_command(runner, allocprof, target, output, command, options, n):
    """A command with forked children, one thread each; they go on when the window has ended."""
    def window():
        process = runner.start([*argv_of(allocprof, command, output, *options), "--duration", "100ms", "--",
                                target("pairs"), 1, THREADS - 1],
                               stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        assert process.wait(TIMEOUT_SECONDS) == 0
        process.stdin.close()
        return requests_in_pairs(command, output)

    open_windows(window, n)


@pytest.mark.covering(1)
@pytest.mark.fast("duration-plain", "int-live")
@pytest.mark.parametrize("options", [[], ["--live"]], ids=["plain", "live"])
@pytest.mark.parametrize("end", ENDS)
def test_of_a_process(runner, allocprof, target, tmp_path, end, options):
    windows_of_a_process(runner, allocprof, target, tmp_path / "out", "stat", ENDS[end], options, 3)


@pytest.mark.engines("uprobe", "preload")
@pytest.mark.fast("plain")
@pytest.mark.parametrize("options", [[], ["--live"]], ids=["plain", "live"])
def test_of_a_command(runner, allocprof, target, tmp_path, options):
    windows_of_a_command(runner, allocprof, target, tmp_path / "out", "record", options, 3)


SLOW_ENTRY = ["strace", "-f", "-qq", "-o", "/dev/null", "-P", "/proc/self/ns/pid", "-e", "trace=newfstatat", "-e",
              "inject=newfstatat:delay_enter=1s"]


@pytest.mark.engines("preload")
@pytest.mark.parametrize("children, duration", [(0, "900ms"), (2, "1500ms")])
def test_end_at_a_first_call(runner, allocprof, target, tmp_path, children, duration):
    """A process writes its entry into the shared memory as the window ends, and goes on: no call of it is missing.
    strace has it wait there for a second, and then its children."""
    process = runner.start([*argv_of(allocprof, "stat", tmp_path / "out", "--duration", duration), "--", *SLOW_ENTRY,
                            target("pairs"), 1, children], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    assert process.wait(TIMEOUT_SECONDS) == 0
    process.stdin.close()
    report = read_report(tmp_path / "out")
    assert report["complete"] and not report["lost"]["total"], report


def of_one_process(allocprof, output, delay, *argv):
    """Argument vector by which strace, which nobody measures, has the entries of the command's processes wait."""
    slow = [*SLOW_ENTRY[:-1], f"inject=newfstatat:delay_enter={delay}"]
    return [slow[0], "-D", *slow[1:], *argv_of(allocprof, "stat", output, "--duration", "1900ms"), "--", *argv]


@pytest.mark.engines("preload")
@pytest.mark.parametrize("executed", [False, True], ids=["begun", "executed"])
def test_end_at_the_first_call_of_all(runner, allocprof, target, tmp_path, executed):
    """The one process that runs is the one that writes its entry: the command has just begun, or executed another
    program."""
    argv = ["sh", "-c", 'exec "$@"', "sh"] if executed else []
    delay = "2s:when=2" if executed else "2s"
    process = runner.start(of_one_process(allocprof, tmp_path / "out", delay, *argv, target("pairs"), 1),
                           stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    assert process.wait(TIMEOUT_SECONDS) == 0
    process.stdin.close()
    report = read_report(tmp_path / "out")
    assert report["complete"] and not report["unprobed_programs"], report


@pytest.mark.engines("preload")
def test_first_call_that_does_not_end(runner, allocprof, target, tmp_path):
    """What is missing is one entry; the command was entered."""
    process = runner.start(of_one_process(allocprof, tmp_path / "out", "6s", target("pairs"), 1),
                           stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    assert process.wait(TIMEOUT_SECONDS) == 0
    process.stdin.close()
    report = read_report(tmp_path / "out")
    assert not report["complete"] and not report["unprobed_programs"] and report["processes"] == 1, report


@pytest.mark.engines("preload")
@pytest.mark.parametrize("seconds, complete", [(1, True), (5, False)])
def test_end_in_the_dynamic_linker(runner, allocprof, target, compiled, tmp_path, seconds, complete):
    """The dynamic linker has not looked for the library as the window ends: an auditor, which comes before, sleeps.
    allocprof waits for two seconds. It leaves the library, or the dynamic linker would print that there is none."""
    auditor = compiled("""
        #include <unistd.h>
        unsigned la_version(unsigned version) { sleep(SECONDS); return version; }
    """, "-shared", "-fPIC", f"-DSECONDS={seconds}", name="auditor.so")
    # What it leaves, the next allocprof removes: none begins meanwhile in this namespace.
    alone = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs -o mode=1777 none /dev/shm && exec "$@"', "sh"]
    argv = [*alone, *argv_of(allocprof, "stat", tmp_path / "out", "--duration", "300ms"), "--", target("pairs"), 1]
    process = runner.start(argv, env={"LD_AUDIT": str(auditor)}, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                           stderr=subprocess.PIPE)
    assert process.wait(TIMEOUT_SECONDS) == 0
    _, stderr = process.communicate(timeout=TIMEOUT_SECONDS)
    report = read_report(tmp_path / "out")
    assert report["complete"] == complete and report["processes"] == 1, report
    assert len(report["unprobed_programs"]) == (0 if complete else 1), report
    assert "ERROR: ld.so" not in stderr.decode(), stderr


# The links of a file's probes in one, or one by one; each end of a window.
PROCESSES = [
    ("stat", "duration", []), ("stat", "delay", []), ("stat", "int", []), ("stat", "term", []),
    ("stat", "duration", SINGLE), ("record", "duration", []), ("record", "int", SINGLE),
]


def name(case):
    command, *how, options = case
    return "-".join([command, *how, *(word.strip("-") for word in options)])


@pytest.mark.slow
@pytest.mark.parametrize("case", PROCESSES, ids=name)
def test_many_of_a_process(runner, allocprof, target, tmp_path, case):
    command, end, options = case
    windows_of_a_process(runner, allocprof, target, tmp_path / "out", command, ENDS[end], options, MANY)


COMMANDS = [("stat", []), ("record", []), ("stat", ["--delay", "20ms"])]


@pytest.mark.engines("uprobe", "preload")
@pytest.mark.slow
@pytest.mark.parametrize("case", COMMANDS, ids=name)
def test_many_of_a_command(runner, allocprof, target, tmp_path, case):
    command, options = case
    windows_of_a_command(runner, allocprof, target, tmp_path / "out", command, options, MANY)
