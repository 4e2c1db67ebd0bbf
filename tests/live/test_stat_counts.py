# SPDX-License-Identifier: GPL-3.0-or-later
"""allocprof stat against the counter, both in the same run, to the last call and byte."""

import signal
import time

import pytest

from support import (FUNCTIONS, IN_PID_NAMESPACES, INPUT, Obedient, TIMEOUT_SECONDS, by_address, differences,
                     in_pid_namespace, libc_path, preload_exec, programs, read_report, shell_status,
                     wait_until_counting)
from terminal import Terminal

pytestmark = pytest.mark.engines("uprobe", "preload")


def compare(run, allocprof, counter, target, tmp_path, argv, wrap=list, status=0, stdin=b""):
    made = counter()
    output = tmp_path / f"{made.path.name}.json"
    argv = [str(word) for word in argv]
    result = run(wrap([allocprof, "stat", "--json", "-o", str(output), "--",
                       preload_exec(), str(made.path), str(made.library), *argv]),
                 stdin=stdin, expect=status)
    report, counts = read_report(output), made.read()
    assert counts.programs > 0, f"the counter was not loaded: {result}"
    wrong = differences(report, counts)
    assert not wrong, "\n".join(wrong)
    assert report["exit_status"] == status
    assert report["failed"] is None and report["bytes_deallocated"] is None
    return report, counts


NAMES = list(programs(str))


@pytest.mark.covering(1, engine="uprobe")
@pytest.mark.fast("every_function", "threads", "vfork", "shell", "dlopen", "exec_nonleader", "preload-every_function", "preload-threads",
                  "preload-shell")
@pytest.mark.parametrize("name", NAMES)
def test_equal(run, allocprof, counter, target, tmp_path, name):
    argv, status = programs(target)[name]
    compare(run, allocprof, counter, target, tmp_path, argv, status=status, stdin=INPUT)


@pytest.mark.covering(1)
@pytest.mark.fast("posix_spawn", "fork")
@pytest.mark.parametrize("name", IN_PID_NAMESPACES)
def test_equal_in_pid_namespace(run, allocprof, counter, target, tmp_path, name):
    argv, status = programs(target)[name]
    compare(run, allocprof, counter, target, tmp_path, argv, in_pid_namespace, status, INPUT)


@pytest.mark.covering(1)
@pytest.mark.slow
@pytest.mark.parametrize("wrap", [list, in_pid_namespace], ids=["plain", "pid_namespace"])
@pytest.mark.parametrize("times", [2, pytest.param(6, marks=pytest.mark.slow)])
def test_ten_programs_many_times(run, allocprof, counter, target, tmp_path, wrap, times):
    for _ in range(times):
        compare(run, allocprof, counter, target, tmp_path,
                [target("launcher"), 10, target("threads"), 8, 300], wrap)


@pytest.mark.covering(1)
@pytest.mark.parametrize("repeat", [0, *(pytest.param(n, marks=pytest.mark.slow)
                                         for n in range(1, 5))])
def test_ten_mixed_trees(run, allocprof, counter, target, tmp_path, repeat):
    """Ten shells, each a tree of fork, vfork, spawn, threads and exec by a non-leader."""
    script = "; ".join(f"{target(name)} >/dev/null" for name in
                       ("fork_noexec", "vfork_exec", "spawn", "threads"))
    script += f"; exec {target('exec_nonleader')} {target('spawn')}"
    compare(run, allocprof, counter, target, tmp_path,
            [target("launcher"), 10, "/bin/sh", "-c", script])


# A preloaded library has each name for itself: memalign is no alias of aligned_alloc there.
@pytest.mark.engines("uprobe")
def test_aliases_share_one_entry(run, allocprof, target, tmp_path):
    run([allocprof, "stat", "--json", "-o", tmp_path / "out.json", "--", target("every_function")],
        expect=3)
    functions = read_report(tmp_path / "out.json")["functions"]
    for first, *others in by_address(libc_path()):
        # libc's own names for the same code, __libc_malloc and so on, are told as well.
        assert [a for a in functions[first]["aliases"] if a in FUNCTIONS] == others
        assert not set(others) & set(functions)


CPU_SECONDS = 0.3


def test_report_of_the_run(run, allocprof, tmp_path):
    """Its one thread uses a processor for at least so long, by its own clock; all of it takes less than allocprof."""
    argv = ["/usr/bin/python3", "-c", "import time\nbegun = time.process_time()\n"
            f"while time.process_time() - begun < {CPU_SECONDS}: pass\nraise SystemExit(3)"]
    before = time.monotonic()
    run([allocprof, "stat", "--json", "-o", tmp_path / "out.json", "--", *argv], expect=3)
    all_seconds = time.monotonic() - before
    report = read_report(tmp_path / "out.json")
    assert report["command"] == argv and report["pid"] is None
    assert report["exit_status"] == 3
    assert report["processes"] == 1
    # Times have six decimals.
    for seconds in (report["elapsed_seconds"], report["user_seconds"] + report["system_seconds"]):
        assert CPU_SECONDS - 2e-6 <= seconds <= all_seconds + 2e-6
    assert report["basis"] == "requests"


def test_selection_keeps_what_decides(run, allocprof, counter, target, tmp_path):
    """With -e malloc the mallocs that realloc makes are still known as internal."""
    made = counter()
    run([allocprof, "stat", "--json", "-o", tmp_path / "out.json", "-e", "malloc", "--",
         preload_exec(), made.path, made.library, target("every_function")], expect=3)
    functions = read_report(tmp_path / "out.json")["functions"]
    assert list(functions) == ["malloc"]
    assert functions["malloc"]["calls"] == made.read()["malloc"].calls


def test_no_follow(run, allocprof, counter, target, tmp_path):
    """Only the command's own process: the children of spawn are not counted."""
    run([allocprof, "stat", "--json", "-o", tmp_path / "out.json", "--no-follow", "--",
         target("spawn")], expect=0)
    functions = read_report(tmp_path / "out.json")["functions"]
    startup = counter()
    run([target("nothing")], env=startup.env(), expect=0)
    assert functions["malloc"]["calls"] == 4 + startup.read()["malloc"].calls


# A process that runs can only be measured by uprobes.
@pytest.mark.engines("uprobe")
@pytest.mark.fast("int-words1-5")
@pytest.mark.parametrize("words, workers", [(["sleeper"], 1), (["busy_threads", "5"], 5)])
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM], ids=["int", "term"])
def test_attached(runner, allocprof, target, tmp_path, words, workers, stop):
    """Of a process that runs: all calls between the attachment and the end of it."""
    obedient = Obedient(runner, [target(words[0]), *words[1:]])
    obedient.ask("alloc 100")
    stat = runner.start([allocprof, "stat", "--json", "-o", tmp_path / "out.json",
                         "-p", str(obedient.pid)])
    wait_until_counting(allocprof, stat)
    obedient.ask("alloc 12345")
    stat.send_signal(stop)
    assert shell_status(stat.wait(TIMEOUT_SECONDS)) == 0
    report = read_report(tmp_path / "out.json")
    assert report["functions"]["malloc"]["calls"] == 12345 * workers
    assert report["functions"]["malloc"]["bytes"] == 12345 * workers * 32
    assert report["functions"]["free"]["calls"] == 12345 * workers
    assert report["lost"]["total"] == 0
    obedient.ask("alloc 100")
    obedient.exit()


# How it looks is up to no engine.
@pytest.mark.engines("uprobe")
@pytest.mark.fast("-every_function", "--live-every_function")
@pytest.mark.parametrize("options, program", [
    ((), "every_function"), (("--live",), "every_function"), (("-r2", "--warmup=0"), "every_function"),
    (("-r2", "--warmup=0", "--live", "--per=1000"), "every_function"), ((), "regions_O2"),
    (("--live", "-r2"), "regions_O2"), (("--within", "main", "--inject", "processes=1"), "spawn"),
], ids=lambda value: " ".join(value) if isinstance(value, tuple) else value)
def test_eighty_columns(runner, allocprof, target, options, program):
    """No line of the report is wider than a terminal of 80, however long the command's is."""
    words = {"regions_O2": ["nest"]}.get(program, []) + ["a_long_word" * 10]
    with Terminal(runner, [allocprof, "stat", *options, "--", target(program), *words]) as terminal:
        output, _ = terminal.end()
    report = output.decode().partition("\n Allocation counts for '")
    assert report[1] and "..." in report[2].splitlines()[0], output
    wide = [line for line in (report[1] + report[2]).splitlines()
            if len(line) > 80 and not line.startswith("allocprof: ")]
    assert not wide, "\n".join(wide)
