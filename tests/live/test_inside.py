# SPDX-License-Identifier: GPL-3.0-or-later
"""The library that counts inside of processes (src/inside), driven by tests/inside/measure.c: against what
targets state, and against the counter of tests/preload, which stands behind it in the same processes."""

import contextlib
import json
import os
import shutil
import sqlite3
import subprocess

import pytest

import support
from support import BUILD, COUNTER_LIBRARY, INPUT, programs, stated, target as target_path, unavailable

MEASURE = BUILD / "tests" / "inside" / "measure"
LIBRARY = BUILD / "src" / "inside" / "liballocprof-inside.so"


@pytest.fixture
def measure(run, tmp_path):
    """Runs a command and returns what measure.c wrote."""
    def measured(argv, status=0, env=None, mode="count", **options):
        output = tmp_path / "measured.json"
        variables = [f"{name}={value}" for name, value in (env or {}).items()]
        result = run([MEASURE, mode, LIBRARY, output, *variables, *argv], expect=status, **options)
        report = json.loads(output.read_text())
        report["result"] = result
        assert report["damaged"] == 0 and report["unfinished"] == 0, report
        return report
    return measured


def slots(report):
    return {name: (entry["calls"], entry["bytes"], entry["fresh"], entry["released"], entry["null"])
            for name, entry in report["functions"].items()}


def sums(counts):
    """This library hands reallocarray's calls on as calls of realloc: behind it the two are not told apart."""
    counts = dict(counts)
    merged = tuple(a + b for a, b in zip(counts["realloc"], counts.pop("reallocarray")))
    return {**counts, "realloc": merged}


def test_every_function(measure):
    report = measure([target_path("every_function")], status=3)
    expected = {name: (slot.calls, slot.bytes, slot.fresh, slot.released, slot.null)
                for name, slot in stated("every_function").items()}
    got = slots(report)
    assert {name: got[name] for name in expected} == expected
    assert not any(report["gaps"]) and report["refused"] == []


NAMES = list(programs(str))


@pytest.mark.fast("every_function", "threads", "vfork", "shell", "dlopen", "close_all")
@pytest.mark.parametrize("name", NAMES)
def test_equals_counter(measure, counter, target, name):
    argv, status = programs(target)[name]
    made = counter()
    env = {"LD_PRELOAD": COUNTER_LIBRARY, "ALLOCPROF_COUNTER": made.path}
    report = measure(argv, status, env, stdin=INPUT)
    counts = made.read()
    expected = {name: (slot.calls, slot.bytes, slot.fresh, slot.released, slot.null)
                for name, slot in counts.functions.items()}
    got = {name: slot for name, slot in slots(report).items() if name in expected}
    assert counts.programs > 0
    assert sums(got) == sums(expected)
    begun = sum(not program["is_fork"] for program in report["programs"])
    assert begun == counts.programs


def test_target_does_not_see_it(measure, target):
    script = ("echo ${LD_PRELOAD-none}; env | grep -c inside.so; "
              "/usr/bin/python3 -c 'import os; os.system(\"env | grep -c inside.so\"); print(os.environ.get(\"LD_PRELOAD\"))'")
    report = measure(["sh", "-c", script])
    assert report["result"].stdout.decode().split() == ["none", "0", "0", "None"]
    assert report["result"].stderr == b""


def test_environment_is_cleared(measure, target):
    """env -i, and a shell's child of a child: all are measured."""
    report = measure(["sh", "-c", f"env -i {target('threads')} 8 1000"])
    assert report["functions"]["malloc"]["calls"] >= 8 * 1000
    assert [program["comm"] for program in report["programs"]].count("threads") == 1


def test_static_program_is_named(measure, target):
    static = target("window_static")
    for argv in ["/usr/bin/env", static], ["sh", "-c", f"exec {static}"]:
        report = measure(argv, status=None)
        assert [(entry["path"], entry["reason"]) for entry in report["refused"]] == [(static, "statically linked")]


def test_killed(measure, tmp_path):
    """All up to the last call is there."""
    source = tmp_path / "killed.c"
    source.write_text("""#include <signal.h>
#include <stdlib.h>
int main(void) { for (int i = 0; i < 4321; i++) { void *volatile p = malloc(17); (void)p; }
raise(SIGKILL); }""")
    subprocess.run(["gcc", "-O0", "-o", tmp_path / "killed", source], check=True)
    report = measure([tmp_path / "killed"], status=137)
    assert report["functions"]["malloc"]["calls"] == 4321
    assert report["functions"]["malloc"]["bytes"] == 4321 * 17


def test_nothing_is_left(measure, tmp_path, monkeypatch):
    shared = tmp_path / "shared"
    shared.mkdir()
    monkeypatch.setenv("ALLOCPROF_INSIDE_DIR", str(shared))
    assert measure(["ls", shared])["result"].stdout.startswith(b"allocprof-")
    assert os.listdir(shared) == []


ENDS = ["complete", "max_depth", "no_mapping", "bad_frame", "unreadable", "no_table", "unsupported",
        "frame_pointers", "dump_short", "other_stack"]


class Rows(dict):
    """Calls and bytes by function, thread's name and frames, innermost first."""

    def add(self, function, thread, frames, calls, size_bytes):
        # Names at one address are one function for a probe.
        key = ("aligned_alloc" if function == "memalign" else function, thread, tuple(frames))
        had = self.get(key, (0, 0))
        self[key] = (had[0] + calls, had[1] + size_bytes)


def comparable(frames):
    return [frame if frame[0] else None for frame in support.with_loops_alike(frames)]


def recorded_rows(path):
    rows, frames = Rows(), {}
    with contextlib.closing(sqlite3.connect(path)) as data:
        for stack, module, offset in data.execute(
                "SELECT stack, m.path, f.offset FROM stack_frames s JOIN frames f ON f.id = s.frame "
                "LEFT JOIN modules m ON m.id = f.module ORDER BY stack, depth"):
            # Where code is that belongs to no file differs from run to run.
            frames.setdefault(stack, []).append((module, offset))
        for row in data.execute("SELECT c.function, t.name, c.stack, c.calls, c.bytes "
                                "FROM counts c JOIN threads t ON t.id = c.thread"):
            rows.add(row[0], row[1], comparable(frames.get(row[2], [])), *row[3:])
    return rows


def measured_rows(report, has_python=False):
    rows, cut = Rows(), Rows()
    stacks = {stack["stack"]: stack for stack in report["stacks"]}
    for count in report["counts"]:
        stack = stacks[count["stack"]]
        # Those of Python are in no file.
        frames = comparable([(module or "[Python]" if has_python else module, offset) for module, offset in stack["frames"]])
        to = cut if ENDS[stack["end"]] == "unsupported" else rows
        to.add(count["function"], count["thread"], frames, count["calls"], count["bytes"])
    return rows, cut


# glibc's array of a thread's TLS modules has an element more, for the library's own.
DTV_BYTES = 16


def is_dtv(key, expected, got):
    function, _, frames = key
    return (function == "calloc" and "/ld-linux" in frames[0][0] and expected[0] == got[0] and
            got[1] - expected[1] == DTV_BYTES * got[0])


STACKS = {
    **{name: lambda target, name=name: [target(name)] for name in (
        "every_function", "signals", "longjmp", "contexts", "fork_noexec", "vfork_exec", "spawn", "jit",
        "truth_O2", "truth_realign", "truth_clang", "truth_throw", "truth_early")},
    "threads": lambda target: [target("threads"), 8, 1000],
    "stacks": lambda target: [target("many_stacks"), "-t", 4, 50000, 1000],
    "dlopen": lambda target: [target("dlopen_lib"), target("liballocating.so"), 3],
    "swap_code": lambda target: [target("swap_code"), target("libswap_a.so"), target("libswap_b.so")],
    "exec_nonleader": lambda target: [target("exec_nonleader"), target("threads"), 4, 500],
    "truth_load": lambda target: [target("truth_load"), target("libtruth_a.so"), target("libtruth_b.so")],
    "jq": lambda target: ["/usr/bin/jq", "-n", "[range(3000) | {a: ., b: tostring}] | group_by(.a % 7) | length"],
    "python": lambda target: ["/usr/bin/python3", "-S", "-c", "import _ctypes, zlib; [str(i) * 200 for i in range(500)]"],
    "perl": lambda target: ["/usr/bin/perl", "-e", "print length join ',', map { sprintf '%d', $_ } 1 .. 2000"],
    "shell": lambda target: ["/bin/sh", "-c", "/usr/bin/seq 10 | /usr/bin/sort -n | /usr/bin/wc -l"],
}


@pytest.mark.fast("every_function", "threads", "dlopen", "jq")
@pytest.mark.parametrize("name", list(STACKS))
def test_stacks_equal(run, allocprof, measure, target, tmp_path, name):
    """Row by row what `record` has of another run."""
    argv = [str(word) for word in STACKS[name](target)]
    env = {"PERL_HASH_SEED": "0", "PYTHONHASHSEED": "0"}
    data = tmp_path / "record.data"
    status = run([allocprof, "record", "--no-symbols", "-o", data, "--", *argv], env=env).status
    report = measure(argv, status, env, mode="record")
    expected = recorded_rows(data)
    got, cut = measured_rows(report, name == "python")
    assert got and not any(report["gaps"])
    # Where the tables do not suffice `record` has libdw go on.
    for (function, thread, frames), count in cut.items():
        (whole,) = [key for key in expected if key not in got and key[:2] == (function, thread) and
                    key[2][:len(frames)] == frames and expected[key] == count]
        del expected[whole]
    wrong = [f"{key}: record {expected.get(key)}, inside {got.get(key)}" for key in {*expected, *got}
             if expected.get(key) != got.get(key) and
             not (key in expected and key in got and is_dtv(key, expected[key], got[key]))]
    assert not wrong, "\n".join(wrong)


def test_own_malloc_is_named(measure, target):
    report = measure([target("signal_stack")])
    assert [(entry["path"], entry["reason"]) for entry in report["refused"]] == \
        [(target("signal_stack"), "with its own malloc")]

BLOCK_COLUMNS = ["allocations", "failed", "bytes", "frees", "freed_bytes", "temporary", "temporary_bytes",
                 "peak", "peak_bytes"]
SHARES = ["allocations", "failed", "size_bytes", *BLOCK_COLUMNS[3:]]


def recorded_blocks(path):
    rows, frames = {}, {}
    with contextlib.closing(sqlite3.connect(path)) as data:
        for stack, module, offset in data.execute(
                "SELECT stack, m.path, f.offset FROM stack_frames s JOIN frames f ON f.id = s.frame "
                "LEFT JOIN modules m ON m.id = f.module ORDER BY stack, depth"):
            frames.setdefault(stack, []).append((module, offset) if module else None)
        for row in data.execute(f"SELECT c.function, t.name, c.stack, c.calls, b.{', b.'.join(BLOCK_COLUMNS)} "
                                "FROM counts c JOIN blocks b ON b.count = c.id JOIN threads t ON t.id = c.thread"):
            add_blocks(rows, row[0], row[1], frames.get(row[2], []), row[3:])
    return rows


def measured_blocks(report):
    rows = {}
    stacks = {stack["stack"]: [(module, offset) if module else None for module, offset in stack["frames"]]
              for stack in report["stacks"]}
    for record in report["records"]:
        add_blocks(rows, record["function"], record["thread"], stacks[record["stack"]],
                   [record["calls"], *(record[name] for name in SHARES)])
        assert record["in_sizes"] == record["allocations"] and record["in_lifetimes"] == record["frees"]
    return rows


def add_blocks(rows, function, thread, frames, figures):
    key = ("aligned_alloc" if function == "memalign" else function, thread, tuple(frames))
    rows[key] = [a + b for a, b in zip(rows.get(key, [0] * len(figures)), figures)]


LIVE = {
    **{name: lambda target, name=name: [target(name)] for name in ("every_function", "fork_noexec", "signals")},
    "shapes": lambda target: [target("live_shapes"), "all"],
    "dlopen": lambda target: [target("dlopen_lib"), target("liballocating.so"), 3],
    "jq": STACKS["jq"],
    "perl": STACKS["perl"],
    "sqlite": lambda target: ["/usr/bin/sqlite3", ":memory:", "CREATE TABLE t(a, b); WITH RECURSIVE c(x) AS "
                              "(SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 3000) INSERT INTO t "
                              "SELECT x, hex(x) FROM c; CREATE INDEX i ON t(b); SELECT count(*) FROM t"],
}


@pytest.mark.fast("every_function", "jq")
@pytest.mark.parametrize("name", list(LIVE))
def test_blocks_equal(run, allocprof, measure, target, tmp_path, name):
    """Row by row what `record --live` has of another run: what became of the blocks."""
    argv = [str(word) for word in LIVE[name](target)]
    env = {"PERL_HASH_SEED": "0"}
    data = tmp_path / "record.data"
    status = run([allocprof, "record", "--live", "--no-symbols", "-o", data, "--", *argv], env=env).status
    report = measure(argv, status, env, mode="live")
    expected, got = recorded_blocks(data), measured_blocks(report)
    if len(report["programs"]) > 1:
        # What is live in processes that run beside each other is not the same in every run.
        expected, got = ({key: row[:-2] for key, row in rows.items()} for rows in (expected, got))
    wrong = [f"{key}: record {expected.get(key)}, inside {got.get(key)}" for key in {*expected, *got}
             if expected.get(key) != got.get(key)]
    assert not wrong, "\n".join(wrong)
    frees = sum(row[4] for row in got.values())
    assert report["lifetimes"] == frees
    assert report["live"] == sum(row[1] for row in got.values()) - frees
    assert report["live_bytes"] == sum(row[3] - row[5] for row in got.values())


def test_other_user(measure, target):
    """A program of a user who cannot reach the shared memory runs as it does alone, and is named."""
    if os.geteuid():
        pytest.skip("only root can change the user")
    report = measure(["setpriv", "--reuid", "65534", "--clear-groups", target("every_function")], status=3)
    assert report["result"].stderr == b""
    assert [(entry["path"], entry["reason"]) for entry in report["refused"]] == \
        [(target("every_function"), "without access to the shared memory")]


def test_musl(measure, tmp_path):
    if not shutil.which("musl-gcc"):
        unavailable("musl-tools is not installed")
    source = tmp_path / "musl.c"
    source.write_text("""#include <stdlib.h>
#include <string.h>
int main(void) { for (int i = 0; i < 77; i++) { void *volatile p = malloc(10); p = realloc(p, 20); free(p); }
char *volatile s = strdup("seven b"); return !s; }""")
    subprocess.run(["musl-gcc", "-O1", "-fno-builtin", "-o", tmp_path / "musl", source], check=True)
    report = measure([tmp_path / "musl"], mode="live")
    got = slots(report)
    assert got["malloc"] == (78, 778, 0, 0, 0) and got["realloc"] == (77, 1540, 0, 0, 0)
    assert got["free"] == (77, 0, 0, 0, 0) and report["live"] == 1 and report["live_bytes"] == 8


def test_fourteen_thousand_threads(measure, tmp_path):
    """All at a time, in little memory."""
    source = tmp_path / "threads.c"
    source.write_text("""#include <pthread.h>
#include <stdlib.h>
static pthread_barrier_t barrier;
static void *work(void *unused)
{
	for (int i = 0; i < 10; i++) { void *volatile p = malloc(10 + i); free(p); }
	pthread_barrier_wait(&barrier);
	return NULL;
}
int main(int argc, char **argv)
{
	int n = atoi(argv[1]);
	pthread_t *threads = malloc(n * sizeof(*threads));
	pthread_attr_t attributes;
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 65536);
	pthread_barrier_init(&barrier, NULL, n + 1);
	for (int i = 0; i < n; i++)
		if (pthread_create(&threads[i], &attributes, work, NULL)) return 2;
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < n; i++) pthread_join(threads[i], NULL);
}""")
    subprocess.run(["gcc", "-O1", "-fno-builtin", "-pthread", "-o", tmp_path / "threads", source], check=True)
    report = measure([tmp_path / "threads", 14000], mode="live")
    assert not any(report["gaps"])
    assert report["threads"] == 14001
    assert report["functions"]["malloc"]["calls"] - 14000 * 10 <= 2
    assert sum(record["calls"] for record in report["records"] if record["function"] == "malloc") == \
        report["functions"]["malloc"]["calls"]
