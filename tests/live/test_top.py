# SPDX-License-Identifier: GPL-3.0-or-later
"""`allocprof top` on a terminal that pyte plays. Targets allocate when they are told to, so that what is shown stands
still, and each test waits until it is shown."""

import os
import pathlib
import re
import shutil
import signal
import subprocess

import pytest

from played_terminal import Terminal
from support import Obedient, Recording, TIMEOUT_SECONDS, clean_environment, target, wait_until

ENGINES = pytest.mark.parametrize("engine", ["inside", "uprobe"])

ENTER, ESCAPE, TAB, F6, CLEAR = "\r", "\033", "\t", "\033[17~", "\025"


@pytest.fixture
def sleeper(runner):
    return Obedient(runner, [target("sleeper")])


@pytest.fixture
def top(runner, allocprof):
    """Begins to watch, and waits until something was seen."""
    def begin(process, *options, rows=24, columns=80, **env):
        terminal = Terminal(runner, [allocprof, "top", "-p", process.pid, "-d", "100ms", *options], rows, columns, **env)
        terminal.wait(rf"\({process.pid}\)")
        return terminal
    return begin


def children_of(pid):
    path = pathlib.Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in path.read_text().split()]


def is_gone(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


@ENGINES
def test_numbers_of_a_recording(top, sleeper, tmp_path, engine):
    """What is shown is what the recording has that `w` writes, and what the target says."""
    terminal = top(sleeper, "--totals", "--sort", "live", f"--engine={engine}")
    terminal.wait("counted inside" if engine == "inside" else "counted by uprobes")
    terminal.wait("no call was seen yet")
    sleeper.ask("keep 1000")
    sleeper.ask("alloc 500")
    sleeper.ask("release 200")
    terminal.wait(r"calls 1,500, bytes 62\.5 KiB, live 37\.5 KiB, growth \+37\.5 KiB, peak")
    terminal.wait(r" 1,000 +46\.9 KiB +37\.5 KiB +\+37\.5 KiB .*  keep")
    data = tmp_path / "written.data"
    terminal.press(f"w{CLEAR}{data}{ENTER}")
    terminal.wait("recording written: ")
    recording = Recording(data)
    assert recording.sql("SELECT sum(allocations), sum(bytes), sum(allocations - frees) FROM blocks") == [(1500, 64000, 800)]
    (peak,), = recording.sql("SELECT sum(peak_bytes) FROM blocks")
    terminal.wait(rf"peak {peak / 1024:.1f} KiB")
    sleeper.exit()
    terminal.wait(r"(?s)has ended.*calls 1,500,.*live 37\.5 KiB")
    terminal.press("q")
    terminal.end()


def test_keys(top, sleeper):
    terminal = top(sleeper, "--totals")
    sleeper.ask("keep 10")
    sleeper.ask("alloc 20")
    terminal.wait("calls 30,")
    terminal.wait(">BYTES.*FUNCTION")
    terminal.press("C")
    terminal.wait(r"(?s)>CALLS.* 20 .*  main.* 10 .*  keep")
    terminal.press("M")
    terminal.wait("(?s)>LIVE.*  keep.*  main")
    terminal.press(F6)
    terminal.wait(">GROWTH")
    terminal.press("1")
    terminal.wait("BYTES", but="CALLS")
    terminal.press("1")
    terminal.wait("CALLS")
    for kind, name in [("STACK", "keep < main"), ("THREAD", r"sleeper of sleeper"), ("PROCESS", r"sleeper \("), ("FUNCTION", "keep")]:
        terminal.press(TAB)
        terminal.wait(kind)
        terminal.wait(name)
    terminal.press(f"/kee{ENTER}")
    terminal.wait(r"filter: kee", but="  main")
    terminal.wait("calls 10,")
    terminal.press(f"/{CLEAR}nobody{ENTER}")
    terminal.wait("nothing is selected")
    terminal.press(f"/{CLEAR}/[/{ENTER}")
    terminal.wait("'/\\[/'", but="filter:")
    terminal.press(f"/{CLEAR}{ENTER}M")
    terminal.wait("  main")
    terminal.press(ENTER)
    terminal.wait("STACK", but="  main$")
    terminal.press(ENTER)
    terminal.wait(r"FRAMES.*\n +0  malloc\n +1  keep\n +2  main\n")
    terminal.press(ESCAPE)
    terminal.wait("STACK")
    terminal.press(ESCAPE)
    terminal.wait("FUNCTION")
    terminal.press("h")
    terminal.wait("KEYS")
    terminal.press("x")
    terminal.wait("FUNCTION")
    terminal.press("r")
    terminal.wait("calls 0,")
    sleeper.ask("alloc 7")
    terminal.wait("calls 7,")
    terminal.press("p")
    terminal.wait("PAUSED")
    sleeper.ask("alloc 7")
    terminal.press("p")
    terminal.wait("calls 14,", but="PAUSED")
    terminal.press("t")
    terminal.wait("CALLS/s")
    terminal.press("q")
    terminal.end()
    sleeper.exit()


def test_sizes(top, sleeper):
    terminal = top(sleeper)
    sleeper.ask("keep 10")
    terminal.wait("  keep")
    terminal.wait(r"(?s)PEAK.*F10 Quit\Z")
    terminal.resize(7, 30)
    terminal.wait("too small: 40 x 8")
    terminal.resize(8, 40)
    terminal.wait("  keep")
    terminal.resize(50, 200)
    terminal.wait("(?s)PEAK.*  keep")
    terminal.wait(r"F10 Quit\Z")
    terminal.press("\003")
    terminal.end()
    assert b"\033[?1049l" in terminal.raw, "the terminal was not given back"
    sleeper.exit()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_signals_give_the_terminal_back(top, sleeper, number):
    terminal = top(sleeper)
    terminal.process.send_signal(number)
    terminal.end()
    assert b"\033[?1049l" in terminal.raw
    sleeper.exit()


def test_stopped_and_continued(runner, allocprof, sleeper):
    """By a shell with job control."""
    words = ["bash", "-mc", '"$@"; echo IS STOPPED; read -r _; fg', "bash", allocprof, "top", "-p", sleeper.pid, "-d", "100ms", "--totals"]
    terminal = Terminal(runner, words)
    terminal.wait("no call was seen yet")
    terminal.press("\032")
    terminal.wait("IS STOPPED")
    assert b"\033[?1049l" in terminal.raw
    sleeper.ask("keep 10")
    terminal.press(ENTER)
    terminal.wait("calls 10,", but="IS STOPPED")
    terminal.press("q")
    terminal.end()
    sleeper.exit()


@pytest.mark.parametrize("value", ["", "1"])
def test_colours(top, sleeper, value):
    """Growth is red, but for who wants no colours."""
    terminal = top(sleeper, NO_COLOR=value)
    # The row of the cursor has a look of its own.
    sleeper.ask("alloc 100")
    sleeper.ask("keep 10")
    terminal.wait(r"(?s)  main.*\+480 B.*  keep")
    terminal.press("q")
    terminal.end()
    assert bool(re.search(rb"\033\[3[0-9]m", terminal.raw)) == (not value)
    sleeper.exit()


@pytest.mark.parametrize("name", ["dumb", "", "no-such-terminal"])
def test_terminals_that_cannot_be_drawn_on(runner, allocprof, sleeper, name):
    terminal = Terminal(runner, [allocprof, "top", "-p", sleeper.pid], columns=200, TERM=name)
    terminal.end(125)
    assert "--batch" in terminal.text and b"\033" not in terminal.raw
    sleeper.exit()


def test_no_terminal(run, allocprof, sleeper):
    assert b"--batch" in run([allocprof, "top", "-p", sleeper.pid], expect=125).stderr
    assert b"-p, or its name" in run([allocprof, "top", "ls"], expect=64).stderr
    assert b"no processes" in run([allocprof, "top", "-b"], expect=64).stderr
    assert b"-n means nothing" in run([allocprof, "top", "-n", "1", "-p", sleeper.pid], expect=64).stderr
    gone = run([allocprof, "top", "-b", "-p", "999999999"], expect=125).stderr
    assert gone.count(b"there is no process") == 1
    sleeper.exit()


def test_batch(runner, allocprof, sleeper):
    """Prints until the target ends, and last what the whole recording has."""
    process = runner.start([allocprof, "top", "-b", "-d", "100ms", "--totals", "--by=process", "-p", sleeper.pid],
                           stdout=subprocess.PIPE)
    first = process.stdout.readline()
    assert re.match(rb"allocprof top, .*: sleeper \(\d+\), ", first)
    sleeper.ask("keep 10")
    sleeper.exit()
    last = process.stdout.read().decode().rsplit("allocprof top", 1)[1]
    assert process.wait(TIMEOUT_SECONDS) == 0
    assert "has ended" in last and "calls 10, bytes 480 B, live 480 B" in last
    row, = [line for line in last.splitlines() if line.endswith(f"sleeper ({sleeper.pid})")]
    assert row.split()[:3] == ["10", "480", "B"]


def test_batch_without_output(run, allocprof, sleeper):
    """The disk is full."""
    said = run(["sh", "-c", 'exec "$@" > /dev/full', "sh", allocprof, "top", "-b", "-d", "100ms", "-p", sleeper.pid], expect=125).stderr
    assert b"cannot write standard output: No space left on device" in said
    sleeper.exit()


@ENGINES
@pytest.mark.parametrize("both", [False, True])
def test_killed(top, sleeper, tmp_path, engine, both):
    """Neither a process nor a file stays, and the target goes on."""
    terminal = top(sleeper, f"--engine={engine}", TMPDIR=str(tmp_path))
    recorder, = children_of(terminal.process.pid)
    if both:
        os.kill(recorder, signal.SIGSTOP)
    terminal.process.kill()
    if both:
        os.kill(recorder, signal.SIGKILL)
    wait_until(lambda: is_gone(recorder), "the recorder has ended")
    assert terminal.process.wait(TIMEOUT_SECONDS) == -signal.SIGKILL
    assert not list(tmp_path.iterdir())
    sleeper.ask("alloc 1000")
    sleeper.exit()


def test_processes_come_and_go(runner, allocprof, tmp_path):
    """By name; one that has ended has nothing live."""
    program = tmp_path / "comes-and-goes"
    shutil.copy(target("sleeper"), program)
    first = Obedient(runner, [program])
    terminal = Terminal(runner, [allocprof, "top", "--name", "comes-and-goes", "-d", "100ms", "--by=process", "--totals"])
    terminal.wait(rf"\({first.pid}\)")
    second = Obedient(runner, [program])
    first.ask("keep 1000")
    second.ask("keep 500")
    terminal.wait(rf"(?s)2 processes.*1,000 .*46\.9 KiB .*\({first.pid}\).*500 .*23\.4 KiB .*\({second.pid}\)")
    first.exit()
    terminal.wait(rf"comes-and-goes \({second.pid}\), .*\n.*live 23\.4 KiB", but="2 processes")
    terminal.wait(rf" 1,000 +46\.9 KiB +0 B .*\({first.pid}\)")
    terminal.press("q")
    terminal.end()
    second.exit()


def test_hostile_names(runner, allocprof, tmp_path):
    """Names of programs do not steer the terminal, nor what --batch prints."""
    program = tmp_path / "\033]2;x\a\u6f22\udcff"
    shutil.copy(target("sleeper"), program)
    sleeper = Obedient(runner, [program])
    sleeper.ask("keep 1")
    terminal = Terminal(runner, [allocprof, "top", "-p", sleeper.pid, "-d", "100ms", "--by=process"])
    sleeper.ask("keep 10")
    terminal.wait(r"\?\]2;x\?")
    terminal.press("q")
    terminal.end()
    assert b"\033]2" not in terminal.raw and b"\xff" not in terminal.raw
    text = subprocess.run([allocprof, "top", "-p", str(sleeper.pid), "-b", "-n", "1", "-d", "100ms", "--by=process"],
                          env=clean_environment(), stdout=subprocess.PIPE, check=True).stdout
    assert b"?]2;x?" in text and b"\033" not in text and b"\xff" not in text
    sleeper.exit()
