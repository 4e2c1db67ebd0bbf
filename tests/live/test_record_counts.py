# SPDX-License-Identifier: GPL-3.0-or-later
"""allocprof record against the counter, both in the same run, to the last call and byte; and the
stacks of programs that state theirs."""

import shutil
import signal
import json
import subprocess

import pytest

from support import (FUNCTIONS, INPUT, Obedient, Recording, TIMEOUT_SECONDS, folded,
                     in_pid_namespace, programs, shell_status, wait_until_counting)

NAMES = list(programs(str))


def record(run, allocprof, counter, target, data, argv, wrap=list, status=0, stdin=b"", options=()):
    made = counter()
    # The static launcher tells allocprof nothing of what it will run.
    result = run(wrap([allocprof, "record", "-o", str(data), *options,
                       "--expect", str(argv[0]), "--", target("preload_exec"), str(made.path), str(made.library),
                       *[str(word) for word in argv]]), stdin=stdin, expect=status)
    counts = made.read()
    assert counts.programs > 0, f"the counter was not loaded: {result}"
    return Recording(data), counts


@pytest.mark.covering(1)
@pytest.mark.fast("plain-every_function", "plain-threads", "plain-shell", "pid_namespace-fork")
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("wrap", [list, in_pid_namespace], ids=["plain", "pid_namespace"])
def test_equal(run, allocprof, counter, target, tmp_path, name, wrap):
    argv, status = programs(target)[name]
    recording, counts = record(run, allocprof, counter, target, tmp_path / "data", argv, wrap, status,
                               INPUT)
    wrong = recording.differences(counts)
    assert not wrong, "\n".join(wrong)
    assert sum(folded(run, allocprof, tmp_path / "data")[0].values()) == \
        recording.ledger["attributed"]
    assert sum(folded(run, allocprof, tmp_path / "data", "--cost=bytes")[0].values()) == \
        sum(size for _, size in recording.functions.values())


HUGE = """
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
volatile size_t most = SIZE_MAX;
void *volatile sink;
__attribute__((noinline)) void cannot(void *block)
{
	void *aligned;
	sink = malloc(most - 100);
	sink = malloc((size_t)1 << 47);
	sink = calloc(most / 2, 3);
	sink = realloc(block, PTRDIFF_MAX);
	sink = reallocarray(block, most, 2);
	sink = aligned_alloc(64, most / 128 * 64);
	if (!posix_memalign(&aligned, 64, most - 4096))
		abort();
}
int main(void)
{
	void *block = malloc(1000);
	cannot(block);
	/* Address space alone, which is given. */
	sink = malloc((size_t)1 << 32);
	free(sink);
	free(block);
	return 0;
}
"""


@pytest.mark.engines("uprobe", "preload")
@pytest.mark.parametrize("live", [[], ["--live"]], ids=["calls", "live"])
def test_impossible_sizes(run, allocprof, tmp_path, engine, live):
    """Seven requests that no process can be given count as calls, and the bytes of the others are all that is summed up."""
    subprocess.run(["gcc", "-O0", "-fno-builtin", "-x", "c", "-o", tmp_path / "huge", "-"], text=True, check=True, input=HUGE)
    data, real = tmp_path / "data", (1 << 32) + 1000
    said = b"7 calls asked for 128 TiB or more, which no process can have: counted as calls, with no bytes\n"
    result = run([allocprof, "record", f"--engine={engine}", *live, "-o", data, "--", tmp_path / "huge"], expect=0)
    assert said in result.stderr
    recording = Recording(data)
    assert recording.sql("SELECT sum(calls), sum(bytes) FROM counts") == [(9, real)]
    assert recording.meta["impossible_calls"] == "7" and recording.ledger.get("failed", 7) == 7
    assert said in run([allocprof, "report", data], expect=0).stdout
    stacks = folded(run, allocprof, data, "--cost=bytes")[0]
    assert sum(stacks.values()) == real
    run([allocprof, "stat", f"--engine={engine}", *live, "--json", "-o", tmp_path / "json", "--", tmp_path / "huge"], expect=0)
    counted = json.loads((tmp_path / "json").read_text())
    assert counted["impossible_calls"] == 7
    assert sum(function["bytes"] for function in counted["functions"].values()) == real


# Whose processes begin and end in all ways.
PROCESSES = ["every_function", "fork", "vfork", "posix_spawn", "shell", "exec_nonleader", "ten_vforking", "pthread_exit_main", "exec_itself",
             "fork_storm"]


@pytest.mark.fast("shell", "fork_storm")
@pytest.mark.parametrize("name", PROCESSES)
def test_several_programs_at_tracepoints(run, allocprof, counter, target, tmp_path, name):
    """As since Linux 7.0, which preempts them (tests/vm): what one of the programs has done, the others do not do again."""
    argv, status = programs(target)[name]
    processes = []
    for number in "0", "1":
        recording, counts = record(run, allocprof, counter, target, tmp_path / number, argv, status=status, stdin=INPUT,
                                   options=["--live", "--inject", f"preemption={number}"])
        wrong = recording.differences(counts)
        assert not wrong, "\n".join(wrong)
        assert "processes_unfollowed" not in recording.gaps
        processes.append(recording.sql("SELECT count(*), sum(execed), sum(end_ns > 0), count(DISTINCT pid) FROM processes"))
    assert processes[0] == processes[1]


@pytest.mark.covering(1)
@pytest.mark.fast("every_function-malloc,free", "shell-free")
@pytest.mark.parametrize("functions", [
    ["malloc", "free"], ["free"], ["malloc"], ["memalign"], list(FUNCTIONS)], ids=",".join)
@pytest.mark.parametrize("name", ["every_function", "fork", "shell"])
def test_selected_functions(run, allocprof, counter, target, tmp_path, name, functions):
    """What is not asked for is not there, and still decides what is internal."""
    argv, status = programs(target)[name]
    recording, counts = record(run, allocprof, counter, target, tmp_path / "data", argv,
                               status=status, stdin=INPUT,
                               options=["-e", ",".join(functions)])
    wrong = recording.differences(counts, functions)
    assert not wrong, "\n".join(wrong)


def spelled(number):
    """The calls that many_stacks makes for this stack, outermost first."""
    return ";".join([*("right" if number >> bit & 1 else "left" for bit in range(16)), "leaf"])


def assert_spelled(recording, calls, stacks):
    """Every stack that the program states is there, once and under its functions' names, and as
    often as stated."""
    found = {}
    for text, n in recording.texts().items():
        # go() is inlined into both, and named where there is debug information.
        words = [word for word in text.split(";") if word != "go"]
        if words[-1] == "leaf":
            found.setdefault(";".join(words[-17:]), []).append(n)
    expected = {spelled(number): [calls // stacks + (number < calls % stacks)]
                for number in range(stacks)}
    assert found == expected
    distinct, = recording.sql("SELECT count(DISTINCT stack) FROM uninlined WHERE called_by = 'leaf'")
    assert distinct == (stacks,)


@pytest.mark.fast("16384-16384-0-options1")
@pytest.mark.parametrize("calls, stacks, threads, options", [
    (10007, 100, 0, []),
    (16384, 16384, 0, []),
    (200_000, 10_000, 4, []),
    pytest.param(65536, 65536, 0, [], marks=pytest.mark.slow),
    pytest.param(200_000, 50_000, 4, [], marks=pytest.mark.slow),
    # The two counter maps are swapped again and again.
    (400_000, 3_000, 4, ["--inject", "counts=64"]),
])
def test_many_stacks(run, allocprof, counter, target, tmp_path, calls, stacks, threads, options):
    argv = [target("many_stacks"), *(["-t", threads] if threads else []), calls, stacks]
    recording, counts = record(run, allocprof, counter, target, tmp_path / "data", argv,
                               options=options)
    assert counts["malloc"].calls >= calls
    wrong = recording.differences(counts)
    assert not wrong, "\n".join(wrong)
    assert_spelled(recording, calls, stacks)
    lines, _ = folded(run, allocprof, tmp_path / "data", "--no-comm")
    assert sum(lines.values()) == sum(slot.calls for name, slot in counts.functions.items()
                                      if name != "free")
    assert sum(line.endswith(";leaf;malloc") for line in lines) == stacks


def test_max_depth(run, allocprof, counter, target, tmp_path):
    """Stacks cut at five frames become one where these are the same, and say that they were cut."""
    recording, counts = record(run, allocprof, counter, target, tmp_path / "data",
                               [target("many_stacks"), 10000, 1000], options=["--max-depth", "5"])
    wrong = recording.differences(counts)
    assert not wrong, "\n".join(wrong)
    cut = recording.sql("SELECT functions, end FROM uninlined WHERE called_by = 'leaf'")
    assert {end for _, end in cut} == {"max_depth"}
    assert {len(text.split(";")) for text, _ in cut} == {5}
    # Of ten bits that vary, the innermost frames show the highest six, which are 0.
    assert len(cut) == 1
    assert recording.ledger["incomplete_max_depth"] == 10000


def test_short_lived(run, allocprof, counter, target, tmp_path):
    """Programs of a millisecond, long gone when names are looked for."""
    copies = [tmp_path / f"short{n}" for n in range(10)]
    script = ""
    for copy in copies:
        script += f"cp {target('many_stacks')} {copy}; {copy} 20 10 >/dev/null; "
    recording, counts = record(run, allocprof, counter, target, tmp_path / "data",
                               ["sh", "-c", script])
    wrong = recording.differences(counts)
    assert not wrong, "\n".join(wrong)
    for copy in copies:
        found = recording.sql("SELECT functions, sum(calls) FROM uninlined WHERE comm = ? AND "
                              "called_by = 'leaf' GROUP BY functions", copy.name)
        assert {";".join(text.split(";")[-17:]): n for text, n in found} == \
            {spelled(number): 2 for number in range(10)}, copy.name


@pytest.mark.fast("attached")
@pytest.mark.parametrize("attach", [False, True], ids=["launched", "attached"])
def test_deleted_binary(runner, allocprof, target, tmp_path, attach):
    """A program whose file is deleted while it runs, before and after the recording began."""
    program, data = tmp_path / "deleted", tmp_path / "data"
    shutil.copy(target("sleeper"), program)
    command = [allocprof, "record", "-o", data]
    if attach:
        obedient = Obedient(runner, [program])
        program.unlink()
        process = runner.start([*command, "-p", obedient.pid])
        wait_until_counting(allocprof, process)
    else:
        obedient = Obedient(runner, [*command, "--", program])
        program.unlink()
    obedient.ask("alloc 1000")
    obedient.ask("keep 10")
    if attach:
        process.send_signal(signal.SIGINT)
        assert shell_status(process.wait(TIMEOUT_SECONDS)) == 0
    obedient.exit()
    recording = Recording(data)
    assert recording.functions["malloc"] == (1010, 1000 * 32 + 10 * 48)
    assert recording.sql("SELECT called_by, sum(calls) FROM uninlined GROUP BY called_by") == \
        [("main", 1010)]
    modules = [path for path, in recording.sql("SELECT path FROM modules")]
    assert str(program) in modules
    assert not recording.unbalanced()


def test_processes_are_told_apart(run, allocprof, counter, target, tmp_path):
    """spawn's five programs: calls of each as it states them, and who started whom."""
    recording, _ = record(run, allocprof, counter, target, tmp_path / "data", [target("spawn")])
    rows = recording.sql("SELECT p.id, p.parent, (SELECT sum(calls) FROM counts c WHERE "
                         "c.process = p.id AND function = 'malloc') FROM processes p "
                         "WHERE comm IN ('spawn', 'exe') ORDER BY p.id")
    parent, *children = [row for row in rows if row[2]]
    assert parent[2] == 4
    assert [calls for _, _, calls in children] == [30] * 4
    # Between them is the program of the fork, before its exec.
    ancestors = {id: before for id, before, _ in rows}
    assert {ancestors[before] for _, before, _ in children} == {parent[0]}


def test_only_frees(run, allocprof, target, tmp_path):
    """They have no cost: readers say so, and where they are."""
    data = tmp_path / "data"
    run([allocprof, "record", "-e", "free", "-o", data, "--", target("every_function")])
    calls = Recording(data).ledger["attributed"]
    assert calls > 0
    for words in (["report"], ["folded"], ["flamegraph", "-o", tmp_path / "x.svg"], ["export", "--format=json"]):
        result = run([allocprof, *words, "-i", data], expect=0)
        assert f"all calls in this recording, {calls:,}, free memory: " in result.stderr.decode()
    said = run([allocprof, "report", "--function", "free", data], expect=0).stderr.decode()
    assert "'free' only frees: " in said and "no function" not in said
    shown = run([allocprof, "query", "-i", data, "--csv", "SELECT function, sum(calls) FROM calls"], expect=0)
    assert shown.stdout.decode().split()[1] == f"free,{calls}"
    run([allocprof, "record", "-o", data, "--", target("every_function")])
    assert run([allocprof, "report", data], expect=0).stderr == b""
