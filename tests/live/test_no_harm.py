# SPDX-License-Identifier: GPL-3.0-or-later
"""A target behaves under allocprof as without it: output, input, exit status, signals, and all that
a process inherits."""

import os
import re
import shlex
import signal

import pytest

from support import (Obedient, TIMEOUT_SECONDS, second_libc, shell_status, stated_cases,
                     without_summary)
from terminal import on_terminal

pytestmark = pytest.mark.engines("uprobe", "preload")

# "live" is `record --live`.
COMMANDS = ["stat", "record", "live"]


def words_of(command):
    return ["record", "--live"] if command == "live" else [command]


@pytest.fixture
def under(allocprof, tmp_path):
    """The command line that runs one under allocprof, which reports to a file."""
    def make(command, argv):
        output = str(tmp_path / f"{command}.out")
        return [allocprof, *words_of(command), "-o", output, "--",
                *[str(word) for word in argv]]
    return make


# Their own malloc runs, and no other that is preloaded. That is said, where nothing else counts them.
OWN_MALLOC = ("own_malloc", "print_backtrace_in_malloc")


def without_gap(stderr, argv):
    if os.environ["ALLOCPROF_ENGINE"] != "preload" or os.path.basename(str(argv[0])) not in OWN_MALLOC:
        return stderr
    return re.sub(rb"^allocprof: not complete: 1 process of the program .*, with its own malloc: .*\n", b"", stderr,
                  flags=re.MULTILINE)


BARE = {}


def run_alone(run, argv, **options):
    """Once for all commands that it is compared with."""
    key = str((argv, options))
    if key not in BARE:
        BARE[key] = run(argv, **options)
    return BARE[key]


def assert_same(run, under, command, argv, **options):
    bare = run_alone(run, argv, **options)
    ours = run(under(command, argv), **options)
    stderr, summary = without_summary(ours.stderr)
    assert len(summary) == {"stat": 0, "record": 1, "live": 4}[command], ours
    assert (ours.status, ours.stdout, without_gap(stderr, argv)) == (bare.status, bare.stdout, bare.stderr)
    return bare


TARGETS = pytest.mark.parametrize("words, status", [
    (["every_function"], 3),
    (["threads"], 0),
    (["fork_noexec"], 0),
    (["vfork_exec"], 0),
    (["spawn"], 0),
    (["throw"], 6),
    (["longjmp"], 0),
    (["cancel"], 0),
    (["pthread_exit_main"], 7),
    (["print_backtrace"], 0),
    (["signals"], 0),
    (["segv"], 139),
    (["ignore_int"], 5),
    (["close_all"], 4),
    (["exec_itself", "50"], 0),
    (["fork_storm"], 0),
    (["threads", "64", "100"], 0),
    (["many_stacks", "-t", "4", "100000", "1000"], 0),
    (["print_backtrace_in_malloc"], 0),
    (["own_malloc"], 0),
    (["live_random", "1", "1", "5000"], 0),
    (["case_study", "100"], 0),
    *((["return_hazards", case], 0) for case in stated_cases("return_hazards")),
], ids=lambda value: " ".join(value) if isinstance(value, list) else None)


@pytest.mark.covering(1, command="live")
@pytest.mark.fast("every_function-3-stat", "threads 64 100-0-live", "fork_noexec-0-record", "vfork_exec-0-live",
                  "signals-0-record", "longjmp-0-live", "close_all-4-stat", "return_hazards jump-0-live")
@pytest.mark.engines("uprobe")
@pytest.mark.parametrize("command", COMMANDS)
@TARGETS
def test_targets(run, under, target, command, words, status):
    bare = assert_same(run, under, command, [target(words[0]), *words[1:]])
    assert bare.status == status


@pytest.mark.engines("preload")
@TARGETS
def test_targets_inside(run, under, target, words, status):
    """As test_inside_harm has it for the library alone."""
    bare = assert_same(run, under, "live", [target(words[0]), *words[1:]])
    assert bare.status == status


@pytest.mark.parametrize("command", [name for name in COMMANDS if name != "live"])
def test_backtrace_from_a_fault(run, under, target, command, own_libc):
    """Return probes of other recordings stand in no C library but the system's."""
    assert_same(run, under, command, [target("print_backtrace_in_malloc"), "fault"], env=own_libc)


def test_backtrace_from_within_the_allocator(run, under, target, engine, own_libc):
    """A handler that interrupts realloc finds a return probe's trampoline: what is outside of realloc
    is missing from its backtrace, and nothing else is changed (docs/live.md)."""
    argv = [target("print_backtrace_in_malloc"), "fault"]
    bare = run(argv, env=own_libc, expect=0).stdout.splitlines()
    ours = run(under("live", argv), env=own_libc, expect=0).stdout.splitlines()
    if engine == "preload":
        # The library waits for what realloc returns.
        own = [line for line in ours if b"  inside.so+" in line]
        assert len(own) == 1
        ours.remove(own[0])
        assert ours == bare
        return
    assert ours[:-1] == bare[:len(ours) - 1]
    assert ours[-1] == b"  unknown"


@pytest.mark.covering(1)
@pytest.mark.fast("live")
@pytest.mark.parametrize("command", COMMANDS)
def test_second_libc(run, under, target, command, tmp_path):
    env = second_libc(tmp_path / "libc")
    assert_same(run, under, command, [target("every_function")], env=env)


@pytest.mark.covering(1)
@pytest.mark.fast("false-1-record", "sh -c kill -TERM $$-143-stat", "sh -c kill -KILL $$-137-live")
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("argv, status", [
    (["true"], 0),
    (["false"], 1),
    (["sh", "-c", "exit 77"], 77),
    (["sh", "-c", "kill -TERM $$"], 143),
    (["sh", "-c", "kill -KILL $$"], 137),
], ids=lambda value: " ".join(value) if isinstance(value, list) else None)
def test_exit_status(run, under, command, argv, status):
    run(argv, expect=status)
    run(under(command, argv), expect=status)


@pytest.mark.covering(1)
@pytest.mark.fast("stat")
@pytest.mark.parametrize("command", COMMANDS)
def test_command_that_cannot_run(run, under, command, tmp_path):
    assert run(under(command, ["/nonexistent/program"]), expect=127).stderr
    (tmp_path / "data").write_text("not a program")
    assert run(under(command, [tmp_path / "data"]), expect=126).stderr


@pytest.mark.covering(1)
@pytest.mark.fast("record")
@pytest.mark.parametrize("command", COMMANDS)
def test_data_passes_through(run, under, command):
    data = bytes(range(256)) * 4096
    result = run(under(command, ["cat"]), stdin=data, expect=0)
    assert result.stdout == data
    assert without_summary(result.stderr)[0] == b""


def test_report_without_file_leaves_stdout_alone(run, allocprof):
    result = run([allocprof, "stat", "--", "sh", "-c", "echo out; echo err >&2"], expect=0)
    assert result.stdout == b"out\n"
    assert result.stderr.startswith(b"err\n")
    assert b"malloc" in result.stderr


INHERITED = {
    # ls has one file more, the directory.
    "open_files": "ls /proc/self/fd",
    "signals": "grep -E '^(SigPnd|ShdPnd|SigBlk|SigIgn|SigCgt):' /proc/self/status",
    "ignored_signals": "trap '' HUP USR1; grep ^SigIgn /proc/self/status",
    "limits": "cat /proc/self/limits",
    # The variable that the tests choose the engine by.
    "environment": "env | grep -v ^ALLOCPROF_ENGINE= | sort",
    "capabilities": "grep -E '^(Cap|NoNewPrivs|Seccomp|Uid|Gid|Groups)' /proc/self/status",
    "directory": "pwd -P; umask; nice",
    "scheduling": "grep -E '^(Cpus_allowed|Mems_allowed)' /proc/self/status; chrt -p $$ | sed 's/pid [0-9]*//'; cat /proc/self/oom_score_adj",
    "namespaces": "readlink /proc/self/ns/pid /proc/self/ns/net /proc/self/ns/user /proc/self/root",
    "tracer": "grep ^TracerPid /proc/self/status",
    "timerslack": "cat /proc/self/timerslack_ns",
}


@pytest.mark.fast("stat", "live")
@pytest.mark.parametrize("command", COMMANDS)
def test_inherited(run, under, command):
    """Each in a shell of its own, started by the one that is the command."""
    script = "".join(f"echo '{name}:'; sh -c {shlex.quote(text)}; " for name, text in INHERITED.items())
    bare = assert_same(run, under, command, ["sh", "-c", script])
    parts = re.split(r"^(\w+):\n", bare.stdout.decode(), flags=re.MULTILINE)
    assert parts[1::2] == list(INHERITED)
    assert all(parts[2::2]), bare


@pytest.mark.covering(1)
@pytest.mark.fast("record")
@pytest.mark.parametrize("command", COMMANDS)
def test_inherited_from_an_unusual_parent(run, under, command):
    """What allocprof gets, ignored signals and open files too, its command gets."""
    script = "grep -E '^Sig(Blk|Ign)' /proc/self/status; ls /proc/self/fd; umask; nice; ulimit -n"
    inner = ["sh", "-c", script]
    # A shell cannot block signals, but it can ignore them and leave files open.
    outer = ("trap '' HUP INT PIPE USR2; umask 027; ulimit -n 500; exec 7</dev/null 9>/dev/null; "
             'exec nice -n 3 "$@"')
    bare = run(["sh", "-c", outer, "sh", *inner], expect=0)
    ours = run(["sh", "-c", outer, "sh", *under(command, inner)], expect=0)
    assert ours.stdout == bare.stdout


def blocked_then_run(run, argv):
    def block():
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1, signal.SIGCHLD, signal.SIGTERM})
    return run(argv, preexec_fn=block, expect=0)


@pytest.mark.covering(1)
@pytest.mark.fast("live")
@pytest.mark.parametrize("command", COMMANDS)
def test_blocked_signals(run, under, command):
    argv = ["grep", "^SigBlk", "/proc/self/status"]
    bare = blocked_then_run(run, argv)
    assert int(bare.stdout.split()[1], 16)
    assert blocked_then_run(run, under(command, argv)).stdout == bare.stdout


@pytest.mark.covering(2)
@pytest.mark.fast("0-record", "2-stat")
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("closed", [0, 1, 2])
def test_closed_streams(run, under, command, closed, tmp_path):
    """Where a standard stream is closed, no file of ours may take its number in the command."""
    seen = tmp_path / "seen"
    inner = ["sh", "-c", 'ls /proc/$$/fd >"$0"', str(seen)]
    outer = ["sh", "-c", f'exec {closed}>&-; exec "$@"', "sh"]
    run([*outer, *inner])
    bare = seen.read_text()
    seen.unlink()
    run([*outer, *under(command, inner)])
    assert seen.read_text() == bare


@pytest.mark.covering(1)
@pytest.mark.fast("record")
@pytest.mark.parametrize("command", COMMANDS)
def test_without_any_stream(run, under, target, command, tmp_path):
    """The report comes all the same, and into its own file only."""
    outer = ["sh", "-c", 'exec 0<&- 1>&- 2>&-; exec "$@"', "sh"]
    assert run([*outer, *under(command, [target("ignore_int")])]).status == \
        run([*outer, target("ignore_int")]).status
    assert (tmp_path / f"{command}.out").stat().st_size > 0


@pytest.mark.covering(1)
@pytest.mark.fast("record")
@pytest.mark.parametrize("command", COMMANDS)
def test_terminal(runner, under, command):
    """The command has the terminal, in the foreground, with its settings."""
    script = ("for fd in 0 1 2; do test -t $fd && echo tty $fd; done; stty -a; "
              # Process group and the terminal's foreground group.
              "set -- $(cut -d ')' -f 2 /proc/$$/stat); test $3 = $6 && echo foreground")
    bare = on_terminal(runner, ["sh", "-c", script])
    assert b"tty 0\ntty 1\ntty 2\n" in bare[0] and b"foreground" in bare[0]
    output, status = on_terminal(runner, under(command, ["sh", "-c", script]))
    # `record` tells, after the command's end, what it has written and how much memory.
    ours = [line for line in output.splitlines(keepends=True) if line.startswith(b"allocprof: ")]
    assert len(ours) == {"stat": 0, "record": 1, "live": 4}[command]
    assert (output.replace(b"".join(ours), b""), status) == bare


@pytest.mark.covering(1)
@pytest.mark.fast("record")
@pytest.mark.parametrize("command", COMMANDS)
def test_interrupt_key(runner, under, target, command):
    """Ctrl-C reaches the command; allocprof waits for it and reports its end."""
    # No shell that traps the signal and reads: one that comes before read(2) begins only sets a flag there.
    argv = [target("await_int")]
    assert on_terminal(runner, argv, b"\x03")[1] == 44
    output, status = on_terminal(runner, under(command, argv), b"\x03")
    assert b"caught" in output
    assert status == 44
    output, status = on_terminal(runner, under(command, [target("ignore_int")]), b"\x03\n")
    assert b"done" in output
    assert status == 5


@pytest.mark.covering(1)
@pytest.mark.fast("live")
@pytest.mark.parametrize("command", COMMANDS)
def test_interrupt_that_kills(runner, under, command):
    argv = ["sh", "-c", "echo ready; read line"]
    assert on_terminal(runner, argv, b"\x03")[1] == 130
    assert on_terminal(runner, under(command, argv), b"\x03")[1] == 130


@pytest.mark.covering(1)
@pytest.mark.fast("stat")
@pytest.mark.parametrize("command", COMMANDS)
def test_terminate_is_passed_on(runner, under, target, command):
    """SIGTERM to allocprof ends the command as if it had been sent there."""
    obedient = Obedient(runner, under(command, [target("sleeper")]))
    obedient.ask("alloc 100")
    obedient.process.send_signal(signal.SIGTERM)
    assert shell_status(obedient.process.wait(TIMEOUT_SECONDS)) == 143


@pytest.mark.engines("uprobe")
@pytest.mark.parametrize("command", COMMANDS)
def test_attached_answers_the_same(runner, allocprof, target, tmp_path, command):
    """While a process is attached to, nothing in its status says so."""
    def status_of(pid):
        with open(f"/proc/{pid}/status") as file:
            return re.findall(r"^(?:TracerPid|Sig(?:Pnd|Blk|Ign|Cgt)|ShdPnd|Cap\w+|Threads|Seccomp):.*", file.read(), re.M)

    obedient = Obedient(runner, [target("sleeper")])
    before = status_of(obedient.pid)
    process = runner.start([allocprof, *words_of(command), "-o", tmp_path / "out",
                            "-p", str(obedient.pid)])
    obedient.ask("alloc 1000")
    assert status_of(obedient.pid) == before
    process.send_signal(signal.SIGINT)
    process.wait(TIMEOUT_SECONDS)
    assert status_of(obedient.pid) == before
    obedient.exit()
