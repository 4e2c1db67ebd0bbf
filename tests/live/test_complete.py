# SPDX-License-Identifier: GPL-3.0-or-later
"""At least 99.9 % of the stacks of real programs, as the distribution builds them, are followed to
their outermost frame: in C, C++, Rust, and two interpreters."""

import pathlib
import shutil
import signal
import sqlite3
import subprocess

import pytest

import conftest
import support
from test_truth import PROGRAMS, Recording

COMPILE = "echo 'int main(void) { return 0; }' >x.c; gcc -O1 -c x.c"

AT_LEAST = 0.999

MORE = {
    "gdb": (["gdb", "-nx", "-batch", "-ex", "info functions ^a", "-ex", "info line main",
             support.TARGETS / "throw"], ""),
}
LANGUAGES = {"C": "sqlite3", "C too": "jq", "C++": "cmake", "C++ and Python": "gdb", "Rust": "rg",
             "Python": "python3", "Perl": "perl"}


def share(recording, name, least=1000):
    recording.assert_no_loss()
    complete, events = recording.ledger["complete"], recording.ledger["events"]
    print(f"{name}: {complete} of {events} stacks complete; others: {recording.reasons()}")
    assert events >= least, "too few to tell"
    return complete / events


@pytest.mark.slow
@pytest.mark.parametrize("name", LANGUAGES.values(), ids=LANGUAGES.keys())
def test_real_program(run, allocprof, tmp_path, name):
    argv, text = {**PROGRAMS, **MORE}[name]
    if not shutil.which(argv[0]):
        conftest.unavailable(f"{argv[0]} is not installed")
    # Deeper ones are not asked for.
    run([allocprof, "record", "--max-depth", "512", "-o", tmp_path / "data", "--", *argv],
        env={"PYTHONMALLOC": "malloc"}, stdin=text.encode(), expect=0)
    recording = Recording(tmp_path / "data")
    assert share(recording, name) >= AT_LEAST, recording.reasons()


STARTED = {
    "compiler": ["sh", "-c", COMPILE],
    "nice": ["nice", "clang-format", "--version"],
    "git": ["env", "git", "grep", "--no-index", "-n", "-e", "static", "--", "src"],
    "several": ["sh", "-c", "for n in 1 2 3; do cmake --version; gdb --version; jq --version; done"],
    "python": ["timeout", "100", "/usr/bin/python3", "-c", "import unittest, json, sqlite3, decimal"],
}


@pytest.mark.fast("compiler-plain", "python-live")
@pytest.mark.parametrize("live", [[], ["--live"]], ids=["plain", "live"])
@pytest.mark.parametrize("name", STARTED)
def test_started_by_another(run, allocprof, tmp_path, name, live):
    """allocprof learns of these programs when they are executed, and they allocate at once: their first
    calls wait for the tables."""
    run([allocprof, "record", *live, "--max-depth", "512", "-o", tmp_path / "data", "--", *STARTED[name]],
        expect=0, cwd=support.SOURCE if name == "git" else tmp_path)
    recording = Recording(tmp_path / "data")
    assert share(recording, name, 300) >= AT_LEAST, recording.reasons()


def test_mappings_change_all_the_time(run, allocprof, target, tmp_path):
    """The kernel does not say what is mapped where while another thread maps memory, so hits wait."""
    run([allocprof, "record", "-e", "malloc", "-o", tmp_path / "data", "--", target("remaps")], expect=0)
    recording = Recording(tmp_path / "data")
    assert share(recording, "remaps", 160000) >= AT_LEAST, recording.reasons()


def test_context_of_boost(run, allocprof, target, tmp_path):
    """Its outermost function has a return address that nothing called from, in code without a table."""
    run([allocprof, "record", "-o", tmp_path / "data", target("contexts")], expect=0)
    recording = support.Recording(tmp_path / "data")
    found = {text: calls for text, calls in recording.texts().items() if "allocate" in text}
    assert found == {"make_fcontext;within;allocate": 3}
    assert recording.ledger["complete"] == recording.ledger["events"], recording.ledger


def waits(data):
    meta = support.Recording(data).meta
    return int(meta["waits"]), int(meta["waits_ns"])


# What hits may wait after allocprof was last seen to work, and once more what they waited before.
WAIT_BUDGET_NS = 10_000_000_000


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
        self.recorder.stdin.write(f"{text}; echo $?\n".encode())
        self.recorder.stdin.flush()
        got = b""
        while not got.endswith(b"0\n"):
            line = self.recorder.stdout.readline()
            assert line, f"{text} ended after {got}"
            got += line
        assert got == expect + b"0\n"

    def end(self):
        self.recorder.stdin.close()
        assert self.recorder.wait(support.TIMEOUT_SECONDS) == 0


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
    """While its calls wait 10 ms each, it gets its signals, is stopped and goes on, and ends as it does alone."""
    bare = run(["sh", "-c", policy + target("held_up")], expect=0).stdout
    shell = Shell(runner, allocprof, tmp_path)
    shell.recorder.send_signal(signal.SIGSTOP)
    shell.say(policy + target("held_up"), expect=bare)
    shell.recorder.send_signal(signal.SIGCONT)
    shell.end()
    n, waited_ns = waits(shell.data)
    assert n >= 100 and waited_ns <= WAIT_BUDGET_NS, f"{n} waits took {waited_ns} ns"
    recording = Recording(shell.data)
    recording.assert_no_loss()
    calls = recording.data.execute("""SELECT sum(calls) FROM counts JOIN processes ON processes.id = process
        WHERE function = 'malloc' AND comm = 'held_up'""").fetchone()[0]
    assert calls == support.stated("held_up")["malloc"].calls


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


@pytest.mark.slow
@pytest.mark.parametrize("options", [["record"], ["record", "--live"], ["stat"]], ids=" ".join)
def test_short_children(run, allocprof, counter, target, tmp_path, options):
    """500 a second for three seconds: none is missed, by the counter that is loaded into each of them."""
    made = counter()
    data = tmp_path / "data"
    run([allocprof, *options, *(["--json"] if options == ["stat"] else []), "-o", data, "--",
         target("preload_exec"), made.path, made.library, target("short_children"), "1500", "500"], expect=0)
    counts = made.read()
    assert counts.images == 1501
    assert counts["malloc"].calls >= 1500 * support.stated("short_children")["malloc"].calls
    if options == ["stat"]:
        wrong = support.differences(support.read_report(data), counts)
    else:
        wrong = support.Recording(data).differences(counts)
        recording = Recording(data)
        assert share(recording, "short children") >= AT_LEAST, recording.reasons()
    assert not wrong, "\n".join(wrong)


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


# What follows the call is more than the way out.
LIBRARY = "void *through(void *(*f)(void)) { void *p = f(); __asm__ volatile(\"nop\"); return p; }\n"
PROGRAM = """#include <stdlib.h>
void *through(void *(*f)(void));
static void *get(void) { void *p = malloc(100); __asm__ volatile("" :: "r"(p)); return p; }
int main(void) { for (int i = 0; i < 100; i++) free(through(get)); return 0; }
"""


def test_library_without_table_is_named(run, allocprof, tmp_path):
    """Frame pointers lead through it, and nothing else hints at it: the tree begins where others do."""
    (tmp_path / "library.c").write_text(LIBRARY)
    (tmp_path / "program.c").write_text(PROGRAM)
    flags = ["-O1", "-g0", "-fno-omit-frame-pointer"]
    subprocess.run(["gcc", *flags, "-shared", "-fPIC", "-nostdlib", "-fno-asynchronous-unwind-tables",
                    "-fno-unwind-tables", "-o", "libno_table.so", "library.c"], cwd=tmp_path, check=True)
    subprocess.run(["gcc", *flags, "-o", "program", "program.c", "./libno_table.so"], cwd=tmp_path, check=True)
    data = tmp_path / "data"
    run([allocprof, "record", "-e", "malloc", "-o", data, "--", tmp_path / "program"], cwd=tmp_path, expect=0)
    recording = Recording(data)
    recording.assert_no_loss()
    assert recording.reasons() == "incomplete_frame_pointers 100"
    with sqlite3.connect(data) as database:
        assert database.execute("SELECT value FROM meta WHERE key = 'no_unwind_table'").fetchall() == \
            [(f"{tmp_path}/libno_table.so",)]
    text = run([allocprof, "report", data], expect=0).stdout.decode()
    assert "\n        frames may be missing (no unwind table in libno_table.so)\n" in text
    tree = run([allocprof, "report", "--tree", data], expect=0).stdout.decode().splitlines()
    assert tree[-1].endswith("> main > through > get > malloc") and "[" not in tree[-1], tree
    assert len(tree) == tree.index(next(line for line in tree if "called function" in line)) + 2, tree
