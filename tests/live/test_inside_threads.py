# SPDX-License-Identifier: GPL-3.0-or-later
"""Threads without end, and many at once: what a thread needs of the library is used again when it has ended, whatever the
threads' names, and all find room."""

import sqlite3
import subprocess
import sys

import pytest

CALLS = 20
MODES = {"stat": ["stat"], "record": ["record", "--no-symbols"], "live": ["record", "--no-symbols", "--live"]}

# Names that threads of a process have, as in src/inside/thread_names.c.
NAMES = 512


def by_thread(path):
    """Calls of malloc in request() by the name of the thread: those of work() and no others."""
    return dict(sqlite3.connect(f"file:{path}?mode=ro", uri=True).execute(
        """SELECT t.name, sum(c.calls) FROM counts c JOIN threads t ON t.id = c.thread
           WHERE c.function = 'malloc' AND t.name NOT IN ('named_threads') GROUP BY 1"""))


def meta(path, key):
    row = sqlite3.connect(f"file:{path}?mode=ro", uri=True).execute(
        "SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return row and int(row[0])


def grown_kb(output):
    tenth, end = map(int, output.split())
    return end - tenth


@pytest.mark.engines("preload")
@pytest.mark.fast("preload-live")
@pytest.mark.parametrize("mode", MODES)
def test_memory_is_used_again(run, allocprof, target, tmp_path, mode):
    """Five thousand threads with names of their own: the last nine tenths need hardly any memory."""
    n, output = 5000, tmp_path / "data"
    ran = run([allocprof, *MODES[mode], "-o", output, "--", target("named_threads"), n, "conn-%d"], expect=0)
    assert grown_kb(ran.stdout) < 4000, ran.stdout
    if mode == "stat":
        return
    calls = by_thread(output)
    expected = {f"conn-{i}": CALLS + (i % 100 == 0) for i in range(NAMES - 1)}
    assert {name: calls.get(name) for name in expected} == expected
    assert sum(calls.values()) == n * CALLS + n // 100
    common = meta(output, "common_names")
    assert "conn-*" in calls and len(calls) - 1 + common == n
    said = run([allocprof, "report", output], expect=0).stderr
    assert f"{common:,} threads are counted together with others".encode() in said + ran.stderr


@pytest.mark.engines("preload")
@pytest.mark.fast("preload")
def test_threads_have_their_names(run, allocprof, target, tmp_path):
    """As long as there are few; and threads of one name are one, however many."""
    output = tmp_path / "data"
    run([allocprof, "record", "-o", output, "--", target("named_threads"), 300, "conn-%d"], expect=0)
    assert by_thread(output) == {f"conn-{i}": CALLS + (i % 100 == 0) for i in range(300)}
    assert meta(output, "common_names") is None
    run([allocprof, "record", "-o", output, "--", target("named_threads"), 2000, "conn"], expect=0)
    assert by_thread(output) == {"conn": 2000 * CALLS + 20}
    assert meta(output, "common_names") is None


@pytest.mark.engines("preload")
@pytest.mark.fast("preload")
def test_names_without_digits(run, allocprof, target, compiled, tmp_path):
    """Where '*' for digits does not make them few, the rest has one name."""
    program = compiled(r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
static void *work(void *number)
{
	char name[] = "aaaaaaaa";
	for (long i = (long)number, k = 0; i; i /= 26, k++) name[k] += i % 26;
	pthread_setname_np(pthread_self(), name);
	void *volatile block = malloc(7);
	return NULL;
}
int main(void)
{
	for (long i = 0; i < 2000; i++) {
		pthread_t thread;
		if (pthread_create(&thread, NULL, work, (void *)i)) return 1;
		pthread_join(thread, NULL);
	}
	return 0;
}""")
    output = tmp_path / "data"
    run([allocprof, "record", "-o", output, "--", program], expect=0)
    calls = by_thread(output)
    calls.pop("program", None)
    # The main thread's is one of 512, those with '*' have 64 more.
    assert 1000 < calls.pop("(other names)") == 2000 - len(calls), calls
    assert all(n == 1 for n in calls.values())


@pytest.mark.slow
@pytest.mark.engines("preload")
def test_fifty_thousand_names(run, allocprof, target, tmp_path):
    """Neither the target nor allocprof needs 30 MB more for them than for ten."""
    names = ["conn-%d", 50000], ["conn-%d", 10]
    sizes = []
    for name, n in names:
        child = subprocess.run(
            [sys.executable, "-c", "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True); "
             "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)",
             allocprof, "record", "-q", "--live", "-o", tmp_path / "data", "--", target("named_threads"), str(n), name],
            check=True, stdout=subprocess.PIPE)
        sizes.append([int(line) for line in child.stdout.split()])
    bare = [int(line) for line in run([target("named_threads"), 50000, "conn-%d"], expect=0).stdout.split()]
    (_, many_kb, many_tool_kb), (_, _, few_tool_kb) = sizes
    assert many_kb - bare[1] < 30000, (sizes, bare)
    assert many_tool_kb - few_tool_kb < 30000, sizes
    assert sum(by_thread(tmp_path / "data").values()) == 10 * CALLS + 1


@pytest.mark.engines("uprobe", "preload")
@pytest.mark.fast("record", "live", "preload-live")
@pytest.mark.parametrize("mode", MODES)
def test_ten_thousand_begin_at_once(run, allocprof, target, tmp_path, mode):
    """All of them find room."""
    n, output = 10000, tmp_path / "data"
    report = run([allocprof, *MODES[mode], "-o", output, "--", target("herd"), n], expect=0)
    assert b"not complete" not in report.stderr, report.stderr
    if mode != "stat":
        data = sqlite3.connect(f"file:{output}?mode=ro", uri=True)
        ledger = dict(data.execute("SELECT name, value FROM ledger"))
        assert not ledger["lost"], ledger
        calls, = data.execute("SELECT sum(calls) FROM counts WHERE function = 'malloc'").fetchone()
        # The C library makes a few for the threads' stacks.
        assert 0 <= calls - n * CALLS - 1 < 10, calls
