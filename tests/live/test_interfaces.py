# SPDX-License-Identifier: GPL-3.0-or-later
"""Every function of every allocator that Debian has, called as often as the program of interfaces.py knows: calls,
bytes, frees and live blocks are the program's own; what the allocator calls for itself is no call."""

import collections
import json
import sqlite3

import pytest

import interfaces
from support import Obedient, shell_status, unavailable, wait_until_counting

LIBRARIES = ["libjemalloc", "libtcmalloc_minimal", "libtcmalloc", "libmimalloc"]
# Those of one address have one name.
SAME = {"memalign": "aligned_alloc", "free_sized": "delete", "free": "delete"}


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """programs(NAME) is the program linked to that library."""
    directory = tmp_path_factory.mktemp("interfaces")
    made = {}

    def make(name, *libraries):
        if name not in made:
            if not libraries:
                path = interfaces.library(name)
                if not path:
                    unavailable(f"{name} is not installed: scripts/setup --test")
                libraries = [path]
            made[name] = interfaces.build(directory, name, *libraries)
        return made[name]

    return make


def kind(family):
    return SAME.get(family, family)


def called(result):
    """The entries that the program says that it has called."""
    names = set(result.stdout.decode().split())
    entries = [entry for entry in interfaces.ENTRIES if entry.name in names]
    assert len(entries) >= 20, f"the allocator has next to none of its functions: {result}"
    return entries


class Memory:
    """Of a recording, calls and blocks by the function that called."""

    def __init__(self, path):
        self.calls = collections.Counter()
        self.bytes = collections.Counter()
        self.kept = collections.Counter()
        self.freed = collections.Counter()
        self.failed = collections.Counter()
        connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        rows = connection.execute("SELECT caller, function, calls, bytes FROM calls")
        for caller, function, calls, size in rows:
            self.calls[caller, kind(function)] += calls
            self.bytes[caller, kind(function)] += size
        rows = connection.execute("SELECT caller, function, live, frees, failed FROM memory")
        for caller, function, live, frees, failed in rows:
            self.kept[caller, kind(function)] += live
            self.freed[caller, kind(function)] += frees
            self.failed[caller, kind(function)] += failed
        self.ledger = dict(connection.execute("SELECT name, value FROM ledger"))
        self.meta = dict(connection.execute("SELECT key, value FROM meta"))
        connection.close()

    def of(self, caller):
        return {function: (self.calls[at, function], self.bytes[at, function], self.freed[at, function],
                           self.kept[at, function])
                for at, function in self.calls if at == caller}


def expected(entry):
    """Calls, bytes, blocks freed and blocks kept of what calls @entry, by function."""
    n, kept = entry.calls, (entry.calls + 1) // 2
    if entry.frees:
        return {}
    if entry.family == "xallocx":
        return {"xallocx": (n, n * entry.size, n, 0)}
    return {kind(entry.family): (n, n * entry.size, n - kept, kept)}


def check_recording(path, entries):
    memory = Memory(path)
    wrong = {}
    for entry in entries:
        found = memory.of(f"call_{entry.name}")
        if found != expected(entry):
            wrong[entry.name] = f"expected {expected(entry)}, found {found}"
    assert not wrong
    for keep, function in (("keep_malloc", "malloc"), ("keep_new", "new"), ("keep_array", "new")):
        calls = sum(entry.calls for entry in entries
                    if entry.frees and entry.partner == keep or
                    keep == "keep_malloc" and (entry.reallocates or entry.family == "xallocx"))
        if calls:
            assert memory.of(keep)[function][0::2] == (calls, calls), keep
            assert memory.of(keep)[function][3] == 0, keep
    assert memory.ledger["frees_unknown"] == 0
    assert not {name: n for name, n in memory.ledger.items() if n and name.startswith(("lost", "untracked"))}
    return memory


def record(run, allocprof, path, *command, env=None):
    return run([allocprof, "record", "--live", "-o", path, "--", *command], env=env, expect=0)


@pytest.mark.parametrize("name", LIBRARIES)
def test_every_function(run, allocprof, programs, tmp_path, name):
    result = record(run, allocprof, tmp_path / "data", programs(name), "c")
    check_recording(tmp_path / "data", called(result))


@pytest.mark.parametrize("name", LIBRARIES)
def test_expressions(run, allocprof, programs, tmp_path, name):
    """What C++ makes of new and delete: a cookie is part of the request, placement is none."""
    record(run, allocprof, tmp_path / "data", programs(name), "e")
    memory = Memory(tmp_path / "data")
    for expression, size in interfaces.EXPRESSION_SIZES.items():
        found = memory.of(f"call_expression_{expression}")
        assert found == ({"new": (5, 5 * size, 5, 0)} if size else {}), expression
    assert memory.ledger["frees_unknown"] == 0


@pytest.mark.parametrize("name", LIBRARIES)
def test_null(run, allocprof, programs, tmp_path, name):
    result = record(run, allocprof, tmp_path / "data", programs(name), "f")
    memory = Memory(tmp_path / "data")
    names = result.stdout.decode().split()
    assert len(names) >= 5
    for entry in interfaces.ENTRIES:
        if entry.name in names:
            at = f"fail_{entry.name}", kind(entry.family)
            assert (memory.calls[at], memory.failed[at]) == (2, 2), entry.name


@pytest.mark.parametrize("name", [name for name in LIBRARIES if name != "libmimalloc"])
def test_exceptions(run, allocprof, programs, tmp_path, name):
    """What is thrown comes through: no return probe is in its way. mimalloc, which is in C, ends the program."""
    result = record(run, allocprof, tmp_path / "data", programs(name), "t")
    memory = Memory(tmp_path / "data")
    names = result.stdout.decode().split()
    assert len(names) >= 8
    for entry in interfaces.ENTRIES:
        if entry.name in names:
            at = f"fail_{entry.name}", kind(entry.family)
            assert memory.calls[at] == 2, entry.name
            assert (memory.freed[at], memory.kept[at]) == (0, 0), entry.name


def families(run, allocprof, path, *arguments, env=None):
    """Calls and bytes of a run by function, and all figures."""
    result = run([allocprof, "stat", "--json", "-o", path, *arguments], env=env, expect=0)
    figures = json.loads(path.read_text())
    sums = collections.Counter()
    for function, counts in figures["functions"].items():
        sums[kind(function), "calls"] += counts["calls"]
        sums[kind(function), "bytes"] += counts["bytes"]
    return result, sums, figures


def check_stat(run, allocprof, path, program, *options, env=None):
    """What the program adds to its start-up."""
    _, before, _ = families(run, allocprof, path, *options, "--", program, "0", env=env)
    result, after, figures = families(run, allocprof, path, *options, "--", program, "c", env=env)
    wanted = collections.Counter()
    for entry in called(result):
        at = kind(entry.family)
        wanted[at, "calls"] += entry.calls
        if entry.frees or entry.family == "xallocx" or entry.reallocates:
            first = "new" if "new" in entry.partner or "array" in entry.partner else "malloc"
            wanted[first, "calls"] += entry.calls
            wanted[first, "bytes"] += entry.calls * (24 if entry.reallocates and entry.family != "xallocx"
                                                     else entry.size)
        if not entry.frees:
            wanted[at, "bytes"] += entry.calls * entry.size
            freed = entry.calls if entry.family == "xallocx" else entry.calls // 2
            wanted["delete", "calls"] += freed
    after.subtract(before)
    # The buffer of stdout.
    assert {at: n for at, n in after.items() if n} == {at: n for at, n in wanted.items() if n}
    assert figures["complete"] and figures["lost"]["total"] == 0
    return figures


@pytest.mark.parametrize("name", LIBRARIES)
@pytest.mark.parametrize("options", [[], ["--live"]], ids=["requests", "live"])
def test_stat(run, allocprof, programs, tmp_path, name, options):
    check_stat(run, allocprof, tmp_path / "json", programs(name), *options)


@pytest.mark.parametrize("name", LIBRARIES)
@pytest.mark.parametrize("inject", ["multi=0", "sessions=0"])
def test_older_kernels(run, allocprof, programs, tmp_path, name, inject):
    """With a perf event for each probe, and with return probes of their own."""
    result = run([allocprof, "record", "--live", "--inject", inject, "-o", tmp_path / "data", "--", programs(name),
                  "c"], expect=0)
    check_recording(tmp_path / "data", called(result))


@pytest.mark.parametrize("name", LIBRARIES)
def test_preloaded(run, allocprof, programs, tmp_path, name):
    """The program itself has glibc's."""
    preload = {"LD_PRELOAD": str(interfaces.library(name))}
    result = record(run, allocprof, tmp_path / "data", programs("none", "-ldl"), "c", env=preload)
    check_recording(tmp_path / "data", called(result))


@pytest.mark.parametrize("name", LIBRARIES)
def test_attached(runner, allocprof, programs, tmp_path, name):
    obedient = Obedient(runner, [programs(name), "wc"])
    recorder = runner.start([allocprof, "record", "--live", "-o", tmp_path / "data", "-p", str(obedient.pid)])
    wait_until_counting(allocprof, recorder)
    obedient.process.stdin.write(b"\n")
    obedient.process.stdin.flush()
    names, _ = obedient.process.communicate()
    assert shell_status(recorder.wait()) == 0
    names = (obedient.pending + names).decode().split()
    check_recording(tmp_path / "data", [entry for entry in interfaces.ENTRIES if entry.name in names])


STATIC = {
    "jemalloc": ["-Wl,--whole-archive", "/usr/lib/x86_64-linux-gnu/libjemalloc.a", "-Wl,--no-whole-archive", "-lm", "-lpthread", "-ldl"],
    "tcmalloc": ["-Wl,--whole-archive", "/usr/lib/x86_64-linux-gnu/libtcmalloc_minimal.a", "-Wl,--no-whole-archive", "-lpthread"],
}


@pytest.mark.parametrize("how", ["dynamic", "static"])
@pytest.mark.parametrize("name", STATIC)
def test_linked_in(run, allocprof, programs, tmp_path, name, how):
    """The allocator is part of the program: alone, and with the C library, too."""
    flags = ["-static", "-DALL_HERE"] if how == "static" else []
    program = programs(f"{name}-{how}", *flags, *STATIC[name])
    result = record(run, allocprof, tmp_path / "data", program, "c")
    check_recording(tmp_path / "data", called(result))
