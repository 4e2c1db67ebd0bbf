# SPDX-License-Identifier: GPL-3.0-or-later
"""Where and how a recording runs: signals and durations that end it, --no-follow, daemons that stay
behind, and a root and namespaces of its own as a privileged container has."""

import os
import pathlib
import re
import shutil
import signal
import subprocess

import pytest

from containers import in_container
from support import (Obedient, Recording, TIMEOUT_SECONDS, command_of, differences, folded,
                     patched_functions, read_report, second_libc, shell_status, stated, wait_until,
                     wait_until_counting)

COMMANDS = ["stat", "record"]


def argv_of(allocprof, command, output, *options):
    return [allocprof, command, *(["--json"] if command == "stat" else []), "-o", str(output),
            *options]


def mallocs(command, output):
    """malloc's calls by the report of either command."""
    if command == "stat":
        return read_report(output)["functions"]["malloc"]["calls"]
    recording = Recording(output)
    assert recording.unbalanced() == []
    assert recording.ledger["lost"] == 0
    return recording.functions.get("malloc", (0, 0))[0]


def wait_for_no_breakpoint(pid):
    wait_until(lambda: not patched_functions(pid), f"{pid} has no breakpoint")


# The end of a recording

@pytest.mark.fast("sigint-record")
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT],
                         ids=lambda stop: stop.name.lower())
def test_signal_ends_an_attached_recording(runner, own_libc, allocprof, target, tmp_path, command, stop):
    """The first signal ends it; the data is kept, and the target knows nothing of it."""
    obedient = Obedient(runner, [target("sleeper")], env=own_libc)
    process = runner.start([*argv_of(allocprof, command, tmp_path / "x"), "-p", obedient.pid],
                           stderr=-1)
    wait_until_counting(allocprof, process)
    obedient.ask("alloc 1234")
    process.send_signal(stop)
    _, stderr = process.communicate()
    assert shell_status(process.returncode) == 0
    assert f"process {obedient.pid} goes on without probes".encode() in stderr
    assert mallocs(command, tmp_path / "x") == 1234
    obedient.ask("alloc 10")
    wait_for_no_breakpoint(obedient.pid)
    obedient.exit()


@pytest.mark.fast("sigterm-stat")
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT],
                         ids=lambda stop: stop.name.lower())
def test_signal_is_passed_to_a_launched_command(runner, allocprof, target, tmp_path, command, stop):
    """It dies by it as it would alone; what it did until then is kept."""
    obedient = Obedient(runner, [*argv_of(allocprof, command, tmp_path / "x"), "--",
                                 target("sleeper")])
    obedient.ask("alloc 1234")
    obedient.process.send_signal(stop)
    assert shell_status(obedient.process.wait(TIMEOUT_SECONDS)) == 128 + stop
    assert mallocs(command, tmp_path / "x") == 1234


@pytest.mark.covering(1)
@pytest.mark.engines("uprobe", "preload")
@pytest.mark.fast("uprobe-sigterm-record", "preload-sigusr1-stat")
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1,
                                    signal.SIGUSR2, signal.SIGALRM], ids=lambda number: number.name.lower())
def test_signal_of_a_command_to_its_group(run, allocprof, target, tmp_path, command, number):
    """allocprof is in the group, too: it neither passes the signal on once more nor ends by it."""
    done = run(["setsid", "-w", *argv_of(allocprof, command, tmp_path / "x"), "--", target("group_signal"), int(number)],
               expect=3)
    assert done.stdout == b"seen 1\n", done
    assert (tmp_path / "x").exists()


@pytest.mark.fast("record")
@pytest.mark.parametrize("command", COMMANDS)
def test_second_signal_ends_a_recording(runner, own_libc, allocprof, target, tmp_path, command):
    """A command that ignores the first goes on; the second ends the recording, not the command."""
    obedient = Obedient(runner, [*argv_of(allocprof, command, tmp_path / "x"), "--",
                                 target("ignore_int")], env=own_libc, stderr=open(tmp_path / "stderr", "wb"))
    process = obedient.process
    child = command_of(process.pid)
    process.send_signal(signal.SIGINT)
    # The first has been taken, and not only been sent, where it is pending no more.
    pending = lambda: [int(line.split()[1], 16) for line in open(f"/proc/{process.pid}/status")
                       if line.startswith("ShdPnd")][0]
    wait_until(lambda: process.poll() is not None or not pending(), "the first signal is taken")
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    assert shell_status(process.wait(TIMEOUT_SECONDS)) == 0
    assert f"process {child} goes on without probes" in (tmp_path / "stderr").read_text()
    assert mallocs(command, tmp_path / "x") == 3
    wait_for_no_breakpoint(child)
    process.stdin.write(b"\n")
    process.stdin.flush()
    obedient.expect_line("done")


@pytest.mark.fast("launched-record")
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("launched", [True, False], ids=["launched", "attached"])
def test_duration(runner, own_libc, allocprof, target, tmp_path, command, launched):
    """The recording ends, the target does not."""
    argv = argv_of(allocprof, command, tmp_path / "x", "--duration", "300ms")
    if launched:
        # A file: the command, which goes on, holds stderr too.
        obedient = Obedient(runner, [*argv, "--", target("sleeper")], env=own_libc,
                            stderr=open(tmp_path / "stderr", "wb"))
        process = obedient.process
        pid = None
    else:
        obedient = Obedient(runner, [target("sleeper")], env=own_libc)
        process = runner.start([*argv, "-p", obedient.pid],
                               stderr=open(tmp_path / "stderr", "wb"))
        pid = obedient.pid
    assert shell_status(process.wait(TIMEOUT_SECONDS)) == 0
    said = (tmp_path / "stderr").read_text()
    assert " goes on without probes" in said
    pid = pid or int(said.split(" goes on")[0].split()[-1])
    wait_for_no_breakpoint(pid)
    obedient.ask("alloc 5000")
    if command == "stat":
        report = read_report(tmp_path / "x")
        assert report["functions"]["malloc"]["calls"] == 0
        assert report["exit_status"] is None
        assert report["elapsed_seconds"] >= 0.3
    else:
        assert Recording(tmp_path / "x").ledger["events"] == 0
    if not launched:
        obedient.exit()


@pytest.mark.parametrize("options", [("record", "--live"), ("stat", "--live"), ("stat",)],
                         ids=lambda options: " ".join(options))
def test_attached_target_ends(runner, allocprof, target, tmp_path, options):
    """The recording ends with it, and says so; nothing is said of what the process may do later."""
    obedient = Obedient(runner, [target("sleeper")])
    process = runner.start([allocprof, *options, "-o", str(tmp_path / "x"), "-p", obedient.pid],
                           stderr=-1)
    wait_until_counting(allocprof, process)
    obedient.ask("alloc 1234")
    obedient.exit()
    said = process.communicate(timeout=TIMEOUT_SECONDS)[1].decode()
    assert shell_status(process.returncode) == 0
    assert f"process {obedient.pid} has ended, and the recording with it" in said
    assert "goes on" not in said and "may still be freed" not in said
    if options[0] == "stat":
        report = (tmp_path / "x").read_text()
        assert f"Process {obedient.pid} has ended, and the counting with it." in report
        assert "goes on" not in report
    else:
        # What it had before is not taken for a growth from nothing.
        first, = Recording(tmp_path / "x").sql(
            "SELECT live, rss_bytes FROM timeline ORDER BY time_ns LIMIT 1")
        assert first[0] == 0 and first[1] > 0


@pytest.mark.fast("stat")
@pytest.mark.parametrize("command", COMMANDS)
def test_command_that_ends_before_the_duration(run, allocprof, counter, target, tmp_path, command):
    made = counter()
    run([*argv_of(allocprof, command, tmp_path / "x", "--duration", "1h"), "--",
         target("preload_exec"), made.path, made.library, target("every_function")], expect=3)
    assert mallocs(command, tmp_path / "x") == made.read()["malloc"].calls


# One process

@pytest.mark.fast("spawn-record", "vfork_exec-stat")
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("name", ["spawn", "fork_noexec", "vfork_exec"])
def test_no_follow(run, allocprof, counter, target, tmp_path, command, name):
    """What the command itself does, to the last call: the rest is a child's."""
    own = {"spawn": 4, "fork_noexec": 17, "vfork_exec": 0}[name]
    startup, made = counter(), counter()
    run([target("nothing")], env=startup.env(), expect=0)
    run([*argv_of(allocprof, command, tmp_path / "x", "--no-follow"), "--",
         target("preload_exec"), made.path, made.library, target(name)], expect=0)
    counted = mallocs(command, tmp_path / "x")
    assert counted == own + startup.read()["malloc"].calls
    assert made.read()["malloc"].calls > counted
    if command == "stat":
        assert read_report(tmp_path / "x")["processes"] == 1
    else:
        pids = Recording(tmp_path / "x").sql("SELECT DISTINCT pid FROM processes")
        assert len(pids) == 1


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("way", ["attached", "no_follow"])
def test_bystander_pays_nothing(runner, own_libc, allocprof, target, tmp_path, command, way):
    """With one process to measure no other gets a breakpoint; without, it does, which is what makes
    this test able to fail."""
    bystander = Obedient(runner, [target("sleeper")], env=own_libc)
    if way == "attached":
        obedient = Obedient(runner, [target("sleeper")], env=own_libc)
        process = runner.start([*argv_of(allocprof, command, tmp_path / "x"), "-p", obedient.pid])
        wait_until_counting(allocprof, process)
    else:
        obedient = Obedient(runner, [*argv_of(allocprof, command, tmp_path / "x", "--no-follow"), "--",
                                     target("sleeper")], env=own_libc)
    wait_for_no_breakpoint(bystander.pid)
    bystander.ask("alloc 1000")
    obedient.ask("alloc 77")
    if way == "attached":
        process.send_signal(signal.SIGINT)
        assert shell_status(process.wait(TIMEOUT_SECONDS)) == 0
    obedient.exit()
    assert mallocs(command, tmp_path / "x") == 77
    wait_for_no_breakpoint(bystander.pid)
    following = Obedient(runner, [*argv_of(allocprof, command, tmp_path / "y"), "--",
                                  target("sleeper")], env=own_libc)
    assert "malloc" in patched_functions(bystander.pid)
    bystander.ask("alloc 1000")
    following.ask("alloc 77")
    following.exit()
    assert mallocs(command, tmp_path / "y") == 77
    wait_for_no_breakpoint(bystander.pid)
    bystander.exit()


# What stays behind

@pytest.mark.fast("record")
@pytest.mark.parametrize("command", COMMANDS)
def test_daemon_goes_on(runner, run, own_libc, allocprof, target, tmp_path, command):
    """A recording ends with its command. A daemon that it left goes on, without breakpoints."""
    fifos = [tmp_path / "in", tmp_path / "out"]
    files = []
    for fifo in fifos:
        os.mkfifo(fifo)
        files.append(os.open(fifo, os.O_RDWR))
    result = run([*argv_of(allocprof, command, tmp_path / "x"), "--", target("daemonize"), *fifos],
                 env=own_libc, expect=6)
    daemon = int(result.stdout)
    try:
        assert mallocs(command, tmp_path / "x") == stated("daemonize")["malloc"].calls
        wait_for_no_breakpoint(daemon)
        os.write(files[0], b"alloc 1000\n")
        assert os.read(files[1], 5) == b"done\n"
    finally:
        os.write(files[0], b"exit\n")
        for file in files:
            os.close(file)


# A dynamic linker of one's own

def interpreter_of(path):
    output = subprocess.run(["readelf", "-lW", path], check=True, stdout=subprocess.PIPE, text=True)
    return re.search(r"interpreter: (\S+)\]", output.stdout)[1]


@pytest.mark.fast("record")
@pytest.mark.parametrize("command", COMMANDS)
def test_linker_is_named(run, allocprof, target, tmp_path, command):
    """ld.so --library-path DIRECTORY PROGRAM: what is started is not what makes the blocks."""
    second_libc(tmp_path / "lib")
    linker = interpreter_of(target("every_function"))
    program = target("every_function")
    run([*argv_of(allocprof, command, tmp_path / "plain"), "--", program], expect=3)
    run([*argv_of(allocprof, command, tmp_path / "x"), "--", linker, "--library-path",
         tmp_path / "lib", program], expect=3)
    assert mallocs(command, tmp_path / "x") == mallocs(command, tmp_path / "plain") > 0
    if command == "stat":
        assert read_report(tmp_path / "x")["complete"] is True
    else:
        recording = Recording(tmp_path / "x")
        assert "allocator_unprobed" not in recording.gaps
        assert recording.ledger["complete"] == recording.ledger["events"]
        assert "main" in {name for text in recording.texts() for name in text.split(";")}


@pytest.mark.slow
def test_late_allocator_is_always_told(run, allocprof, target, tmp_path):
    """A process maps several files at once, and the last of them is one that should have been
    probed; also when allocprof is busy with the first meanwhile."""
    env = second_libc(tmp_path / "lib")
    words = f"LD_LIBRARY_PATH={env['LD_LIBRARY_PATH']} exec {target('names_full')}"
    for _ in range(12):
        run([*argv_of(allocprof, "record", tmp_path / "x"), "--", "sh", "-c", words], expect=0)
        path = tmp_path / "lib" / "libc.so.6"
        (_, unprobed, why), = Recording(tmp_path / "x").gaps["allocator_unprobed"]
        assert unprobed == str(path) and why.startswith("found only after ")


@pytest.mark.skipif(os.geteuid() != 0, reason="chroot(1) needs root")
def test_another_root(run, allocprof, target, tmp_path):
    """Nothing of a program in a root of its own is missing where --expect names its libc."""
    root = tmp_path / "root"
    second_libc(root / "lib")
    program = target("every_function")
    linker = pathlib.Path(interpreter_of(program))
    for path in linker, linker.resolve():
        (root / str(path.parent)[1:]).mkdir(parents=True, exist_ok=True)
        shutil.copy(linker, root / str(path)[1:])
    shutil.copy(program, root)
    expected = root / "lib" / "libc.so.6"
    run([*argv_of(allocprof, "stat", tmp_path / "json"), "--expect", expected, "--", "chroot", root, linker,
         "--library-path", "/lib", f"/{os.path.basename(program)}"], expect=3)
    report = read_report(tmp_path / "json")
    assert report["complete"] and str(expected) in [entry["path"] for entry in report["allocators"]]
    run([*argv_of(allocprof, "stat", tmp_path / "plain"), "--", "chroot", "/", program], expect=3)
    assert mallocs("stat", tmp_path / "json") == mallocs("stat", tmp_path / "plain") > 0


# A container

@pytest.mark.fast("every_function--record", "spawn--stat")
@pytest.mark.usefixtures("container")
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("words, status", [
    (["every_function"], 3), (["spawn"], 0), (["launcher", "10", "threads"], 0),
    (["many_stacks", "-t", "4", "20000", "100"], 0)], ids=lambda value: str(value[0]) if
    isinstance(value, list) else "")
def test_in_a_container(run, allocprof, counter, target, tmp_path, command, words, status):
    made = counter()
    argv = [target(word) if word in ("launcher", "threads") or i == 0 else word
            for i, word in enumerate(words)]
    output = tmp_path / "x"
    run(in_container(tmp_path, [*argv_of(allocprof, command, output), "--", target("preload_exec"),
                                made.path, made.library, *argv]), expect=status)
    counts = made.read()
    assert counts.programs > 0
    if command == "stat":
        report = read_report(output)
        assert differences(report, counts) == []
        assert report["complete"] is True
        return
    recording = Recording(output)
    assert recording.differences(counts) == []
    assert "allocator_unprobed" not in recording.gaps
    unnamed = recording.sql("SELECT path FROM modules WHERE path LIKE '[%'")
    assert unnamed == []
    if words[0] == "many_stacks":
        lines, _ = folded(run, allocprof, output, "--no-comm")
        assert sum(line.endswith(";leaf;malloc") for line in lines) == 100
    else:
        assert {"main", "work"} & {name for text in recording.texts() for name in text.split(";")}


@pytest.mark.fast("stat")
@pytest.mark.usefixtures("container")
@pytest.mark.parametrize("command", COMMANDS)
def test_container_seen_from_outside(run, runner, allocprof, target, tmp_path, command):
    """A process in a container, with another root and other ids, measured from the host."""
    obedient = Obedient(runner, in_container(tmp_path, [target("sleeper")]))
    # unshare's child is the container's first process.
    child, = open(f"/proc/{obedient.pid}/task/{obedient.pid}/children").read().split()
    process = runner.start([*argv_of(allocprof, command, tmp_path / "x"), "-p", child])
    wait_until_counting(allocprof, process)
    obedient.ask("alloc 500")
    process.send_signal(signal.SIGINT)
    assert shell_status(process.wait(TIMEOUT_SECONDS)) == 0
    assert mallocs(command, tmp_path / "x") == 500
    if command == "record":
        recording = Recording(tmp_path / "x")
        assert recording.sql("SELECT DISTINCT caller FROM calls") == [("main",)]
        assert recording.sql("SELECT DISTINCT pid FROM processes") == [(int(child),)]
    obedient.exit()
