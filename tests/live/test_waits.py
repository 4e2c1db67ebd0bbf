# SPDX-License-Identifier: GPL-3.0-or-later
"""Calls that wait until the recorder has what it needs to follow their stacks: bounded, and unnoticed by the
target but by the clock."""

import pathlib
import shutil
import signal
import subprocess

import pytest

import support
from test_complete import AT_LEAST, COMPILE, share
from test_truth import Recording


def waits(data):
    meta = support.Recording(data).meta
    return int(meta["waits"]), int(meta["waits_ns"])


# What hits may wait after allocprof was last seen to work, and once more what they waited before.
WAIT_BUDGET_NS = 10_000_000_000
# AP_WAITS_BUDGET_NS: what one process may wait for tables.
PROCESS_BUDGET_NS = 5_000_000_000
# What a call waits for a table at the most (wait_abi.h).
LONGEST_NS = 10_000_000


class Shell:
    """A shell that is recorded. While the recorder is stopped, nobody makes tables for the programs that the shell
    starts, so that their calls wait until the budget is used up."""

    def __init__(self, runner, allocprof, directory):
        self.data = directory / "data"
        self.recorder = runner.start([allocprof, "record", "-o", self.data, "--", "sh"], stdin=subprocess.PIPE,
                                     stdout=subprocess.PIPE, cwd=directory)
        self.say("true", expect=b"")

    def say(self, text, expect):
        """Runs @text, which succeeds and prints what is expected."""
        self.recorder.stdin.write(f"{text}; echo status $?\n".encode())
        self.recorder.stdin.flush()
        got = line = b""
        while not line.startswith(b"status "):
            line = self.recorder.stdout.readline()
            assert line, f"{text} ended after {got}"
            got += line
        assert got == expect + b"status 0\n"

    def end(self):
        self.recorder.stdin.close()
        assert self.recorder.wait(support.TIMEOUT_SECONDS) == 0


@pytest.mark.slow
def test_recorder_that_is_stopped_holds_nobody_up(runner, allocprof, tmp_path):
    """The compiler allocates ten thousand times in files that nobody prepares tables for."""
    shell = Shell(runner, allocprof, tmp_path)
    shell.recorder.send_signal(signal.SIGSTOP)
    shell.say(COMPILE, expect=b"")
    shell.recorder.send_signal(signal.SIGCONT)
    shell.end()
    n, waited_ns = waits(shell.data)
    assert n and waited_ns <= WAIT_BUDGET_NS, f"{n} waits took {waited_ns} ns"


@pytest.mark.fast("normal")
@pytest.mark.parametrize("policy", ["", "taskset -c 0 chrt -f 50 "], ids=["normal", "real-time"])
def test_waiting_target_notices_nothing(run, runner, allocprof, target, tmp_path, policy):
    """It gets its signals while its calls wait, is stopped and goes on, and ends as it does alone. Calls wait for less and less
    while there is room to send their stacks."""
    bare = run(["sh", "-c", policy + target("held_up")], expect=0).stdout
    shell = Shell(runner, allocprof, tmp_path)
    shell.recorder.send_signal(signal.SIGSTOP)
    shell.say(policy + target("held_up"), expect=bare)
    shell.recorder.send_signal(signal.SIGCONT)
    shell.end()
    n, waited_ns = waits(shell.data)
    assert n >= 250 and waited_ns <= 0.6 * n * LONGEST_NS, f"{n} waits took {waited_ns} ns"
    recording = Recording(shell.data)
    recording.assert_no_loss()
    calls = recording.data.execute("""SELECT sum(calls) FROM counts JOIN processes ON processes.id = process
        WHERE function = 'malloc' AND comm = 'held_up'""").fetchone()[0]
    assert calls == support.stated("held_up")["malloc"].calls


SLEEPS = """
#include <stdlib.h>
#include <sys/resource.h>
int main(void)
{
	struct rusage usage;
	void *volatile block = malloc(1);
	free(block);
	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_nvcsw > 1000;
}
"""


@pytest.mark.engines("preload")
@pytest.mark.fast("preload-table")
@pytest.mark.parametrize("flags", [[], ["-static"]], ids=["table", "answer"])
def test_stopped_recorder_and_programs_that_come(runner, allocprof, compiled, tmp_path, flags):
    """Each has a file of its own, for which it waits for a table, or whose calls another engine is to count. All together wait as
    long as one, and sleep meanwhile."""
    programs = [compiled(SLEEPS, *flags, name=f"program{i}") for i in range(4)]
    shell = Shell(runner, allocprof, tmp_path)
    shell.recorder.send_signal(signal.SIGSTOP)
    for program in programs:
        shell.say(program, expect=b"")
    shell.recorder.send_signal(signal.SIGCONT)
    shell.say("true", expect=b"")
    shell.end()
    n, waited_ns = waits(shell.data)
    assert n and waited_ns <= WAIT_BUDGET_NS, f"{n} waits took {waited_ns} ns"


def test_recorder_is_killed_while_calls_wait(runner, allocprof, target, tmp_path):
    """What waits goes on at once or after its 10 ms, without probes."""
    shell = Shell(runner, allocprof, tmp_path)
    shell.recorder.send_signal(signal.SIGSTOP)
    shell.recorder.stdin.write(f"{target('held_up')} & wait $!; echo $?\n".encode())
    shell.recorder.stdin.flush()
    # It has begun to make calls, of which each waits.
    children = f"/proc/{shell.recorder.pid}/task/{shell.recorder.pid}/children"
    support.wait_until(lambda: "held_up" in started_by(children), "the shell has started the program")
    shell.recorder.kill()
    lines = [shell.recorder.stdout.readline() for _ in range(2)]
    assert lines[0].startswith(b"failed 0, errno 0, clock 0, memory 0; ") and lines[1] == b"0\n", lines
    shell.recorder.stdin.close()


def started_by(children):
    """Names of the processes that the children listed in that file have started."""
    names = []
    for child in pathlib.Path(children).read_text().split():
        names += subprocess.run(["ps", "-o", "comm=", "--ppid", child], stdout=subprocess.PIPE,
                                check=False).stdout.decode().split()
    return names


@pytest.mark.fast("normal")
@pytest.mark.parametrize("policy", [[], ["chrt", "-f", "50"]], ids=["normal", "real-time"])
def test_one_processor(run, allocprof, tmp_path, policy):
    """Where target and allocprof share a processor, at real-time priority too, it only takes longer."""
    data = tmp_path / "data"
    run(["taskset", "-c", "0", allocprof, "record", "-o", data, "--", *policy, "sh", "-c", COMPILE], expect=0,
        cwd=tmp_path)
    n, waited_ns = waits(data)
    # The recorder runs now and then even so: the kernel leaves it a twentieth.
    assert waited_ns <= 5 * WAIT_BUDGET_NS, f"{n} waits took {waited_ns} ns"
    assert not support.Recording(data).ledger["lost"]


@pytest.mark.slow
def test_mappings_change_all_the_time(run, allocprof, target, tmp_path):
    """The kernel does not say what is mapped where while another thread maps memory, so hits wait. Those that waited in vain
    send their stacks, and allocprof, which unwinds these while hits spin on all processors, gives hits time to wait on."""
    data = tmp_path / "data"
    run([allocprof, "record", "-e", "malloc", "-o", data, "--", target("remaps")], expect=0)
    recording = Recording(data)
    complete = share(recording, "remaps", 160000)
    n, waited_ns = waits(data)
    assert n, "no call waited"
    assert complete >= AT_LEAST, f"{recording.reasons()}; {n} waits took {waited_ns} ns"
    others = {name for name, value in recording.ledger.items() if name.startswith(("incomplete_", "lost_")) and value}
    assert others <= {"incomplete_no_table"}, recording.reasons()


PLUGIN = """
#include <stdlib.h>
void *plugin(void) { void *block = malloc(123); __asm__ volatile("" ::: "memory"); return block; }
"""

LOADS = """
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
	char path[4096];
	for (int i = 0; i < atoi(argv[2]); i++) {
		snprintf(path, sizeof(path), "%s/%d.so", argv[1], i);
		void *library = dlopen(path, RTLD_NOW);
		void *(*plugin)(void) = (void *(*)(void))dlsym(library, "plugin");
		free(plugin());
	}
}
"""


@pytest.mark.slow
def test_many_libraries(run, allocprof, compiled, tmp_path):
    """Each call waits for the table of a library that has just been loaded, on the one processor where this table is made: what
    waits in vain takes the processor from what it waits for. A process waits for so long in all, however many libraries it loads."""
    library = compiled(PLUGIN, "-shared", "-fPIC", name="plugin")
    for number in range(800):
        shutil.copy(library, tmp_path / f"{number}.so")
    data = tmp_path / "data"
    run(["taskset", "-c", "0", allocprof, "record", "-q", "--no-symbols", "--engine=uprobe", "-o", data, "--", compiled(LOADS), tmp_path, 800],
        expect=0, timeout=5 * support.TIMEOUT_SECONDS)
    n, waited_ns = waits(data)
    assert n and waited_ns <= PROCESS_BUDGET_NS * 1.1, f"{n} waits took {waited_ns} ns"
