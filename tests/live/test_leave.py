# SPDX-License-Identifier: GPL-3.0-or-later
"""However allocprof ends, the process it was attached to is as before, and nothing is left in the
kernel."""

import signal

import pytest

from support import (Obedient, TIMEOUT_SECONDS, loaded_programs, patched_functions, programs_of, shell_status,
                     wait_until, wait_until_counting)

COMMANDS = [["stat"], ["record", "-o", "DATA"]]


@pytest.fixture
def start(runner, target, own_libc):
    """start(name, words): an obedient target."""
    return lambda name, *words: Obedient(runner, [target(name), *words], env=own_libc)


def attach(runner, allocprof, command, pid, tmp_path, *options):
    words = [str(tmp_path / "data") if word == "DATA" else word for word in command]
    process = runner.start([allocprof, *words, *options, "-p", str(pid)])
    wait_until_counting(allocprof, process)
    assert {"malloc", "realloc"} <= patched_functions(pid)
    return process


def assert_nothing_left(pid, programs):
    # A process that was killed is cleaned up by the kernel after it can be waited for.
    wait_until(lambda: not patched_functions(pid), "no breakpoint is left in the target")
    wait_until(lambda: not programs & loaded_programs(), f"BPF programs {programs} are gone")


@pytest.mark.covering(2)
@pytest.mark.fast("sleeper-int-stat", "threads-kill-record")
@pytest.mark.parametrize("command", COMMANDS, ids=["stat", "record"])
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL, signal.SIGHUP],
                         ids=["int", "term", "kill", "hup"])
@pytest.mark.parametrize("words", [["sleeper"], ["busy_threads", "5"]], ids=["sleeper", "threads"])
def test_signal(runner, start, allocprof, tmp_path, command, stop, words):
    obedient = start(*words)
    assert not patched_functions(obedient.pid)
    process = attach(runner, allocprof, command, obedient.pid, tmp_path)
    programs = programs_of(process.pid)
    assert programs, "allocprof holds no BPF program"
    obedient.ask("alloc 1000")
    process.send_signal(stop)
    # The target works on while allocprof leaves.
    obedient.ask("alloc 10000")
    assert shell_status(process.wait(TIMEOUT_SECONDS)) == (128 + stop if stop == signal.SIGKILL else 0)
    assert_nothing_left(obedient.pid, programs)
    obedient.ask("alloc 1000")
    obedient.exit()


def test_killed_while_the_target_allocates(runner, start, allocprof, tmp_path):
    obedient = start("busy_threads", "4")
    process = attach(runner, allocprof, ["stat"], obedient.pid, tmp_path)
    programs = programs_of(process.pid)
    obedient.send("alloc 200000")
    process.kill()
    process.wait(TIMEOUT_SECONDS)
    obedient.expect_line("done")
    assert_nothing_left(obedient.pid, programs)
    obedient.exit()


@pytest.mark.slow
def test_duration(runner, start, allocprof, tmp_path):
    obedient = start("sleeper")
    process = attach(runner, allocprof, ["record", "-o", "DATA"], obedient.pid, tmp_path,
                     "--duration", "4s")
    programs = programs_of(process.pid)
    assert shell_status(process.wait(TIMEOUT_SECONDS)) == 0
    assert_nothing_left(obedient.pid, programs)
    obedient.ask("alloc 1000")
    obedient.exit()


@pytest.mark.fast("record")
@pytest.mark.parametrize("command", COMMANDS, ids=["stat", "record"])
def test_target_ends_first(runner, start, allocprof, tmp_path, command):
    obedient = start("sleeper")
    process = attach(runner, allocprof, command, obedient.pid, tmp_path)
    programs = programs_of(process.pid)
    obedient.ask("alloc 1000")
    obedient.exit()
    assert shell_status(process.wait(TIMEOUT_SECONDS)) == 0
    wait_until(lambda: not programs & loaded_programs(), f"BPF programs {programs} are gone")


@pytest.mark.fast("record")
@pytest.mark.parametrize("command", COMMANDS, ids=["stat", "record"])
def test_bystander_is_not_probed_after_a_run(run, start, own_libc, allocprof, target, tmp_path, command):
    """A launched command's probes are gone with it, in a process that maps the same library."""
    words = [str(tmp_path / "data") if word == "DATA" else word for word in command]
    obedient = start("sleeper")
    run([allocprof, *words, "--", target("threads")], env=own_libc, expect=0)
    wait_until(lambda: not patched_functions(obedient.pid), "no breakpoint is left")
    obedient.ask("alloc 1000")
    obedient.exit()
