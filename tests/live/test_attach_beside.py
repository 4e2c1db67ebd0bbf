# SPDX-License-Identifier: GPL-3.0-or-later
"""A process that is measured from inside (--engine=inside -p) beside other tools: debuggers, which have it alone, and probes of others at the
same functions."""

import contextlib
import os
import pathlib
import re
import select
import shutil
import signal
import subprocess

import pytest

from measured import MEMORY, Measured, await_untouched, code_of, maps_of
from support import TIMEOUT_SECONDS, Hits, Obedient, Recording, libc_path, read_report, states_of, unavailable, wait_until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="probes need root")


@pytest.fixture
def engine():
    """Each case names its own."""


def needs(tool):
    if not shutil.which(tool):
        unavailable(f"{tool} is not installed: scripts/setup --test")


class Tracer:
    """gdb or strace, which lets the process go on."""

    WORDS = {"strace": ["strace", "-f", "-o", "/dev/null", "-p"], "gdb": ["gdb", "-nx", "-q", "-batch", "-ex", "continue", "-p"]}

    def __init__(self, runner, name, pid):
        needs(name)
        self.pid = pid
        self.process = runner.start([*self.WORDS[name], pid], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(lambda: self.is_there() and not states_of(pid) & set("tT"), f"{name} has let the process go on")

    def is_there(self):
        return "TracerPid:\t0\n" not in pathlib.Path(f"/proc/{self.pid}/status").read_text()

    def leave(self):
        self.process.send_signal(signal.SIGINT if self.process.args[0] == "strace" else signal.SIGTERM)
        self.process.wait(TIMEOUT_SECONDS)
        wait_until(lambda: not self.is_there(), "the tracer has left")


TRACERS = pytest.mark.parametrize("name", list(Tracer.WORDS))


@TRACERS
def test_tracer_is_there(run, allocprof, runner, target, tmp_path, name):
    """Refused with one sentence; nothing of the process changes."""
    process = Obedient(runner, [target("sleeper")])
    tracer = Tracer(runner, name, process.pid)
    before = maps_of(process.pid), code_of(process.pid)
    for words in (["stat"], ["record", "--live"]):
        done = run([allocprof, *words, "--engine=inside", "-o", tmp_path / "out", "-p", process.pid], expect=125)
        assert re.fullmatch(rb"allocprof: cannot measure process \d+ from inside: another process traces it, [^\n]*\n", done.stderr), done.stderr
        assert (maps_of(process.pid), code_of(process.pid)) == before
    process.ask("alloc 10")
    tracer.leave()
    process.exit()


@TRACERS
def test_tracer_meanwhile(measure, runner, target, name):
    process = Obedient(runner, [target("sleeper")])
    process.ask("alloc 1")
    measured = measure(process, "record")
    process.ask("alloc 10")
    tracer = Tracer(runner, name, process.pid)
    process.ask("alloc 100")
    tracer.leave()
    process.ask("alloc 1000")
    said = measured.finish()
    assert "not complete" not in said and Recording(measured.output).ledger["events"] == 1110, said
    process.exit()


@TRACERS
def test_tracer_at_the_end(measure, runner, target, name):
    """The process cannot be left, which is said; it counts no more, and the next measurement leaves it."""
    process = Obedient(runner, [target("sleeper")])
    process.ask("alloc 1")
    before, descriptors = code_of(process.pid), os.listdir(f"/proc/{process.pid}/fd")
    measured = measure(process, "stat", "--json")
    process.ask("alloc 10")
    tracer = Tracer(runner, name, process.pid)
    measured.finish()
    process.ask("alloc 100")
    report = read_report(measured.output)
    assert report["functions"]["malloc"]["calls"] == 10 and report["complete"] is False, report
    tracer.leave()
    process.ask("alloc 100")
    measured = measure(process, "stat", "--json")
    process.ask("alloc 7")
    measured.finish()
    report = read_report(measured.output)
    assert report["functions"]["malloc"]["calls"] == 7 and report["complete"] is True, report
    await_untouched(process.pid, before)
    assert os.listdir(f"/proc/{process.pid}/fd") == descriptors
    process.exit()


def mallocs(path):
    """Calls of malloc(32)."""
    (calls,), = Recording(path).sql("SELECT sum(calls) FROM counts WHERE function = 'malloc' AND bytes = 32 * calls")
    return calls


class Perf:
    """perf probe and perf stat."""

    def __init__(self, runner, process, directory, allocprof, left):
        needs("perf")
        self.run = Hits(runner)._traced
        self.event = f"allocprof_beside_{os.getpid()}:malloc"
        self.output = directory / "perf"
        self.run(["perf", "probe", "-q", "-x", libc_path(), f"{self.event}=malloc"], expect=0)
        # The kernel keeps it else, whatever becomes of the test.
        left.callback(self.run, ["perf", "probe", "-q", "-d", self.event])
        self.process = runner.start(Hits(runner)._mounted(["perf", "stat", "-I", "50", "-x", ",", "-o", self.output, "-e", self.event,
                                                           "-p", process.pid]), stderr=subprocess.DEVNULL)
        wait_until(lambda: self.lines() or self.process.poll() is not None, "perf counts")

    def lines(self):
        """One for each interval."""
        return re.findall(rf"^ *[\d.]+,(\d+|<not counted>),.*{self.event}", self.output.read_text() if self.output.exists() else "",
                          re.MULTILINE)

    def finish(self):
        self.process.send_signal(signal.SIGINT)
        self.process.wait(TIMEOUT_SECONDS)
        return sum(int(n) for n in self.lines() if n.isdigit())


class Bpftrace:
    """Counts from a call of malloc(48) on. Which process it is to look at it does not obey in each release."""

    def __init__(self, runner, process, directory, allocprof, left):
        needs("bpftrace")
        script = f'uprobe:{libc_path()}:malloc / comm == "sleeper" / {{' \
                 '    if (arg0 == 48) { clear(@n); printf("begins\\n"); } else { @n[ustack(5)] = count(); } }\n' \
                 f'uretprobe:{libc_path()}:malloc / comm == "sleeper" && retval == 0 / {{ @failed = count(); }}\n'
        self.process = runner.start(Hits(runner)._mounted(["bpftrace", "-B", "none", "-p", str(process.pid), "-e", script]),
                                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        said = b""
        while b"begins" not in said:
            assert self.process.poll() is None, said
            process.ask("keep 1")
            if select.select([self.process.stdout], [], [], 0.2)[0]:
                said += os.read(self.process.stdout.fileno(), 4096)

    def finish(self):
        return sum(int(n) for n in re.findall(r"\]: (\d+)$", self.interrupt().decode(), re.MULTILINE))

    def interrupt(self):
        """It was seen to go on after a SIGINT, so it gets one every few seconds."""
        for _ in range(TIMEOUT_SECONDS // 5):
            self.process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                return self.process.communicate(timeout=5)[0]
        raise AssertionError("bpftrace does not end")


class Allocprof:
    def __init__(self, runner, process, directory, allocprof, left):
        self.measured = Measured(runner, allocprof, process.pid, directory / "uprobe", "record", "--live", engine="uprobe")

    def finish(self):
        self.measured.finish()
        return mallocs(self.measured.output)


# In these orders they begin and end.
ORDERS = {"around": "TIit", "within": "ITti", "before": "TIti", "after": "ITit", "afterwards": "IiTt"}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("tool", [Perf, Bpftrace, Allocprof])
def test_probes(measure, allocprof, runner, target, tmp_path, tool, order):
    """Uprobes of others: each counts every call once, and no instruction stays changed."""
    process = Obedient(runner, [target("sleeper")])
    process.ask("keep 1")
    process.ask("alloc 1")
    before, counting, expected, counted = code_of(process.pid), {}, {}, {}
    with contextlib.ExitStack() as left:
        for n, step in enumerate(ORDERS[order], 1):
            name = step.upper()
            if step == "T":
                counting[name] = tool(runner, process, tmp_path, allocprof, left)
            elif step == "I":
                counting[name] = measure(process, "record", "--live")
            elif step == "t":
                counted[name] = counting.pop(name).finish()
            else:
                said = counting[name].finish()
                assert "not complete" not in said, said
                counted[name] = mallocs(counting.pop(name).output)
            process.ask(f"alloc {10 ** n}")
            for name in counting:
                expected[name] = expected.get(name, 0) + 10 ** n
    assert counted == expected
    await_untouched(process.pid, before)
    assert all("allocprof-inside" in line for line in maps_of(process.pid) if MEMORY in line)
    process.exit()
