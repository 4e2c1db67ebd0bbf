# SPDX-License-Identifier: GPL-3.0-or-later
"""Anonymous memory that processes take from the kernel, counted at the system calls: as often and as much as a program
states, and as strace's log of the same run has it, process by process."""

import collections
import json
import shutil
import sqlite3

import pytest

import mappings
from support import TIMEOUT_SECONDS, Obedient, folded, stated_cases, unavailable, wait_until_counting

CALLS = mappings.CALLS
# A thread unmaps another one's stack after join() has returned; strace does not say what became of a call that the end of
# the process cuts off.
THREADS_OF_PYTHON = """
import os, threading
def work():
    kept = []
    for i in range(40):
        block = bytearray(1000)
        for j in range(8):
            block += bytes(300000)
        kept.append(block)
threads = [threading.Thread(target=work) for i in range(6)]
for thread in threads: thread.start()
for thread in threads: thread.join()
while len(os.listdir("/proc/self/task")) > 1: pass
"""
FORKS_OF_PYTHON = """
import mmap, os
for i in range(8):
    shared = mmap.mmap(-1, 1 << 20)
    if not os.fork():
        kept = [bytes(400000) for j in range(20)]
        shared.close()
        os._exit(0)
    os.wait()
"""


def stat(run, allocprof, argv, *options):
    result = run([allocprof, "stat", "--json", "--allocator", "mmap", *options, *argv], expect=0)
    report = json.loads(result.stderr)
    assert report["complete"] and report["lost"]["total"] == 0, report
    return report["functions"]


@pytest.mark.parametrize("case", ["work", "forked"])
def test_stated(run, allocprof, target, case):
    functions = stat(run, allocprof, [target("mappings")], "--within", case)
    got = {}
    for name in CALLS:
        entry = functions[name]
        got |= {name: entry["calls"], f"{name}_bytes": entry["bytes"], f"{name}_failed": entry["failed"],
                f"{name}_returned": entry["returned_bytes"]}
    expected = stated_cases("mappings")[case]
    assert got == expected


def recorded(path):
    """By process id, {function: (calls, bytes)}, of what strace runs."""
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    totals = collections.defaultdict(dict)
    for pid, function, calls, size in connection.execute(
            "SELECT pid, function, sum(calls), sum(bytes) FROM calls WHERE comm != 'strace' GROUP BY 1, 2"):
        totals[pid][function] = (calls, size)
    ledger = dict(connection.execute("SELECT name, value FROM ledger"))
    connection.close()
    assert ledger["lost"] == 0 and ledger["events"] == ledger["attributed"]
    return dict(totals), ledger


def programs(target):
    return {
        "mappings": [target("mappings")],
        "threads": [target("threads")],
        "forks": [target("fork_storm")],
        "spawn": [target("spawn")],
        "jq": ["jq", "-n", "[range(200000)] | map(tostring) | length"],
        "pipeline": ["sh", "-c", "ls /usr/bin | sort --parallel=2 | grep a | wc -l; (true; false) || date"],
        "python_threads": ["/usr/bin/python3", "-c", THREADS_OF_PYTHON],
        "python_forks": ["/usr/bin/python3", "-c", FORKS_OF_PYTHON],
        "git": ["git", "--no-pager", "log", "--oneline", "-3"],
    }


@pytest.mark.fast("threads", "jq")
@pytest.mark.parametrize("name", list(programs(str)))
def test_equal_to_strace(run, allocprof, target, tmp_path, name):
    argv = programs(target)[name]
    if not shutil.which("strace") or not shutil.which(argv[0]):
        unavailable(f"strace or {argv[0]} is not installed: scripts/setup --test")
    log, data = tmp_path / "strace.log", tmp_path / "data"
    run([allocprof, "record", "-q", "--allocator", "mmap", "-e", ",".join(CALLS), "-o", str(data),
         "--", "strace", "-f", "-s", "0", "-o", str(log), "-e", "trace=" + mappings.TRACED, *argv], expect=None)
    got, ledger = recorded(data)
    expected = mappings.Log(log).totals()
    assert any("mmap" in calls for calls in expected.values())
    assert got == expected
    assert ledger["complete"] >= 0.99 * ledger["attributed"]


def test_stacks(run, allocprof, target, tmp_path):
    data = tmp_path / "data"
    run([allocprof, "record", "-q", "--allocator", "mmap", "-o", str(data), target("mappings")], expect=0)
    lines, _ = folded(run, allocprof, data)
    ours = {stack: calls for stack, calls in lines.items() if ";work;" in stack}
    beneath = collections.Counter()
    for stack, calls in ours.items():
        frames = stack.split(";")
        beneath[frames[frames.index("work") + 1], frames[-1]] += calls
    assert beneath["split", "mmap"] == 1 and beneath["files", "mmap"] == 1 and beneath["moving", "mmap"] == 2
    assert beneath["moving", "mremap"] == 4 and beneath["heap", "brk"] == 2 and beneath["failing", "brk"] == 1


def test_beside_malloc(run, allocprof, target):
    """A malloc that takes memory from the kernel is one malloc and one brk; totals are those of malloc and its kin. Of
    several threads that give memory back at a time the kernel may not tell what each did (docs/mappings.md)."""
    alone = json.loads(run([allocprof, "stat", "--json", target("every_function")], expect=3).stderr)
    both = json.loads(run([allocprof, "stat", "--json", "--allocator", "mmap", target("every_function")], expect=3).stderr)
    assert both["functions"]["brk"]["calls"] > 0
    for name, entry in alone["functions"].items():
        assert both["functions"][name] == entry
    for name in ("allocations", "deallocations", "reallocations", "total_allocations", "total_allocated_bytes"):
        assert both[name] == alone[name]


# Maps 10 MiB, and again for each line that it reads.
STRIPPED = r"""
#include <stdio.h>
#include <sys/mman.h>

int main(void)
{
	const char *says = "ready";
	char line[8];

	do {
		for (int i = 0; i < 10; i++)
			mmap(NULL, 1 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		puts(says);
		fflush(stdout);
		says = "done";
	} while (fgets(line, sizeof(line), stdin));
	return 0;
}
"""


@pytest.mark.parametrize("attached", [False, True], ids=["command", "attached"])
def test_program_without_an_allocator(run, runner, allocprof, tmp_path, attached):
    """Of a static program without symbols nothing else can be counted, nor of one of Go."""
    program = tmp_path / "program"
    (tmp_path / "program.c").write_text(STRIPPED)
    run(["gcc", "-static", "-s", "-o", program, tmp_path / "program.c"], expect=0)
    words = [allocprof, "stat", "--json", "--allocator", "mmap", "-o", tmp_path / "json"]
    if attached:
        process = Obedient(runner, [program])
        recorder = runner.start([*words, "-p", process.pid])
        wait_until_counting(allocprof, recorder)
        process.ask("again")
        process.exit()
        assert recorder.wait(TIMEOUT_SECONDS) == 0
    else:
        run([*words, program], expect=0)
    entry = json.loads((tmp_path / "json").read_text())["functions"]["mmap"]
    assert entry["calls"] - entry["failed"] >= 10 and entry["bytes"] >= 10 << 20, entry
