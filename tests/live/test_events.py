# SPDX-License-Identifier: GPL-3.0-or-later
"""The log of events that tests of live memory believe, against programs that state what becomes of
their memory. Needs neither root nor allocprof."""

import functools
import os
import signal
import subprocess

import pytest

import events
from support import (EVENTS_LIBRARY, FUNCTIONS, Obedient, figures, programs, shell_status, stated,
                     stated_cases, target, wait_until)


def run_logged(run, log, argv, expect=0, **options):
    made = log()
    result = run(argv, env={**options.pop("env", {}), **made.env()}, expect=expect, **options)
    return made.read(), result


def own_figures(logged, program):
    """Of the calls that a program's own code makes."""
    found = events.analyse(logged, events.called_by(program))
    assert found.unfinished == 0
    return found


def assert_stated(found, expected):
    got = found.stated()
    wrong = [f"{name}: expected {expected.get(name, 0)}, got {got.get(name, 0)}"
             for name in sorted({*expected, *got})
             if expected.get(name, 0) not in (None, got.get(name, 0))]
    assert not wrong, "\n".join(wrong)


def cases(name):
    return [(name, case) for case in stated_cases(name)]


@pytest.mark.parametrize("name, case", cases("live_shapes") + cases("return_hazards"))
def test_stated(run, log, name, case):
    expect = 128 + signal.SIGKILL if case == "kill" else 0
    logged, _ = run_logged(run, log, [target(name), case], expect)
    assert_stated(own_figures(logged, target(name)), stated_cases(name)[case])


@pytest.mark.fast("1-1-20000")
@pytest.mark.parametrize("seed, threads, operations", [
    (1, 1, 20000), (2, 1, 20000), (3, 4, 10000), (4, 16, 2000), (5, 64, 300)])
def test_random(run, log, seed, threads, operations):
    program = target("live_random")
    logged, result = run_logged(run, log, [program, seed, threads, operations])
    found = own_figures(logged, program)
    expected = figures(result.stdout.decode())
    # What it cannot know, and what stats_alloc has.
    expected["bytes_reallocated"] = found.all_totals.bytes_reallocated
    if threads > 1:
        expected.update({"peak": None, "peak_bytes": None})
    assert_stated(found, expected)
    if threads == 1:
        _, blocks = found.by(lambda key: key.stack)
        assert len(blocks) > 1000


def test_random_is_the_same_again(run, log):
    """But for where a shared table decides."""
    program = target("live_random")
    seen = []
    for _ in range(2):
        logged, result = run_logged(run, log, [program, 7, 1, 3000])
        calls, _ = own_figures(logged, program).by(lambda key: (key.function, key.stack))
        seen.append((calls, result.stdout))
    assert seen[0] == seen[1]


def function_of(path):
    """function_of(frame) is the name of the function of @path that it lies in."""
    table = []
    output = subprocess.run(["nm", "-S", path], check=True, stdout=subprocess.PIPE, text=True)
    for line in output.stdout.splitlines():
        words = line.split()
        if len(words) == 4 and words[2] in "tT":
            table.append((int(words[0], 16), int(words[1], 16), words[3]))

    @functools.lru_cache(None)
    def look_up(frame):
        return next((name for start, size, name in table
                     if frame[0] == os.path.realpath(path) and start < frame[1] <= start + size),
                    None)

    return look_up


def by_caller(found, name_of):
    _, blocks = found.by(lambda key: name_of(key.stack[0]))
    shown = ("allocations", "bytes", "frees", "freed_bytes", "temporary", "temporary_bytes",
             "live", "live_bytes")
    return {caller: {name: getattr(sums, name) for name in shown if getattr(sums, name)}
            for caller, sums in blocks.items()}


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [[], [250, 100]])
def test_case_study(run, log, arguments):
    program = target("case_study")
    logged, result = run_logged(run, log, [program, *arguments])
    lines = [line.split(":") for line in result.stdout.decode().splitlines()]
    printed = {name: figures(rest) for name, rest in lines}
    found = own_figures(logged, program)
    assert by_caller(found, function_of(program)) == printed
    if not arguments:
        assert printed == stated_cases("case_study")
        assert (found.all_blocks.peak, found.all_blocks.peak_bytes) == (4276, 637532)
        first, last = logged[0].ns, logged[-1].ns
        assert last - first >= 2_000_000_000 - 1_000_000


def test_many_live(run, log):
    logged, _ = run_logged(run, log, [target("many_live"), 5000, 33])
    expected = {"allocations": 5000, "bytes_allocated": 165000, "live": 5000, "live_bytes": 165000,
                "peak": 5000, "peak_bytes": 165000}
    # Of the whole process: nothing else allocates.
    assert_stated(events.analyse(logged), expected)


def test_print_backtrace_in_malloc(run, log):
    """A program that has a malloc of its own in front."""
    program = target("print_backtrace_in_malloc")
    logged, result = run_logged(run, log, [program])
    bare = run([program], expect=0)
    # Under it the frames are the same, but for libevents.so, which calls nobody who prints.
    assert result.stdout == bare.stdout
    found = own_figures(logged, program)
    calls, _ = found.by(lambda key: key.function)
    expected = stated("print_backtrace_in_malloc")
    assert {name: sums.calls for name, sums in calls.items()} == \
        {name: slot.calls for name, slot in expected.items() if slot.calls}
    assert found.all_blocks.live == 0


def test_print_backtrace_within_realloc(run, log):
    """There libevents.so has a frame, in front of the C library's realloc."""
    program = target("print_backtrace_in_malloc")
    bare = run([program, "fault"], expect=0).stdout.splitlines()
    _, result = run_logged(run, log, [program, "fault"])
    lines = result.stdout.splitlines()
    assert [line for line in lines if b"libevents.so" not in line] == bare
    assert len(lines) == len(bare) + 1


COUNTED = [name for name in programs(lambda name: name)
           if name not in ("cancel", "pthread_exit_main")]


@pytest.mark.fast("every_function", "threads", "fork", "dlopen")
@pytest.mark.parametrize("name", COUNTED)
def test_agrees_with_the_counter(run, log, counter, name):
    """Calls, requested bytes and what they are, over trees of processes."""
    argv, status = programs(target)[name]
    made = counter()
    run(argv, env=made.env(), expect=status)
    counts = made.read()
    logged, _ = run_logged(run, log, argv, status)
    found = events.analyse(logged)
    assert found.unfinished == 0
    calls, _ = found.by(lambda key: key.function)
    # The counter's sums have 64 bits.
    got = {name: (sums.calls, sums.bytes % (1 << 64)) for name, sums in calls.items()}
    expected = {name: (counts[name].calls, counts[name].bytes) for name in FUNCTIONS
                if counts[name].calls}
    if "threads" in name or "stacks" in name or "ten_at_once" in name:
        # How many NULLs an exiting thread frees is the C library's business.
        got.pop("free")
        expected.pop("free")
    assert got == expected
    # Of failed ones the counter does not know.
    totals = found.all_totals
    assert totals.allocations + totals.reallocations + totals.failed == \
        counts.allocations + counts.reallocations
    assert totals.deallocations + totals.inherited + totals.unknown == counts.deallocations


@pytest.mark.fast("sh")
@pytest.mark.parametrize("argv", [
    ["sh", "-c", "ls / | wc -l; (true; false) || ls /usr >/dev/null"],
    ["/usr/bin/python3", "-c", "import json, re; print(len(json.dumps(list(range(1000)))))"],
    ["perl", "-e", "my %h; $h{$_ % 37} .= qq(x$_) for 1 .. 5000; print scalar(%h)"],
], ids=lambda argv: os.path.basename(argv[0]))
def test_nothing_is_unknown(run, log, argv):
    """Every block that a program frees was seen when it was made."""
    logged, _ = run_logged(run, log, argv, env={"PYTHONMALLOC": "malloc"})
    found = events.analyse(logged)
    assert found.unfinished == 0
    assert found.all_totals.unknown == 0
    assert found.all_totals.allocations > 50


def test_without_stacks(run, log):
    with_stacks, without = log(), log(stacks=False)
    for made in (with_stacks, without):
        run([target("threads")], env=made.env(), expect=0)
    assert all(event.stack == () for event in without.read() if event.kind == events.ENTER)
    stated_by = [{name: value for name, value in events.analyse(made.read()).stated().items()
                  if not name.startswith("peak")} for made in (with_stacks, without)]
    assert stated_by[0] == stated_by[1]


def test_stacks_are_whole(run, log):
    """All that start from main do so, none that is of the library itself is there."""
    program = target("many_stacks")
    logged, _ = run_logged(run, log, [program, 2000, 1000])
    name_of = function_of(program)
    found = own_figures(logged, program)
    calls, _ = found.by(lambda key: (key.function, key.stack))
    assert len(calls) == 2000  # malloc and free
    for (_, stack), sums in calls.items():
        assert sums.calls == 2
        names = [name_of(frame) for frame in stack]
        assert names[0] == "leaf" and "main" in names and names[-1] == "_start"
        assert not any(path == str(EVENTS_LIBRARY) for path, _ in stack)


def test_order_in_one_process(run, log):
    """By number a thread's events are in the order of time, and no address is handed out twice."""
    logged, _ = run_logged(run, log, [target("live_random"), 9, 8, 2000])
    last = {}
    live = set()
    enters = {event.number: event for event in logged if event.kind == events.ENTER}
    failed = {event.link for event in logged
              if event.kind == events.RETURN and not event.pointer}
    for event in logged:
        assert event.ns >= last.get(event.thread, 0)
        last[event.thread] = event.ns
        if event.kind == events.RETURN and event.pointer:
            assert event.pointer not in live
            live.add(event.pointer)
        elif event.kind == events.ENTER and event.pointer and (
                event.function == "free" or event.function in events.REALLOCS and
                (event.number not in failed or not event.bytes and not event.overflow)):
            live.remove(event.pointer)
    assert len(enters) > 16000


def test_attached(runner, log):
    """As seen by who comes later: older blocks are unknown."""
    made = log()
    obedient = Obedient(runner, [target("sleeper")], env=made.env())
    obedient.ask("keep 10")
    before = made.position()
    obedient.ask("keep 5")
    obedient.ask("alloc 3")
    obedient.ask("release 12")
    obedient.exit()
    assert_stated(events.analyse(made.read(before)), {
        "allocations": 8, "bytes_allocated": 5 * 48 + 3 * 32, "deallocations": 3 + 5,
        "bytes_deallocated": 3 * 32 + 5 * 48, "unknown": 7, "temporary": 3, "temporary_bytes": 96,
        "peak": 6, "peak_bytes": 5 * 48 + 32})


def test_killed(runner, log):
    """Nothing of the log is lost with the process."""
    made = log()
    obedient = Obedient(runner, [target("busy_threads"), 4], env=made.env())
    obedient.ask("alloc 100")
    obedient.send("alloc 1000000")
    wait_until(lambda: made.position() > 5000, "all threads are at it")
    os.kill(obedient.pid, signal.SIGKILL)
    assert shell_status(obedient.process.wait()) == 137
    found = events.analyse(made.read(), events.called_by(target("busy_threads")))
    assert found.unfinished <= 4
    assert found.all_blocks.allocations >= 4 * 100
    # Each thread had at most one block.
    assert 0 <= found.all_blocks.live <= 4


@pytest.mark.parametrize("content", [None, b"\0" * 4096], ids=["missing", "zeros"])
def test_bad_file_is_no_empty_log(run, tmp_path, content):
    path = tmp_path / "bad"
    if content is not None:
        path.write_bytes(content)
    result = run([target("nothing")], expect=99, env={
        "LD_PRELOAD": str(EVENTS_LIBRARY), "ALLOCPROF_COUNTER": str(path)})
    assert b"libevents: " in result.stderr


def test_images(run, log):
    """Each begins with an event that names its program, whether it allocates or not."""
    made = log()
    run(["sh", "-c", f"{target('nothing')}; exec {target('nothing')}"], env=made.env(), expect=0)
    images = [event for event in made.read() if event.kind == events.IMAGE]
    shell = os.path.realpath("/bin/sh")
    assert [event.stack[0][0] for event in images] == [shell, *2 * [target("nothing")]]
    assert images[0].process == images[2].process != images[1].process
    assert len({event.space for event in images}) == 3


def test_without_file(run):
    run([target("every_function")], env={"LD_PRELOAD": str(EVENTS_LIBRARY)}, expect=3)
