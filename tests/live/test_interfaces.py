# SPDX-License-Identifier: GPL-3.0-or-later
"""Every function of every allocator that Debian has, called as often as the program of interfaces.py knows: calls,
bytes, frees and live blocks are the program's own; what the allocator calls for itself is no call."""

import collections
import json
import sqlite3

import pytest

import interfaces
from support import Obedient, Recording, shell_status, unavailable, wait_until_counting

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


@pytest.mark.fast("libjemalloc")
@pytest.mark.parametrize("name", LIBRARIES)
def test_every_function(run, allocprof, programs, tmp_path, name):
    result = record(run, allocprof, tmp_path / "data", programs(name), "c")
    check_recording(tmp_path / "data", called(result))


@pytest.mark.slow
@pytest.mark.parametrize("name", LIBRARIES)
def test_expressions(run, allocprof, programs, tmp_path, name):
    """What C++ makes of new and delete: a cookie is part of the request, placement is none."""
    record(run, allocprof, tmp_path / "data", programs(name), "e")
    memory = Memory(tmp_path / "data")
    for expression, size in interfaces.EXPRESSION_SIZES.items():
        found = memory.of(f"call_expression_{expression}")
        assert found == ({"new": (5, 5 * size, 5, 0)} if size else {}), expression
    assert memory.ledger["frees_unknown"] == 0


@pytest.mark.slow
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


@pytest.mark.fast("libjemalloc")
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
    # The table has all that they export.
    assert figures["complete"] and figures["lost"]["total"] == 0
    return figures


@pytest.mark.covering(1)
@pytest.mark.slow
@pytest.mark.parametrize("name", LIBRARIES)
@pytest.mark.parametrize("options", [[], ["--live"]], ids=["requests", "live"])
def test_stat(run, allocprof, programs, tmp_path, name, options):
    check_stat(run, allocprof, tmp_path / "json", programs(name), *options)


@pytest.mark.covering(1)
@pytest.mark.slow
@pytest.mark.parametrize("name", LIBRARIES)
@pytest.mark.parametrize("inject", ["multi=0", "sessions=0"])
def test_older_kernels(run, allocprof, programs, tmp_path, name, inject):
    """With a perf event for each probe, and with return probes of their own."""
    result = run([allocprof, "record", "--live", "--inject", inject, "-o", tmp_path / "data", "--", programs(name),
                  "c"], expect=0)
    check_recording(tmp_path / "data", called(result))


@pytest.mark.slow
@pytest.mark.parametrize("name", LIBRARIES)
def test_preloaded(run, allocprof, programs, tmp_path, name):
    """The program itself has glibc's."""
    preload = {"LD_PRELOAD": str(interfaces.library(name))}
    result = record(run, allocprof, tmp_path / "data", programs("none", "-ldl"), "c", env=preload)
    check_recording(tmp_path / "data", called(result))


def test_behind_another_library(run, allocprof, programs, tmp_path):
    """oneTBB's malloc and new are in a library that only calls the one that has the allocator. They count there,
    once, by what that calls them."""
    proxy = interfaces.library("libtbbmalloc_proxy")
    if not proxy:
        unavailable("libtbbmalloc2 is not installed: scripts/setup --test")
    preload, program = {"LD_PRELOAD": str(proxy)}, programs("none", "-ldl")
    _, _, before = families(run, allocprof, tmp_path / "json", "--", program, "0", env=preload)
    result, _, after = families(run, allocprof, tmp_path / "json", "--", program, "c", env=preload)
    names = set(result.stdout.decode().split())
    entries = [entry for entry in interfaces.ENTRIES if entry.name in names]
    assert len(entries) >= 15
    # An entry that frees is given a block, and one that reallocates, too.
    given = sum(entry.calls for entry in entries if entry.frees or entry.reallocates)
    asked = sum(entry.calls for entry in entries if not entry.frees)
    freed = sum(entry.calls if entry.frees else entry.calls // 2 for entry in entries)
    assert after["total_allocations"] - before["total_allocations"] == given + asked
    assert after["deallocations"] - before["deallocations"] == freed
    assert after["complete"] is True


HIDDEN = """
#include <stddef.h>

void *je_malloc(size_t size);
void je_free(void *p);

int main(void)
{
	for (int i = 0; i < 5; i++)
		je_free(je_malloc(100));
	return 0;
}
"""


def test_hidden_in_a_stripped_program(run, allocprof, tmp_path):
    """A jemalloc of the program's own has other names, or none: then it is said that nothing is known of it."""
    objects, program = tmp_path / "own.o", tmp_path / "hidden"
    (tmp_path / "hidden.c").write_text(HIDDEN)
    # As it is where jemalloc is configured with a prefix: all that is not asked for is local.
    renamed = [f"--redefine-sym={name}=je_{name}" for name in ("malloc", "free")]
    kept = ["--keep-global-symbol=je_malloc", "--keep-global-symbol=je_free"]
    run(["ld", "-r", "-o", objects, "--whole-archive", "/usr/lib/x86_64-linux-gnu/libjemalloc.a"], expect=0)
    run(["objcopy", *renamed, objects], expect=0)
    run(["objcopy", *kept, objects], expect=0)
    run(["g++", "-x", "c", "-O1", "-fno-builtin", "-o", program, tmp_path / "hidden.c", "-x", "none", objects, "-lm",
         "-lpthread", "-ldl"], expect=0)
    _, sums, figures = families(run, allocprof, tmp_path / "json", "--", program)
    assert figures["complete"] is True
    assert figures["functions"]["malloc"]["calls"] >= 5 and figures["functions"]["free"]["calls"] >= 5

    run(["strip", program], expect=0)
    result, _, figures = families(run, allocprof, tmp_path / "json", "--", program)
    gaps = {entry["path"]: entry["gap"] for entry in figures["allocators"] if entry["gap"]}
    assert list(gaps) == [str(program)] and "jemalloc is linked into it" in gaps[str(program)]
    assert figures["complete"] is False
    assert b"not complete" in result.stderr


@pytest.mark.slow
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


HANDLER = r"""
#include <new>
#include <stdio.h>

static int left;

static void handler()
{
	if (!left--)
		std::set_new_handler(nullptr);
}

static __attribute__((noinline)) void call_new()
{
	void *volatile p = nullptr;

	left = 3;
	std::set_new_handler(handler);
	try {
		p = ::operator new((size_t)1 << 60);
	} catch (const std::bad_alloc &) {
		puts("caught");
	}
	::operator delete(p);
}

int main()
{
	for (int i = 0; i < 4; i++)
		call_new();
	return 0;
}
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in LIBRARIES if name != "libmimalloc"])
def test_new_handler(run, allocprof, tmp_path, name):
    """It is asked three times for memory before the exception: the attempts in between are no requests."""
    (tmp_path / "handler.cpp").write_text(HANDLER)
    run(["g++", "-O1", "-fno-builtin", "-fno-optimize-sibling-calls", "-o", tmp_path / "handler",
         tmp_path / "handler.cpp", "-Wl,--no-as-needed", interfaces.library(name)], expect=0)
    result = record(run, allocprof, tmp_path / "data", tmp_path / "handler")
    assert result.stdout.split() == [b"caught"] * 4
    memory = Memory(tmp_path / "data")
    assert memory.of("call_new") == {"new": (4, 0, 0, 0)}


TWO = r"""
#include <stdlib.h>

extern "C" void *mi_malloc(size_t);
extern "C" void mi_free(void *);

static __attribute__((noinline)) void call_first() { free(malloc(100)); }
static __attribute__((noinline)) void call_new() { ::operator delete(::operator new(200)); }
static __attribute__((noinline)) void call_second() { mi_free(mi_malloc(300)); }

int main()
{
	for (int i = 0; i < 5; i++) {
		call_first();
		call_new();
		call_second();
	}
	return 0;
}
"""


def test_two_allocators(run, allocprof, tmp_path):
    """malloc and new are the first one's; of the second its own names are called."""
    (tmp_path / "two.cpp").write_text(TWO)
    run(["g++", "-O1", "-fno-builtin", "-fno-optimize-sibling-calls", "-o", tmp_path / "two", tmp_path / "two.cpp",
         "-Wl,--no-as-needed", interfaces.library("libjemalloc"), interfaces.library("libmimalloc")], expect=0)
    record(run, allocprof, tmp_path / "data", tmp_path / "two")
    memory = Memory(tmp_path / "data")
    assert memory.of("call_first") == {"malloc": (5, 500, 5, 0)}
    assert memory.of("call_new") == {"new": (5, 1000, 5, 0)}
    assert memory.of("call_second") == {"malloc": (5, 1500, 5, 0)}
    assert memory.ledger["frees_unknown"] == 0


LAST_CALLS = r"""
#include <new>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The C library would call free() for a thread that returns. */
static void *call(void *unused)
{
	::operator delete(nullptr, 64, std::align_val_t(64));
	syscall(SYS_exit, 0);
	return unused;
}

int main()
{
	pthread_t thread;

	for (int i = 0; i < 40; i++) {
		pthread_create(&thread, nullptr, call, nullptr);
		pthread_join(thread, nullptr);
	}
	return 0;
}
"""


def test_last_calls_of_threads(run, allocprof, tmp_path):
    """Each thread ends behind a function that might have ended in a jump to another and did not: what was kept for
    that goes with it."""
    (tmp_path / "last.cpp").write_text(LAST_CALLS)
    run(["g++", "-std=c++17", "-O1", "-fno-builtin", "-pthread", "-o", tmp_path / "last", tmp_path / "last.cpp",
         "-Wl,--no-as-needed", interfaces.library("libjemalloc")], expect=0)
    _, _, figures = families(run, allocprof, tmp_path / "json", "--inject", "tail_calls=4", "--", tmp_path / "last")
    assert figures["relabelled"] == 0
    assert figures["functions"]["delete"]["calls"] >= 40


LAST_CALLS_BEFORE_EXEC = r"""
#include <new>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char **arguments;

static void *call(void *unused)
{
	char left[16];
	char *next[] = { arguments[0], left, nullptr };

	snprintf(left, sizeof(left), "%d", atoi(arguments[1]) - 1);
	::operator delete(nullptr, 64, std::align_val_t(64));
	execv(arguments[0], next);
	_exit(1);
}

int main(int argc, char **argv)
{
	pthread_t thread;

	arguments = argv;
	if (argc < 2 || !atoi(argv[1]))
		return 0;
	pthread_create(&thread, nullptr, call, nullptr);
	pthread_join(thread, nullptr);
	return 1;
}
"""


def test_last_calls_before_exec(run, allocprof, tmp_path):
    """The same of a thread that executes a program, and has the id of the process's first thread from then on."""
    (tmp_path / "last.cpp").write_text(LAST_CALLS_BEFORE_EXEC)
    run(["g++", "-std=c++17", "-O1", "-fno-builtin", "-pthread", "-o", tmp_path / "last", tmp_path / "last.cpp",
         "-Wl,--no-as-needed", interfaces.library("libjemalloc")], expect=0)
    _, _, figures = families(run, allocprof, tmp_path / "json", "--inject", "tail_calls=4", "--", tmp_path / "last",
                             "10")
    assert figures["relabelled"] == 0
    assert figures["processes"] == 1
    assert figures["functions"]["delete"]["calls"] >= 10


MADE_UP = r"""
#define _GNU_SOURCE
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

static char *at, *end;

static __attribute__((noinline)) void *take(size_t size)
{
	char *block;

	size = (size + 31) & ~(size_t)15;
	if (!at || at + size > end) {
		at = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		end = at + (1 << 20);
	}
	block = at;
	at += size;
	return block;
}

void *malloc(size_t size) { return take(size); }
void free(void *p) { (void)p; }
void *calloc(size_t n, size_t size) { return take(n * size); }
void *foo_mallocx2(size_t size) { return take(size); }
/* Nobody calls it. */
void *foo_alloc_never(size_t size) { return take(size); }
/* Is counted through malloc. */
char *foo_newdup(const char *text) { char *p = malloc(strlen(text) + 1); return strcpy(p, text); }
/* Is about memory, but hands none out. */
size_t foo_alloc_stats(void) { return end - at; }
void *foo_realloc(void *p, size_t size) { void *q = take(size); (void)p; return q; }
void *realloc(void *p, size_t size) { return foo_realloc(p, size); }
"""

MADE_UP_USER = r"""
#include <stdlib.h>
void *foo_mallocx2(size_t size);
char *foo_newdup(const char *text);
size_t foo_alloc_stats(void);

int main(void)
{
	for (int i = 0; i < 7; i++)
		foo_mallocx2(100);
	for (int i = 0; i < 3; i++)
		free(foo_newdup("x"));
	/* foo_realloc() is called by the allocator alone. */
	free(realloc(malloc(5), foo_alloc_stats() ? 6 : 7));
	return 0;
}
"""


@pytest.fixture
def made_up(run, tmp_path):
    for name, text in (("alloc", MADE_UP), ("user", MADE_UP_USER)):
        (tmp_path / f"{name}.c").write_text(text)
    library = tmp_path / "liballoc.so"
    flags = ["-O1", "-fno-builtin", "-fno-optimize-sibling-calls"]
    run(["gcc", *flags, "-shared", "-fPIC", "-o", library, tmp_path / "alloc.c"], expect=0)
    run(["gcc", *flags, "-o", tmp_path / "user", tmp_path / "user.c", library], expect=0)
    return tmp_path / "user"


def test_unknown_function(run, allocprof, made_up, tmp_path):
    """What an allocator exports and nobody knows is named when it is called, and nothing else."""
    path = tmp_path / "json"
    result, sums, figures = families(run, allocprof, path, "--", made_up)
    unknown = {entry["path"]: entry["unknown"] for entry in figures["allocators"] if "unknown" in entry}
    assert unknown == {str(tmp_path / "liballoc.so"): {"foo_mallocx2": 7}}
    assert figures["complete"] is False
    assert sums["malloc", "calls"] == 4 and sums["realloc", "calls"] == 1
    assert b"exports foo_mallocx2, which is not known: 7 calls of it are not counted" in result.stderr
    text = run([allocprof, "stat", "--", made_up], expect=0).stderr
    assert b"exports foo_mallocx2, which is not known" in b" ".join(text.split())

    run([allocprof, "record", "-q", "-o", tmp_path / "data", "--", made_up], expect=0)
    (calls, path, name), = Recording(tmp_path / "data").gaps["function_unknown"]
    assert calls and (path, name) == (str(tmp_path / "liballoc.so"), "foo_mallocx2")
    strict = run([allocprof, "folded", "--strict", "-i", tmp_path / "data"], expect=1)
    assert b"foo_mallocx2" in strict.stderr


COPIES = r"""
char *strdup(const char *text) { return strcpy(take(strlen(text) + 1), text); }
char *foo_copied(const char *text) { return strdup(text); }
"""

COPIES_USER = r"""
char *strdup(const char *text), *foo_copied(const char *text);
int main(void)
{
	for (int i = 0; i < 5; i++)
		strdup("x");
	for (int i = 0; i < 11; i++)
		foo_copied("x");
	return 0;
}
"""


def test_copies_of_strings(run, allocprof, tmp_path):
    """A strdup() that takes no memory from the file's malloc is called by other code of this file, as by Firefox's moz_xstrdup:
    these calls are missing as well."""
    for name, text in (("alloc", MADE_UP + COPIES), ("user", COPIES_USER)):
        (tmp_path / f"{name}.c").write_text(text)
    flags = ["-O1", "-fno-builtin", "-fno-optimize-sibling-calls"]
    run(["gcc", *flags, "-shared", "-fPIC", "-o", tmp_path / "liballoc.so", tmp_path / "alloc.c"], expect=0)
    run(["gcc", *flags, "-o", tmp_path / "user", tmp_path / "user.c", tmp_path / "liballoc.so"], expect=0)
    _, _, figures = families(run, allocprof, tmp_path / "json", "--", tmp_path / "user")
    assert [entry["unknown"] for entry in figures["allocators"] if "unknown" in entry] == [{"strdup": 16}]


@pytest.mark.parametrize("pattern", ["foo_mallocx2", "foo_*"])
def test_ignored_function(run, allocprof, made_up, tmp_path, pattern):
    result, _, figures = families(run, allocprof, tmp_path / "json", "--ignore", pattern, "--", made_up)
    assert figures["complete"] is True and result.stderr == b""
    assert not any("unknown" in entry for entry in figures["allocators"])


def test_defined_function(run, allocprof, made_up, tmp_path):
    """Defined by --probe it is exact."""
    result, sums, figures = families(run, allocprof, tmp_path / "json", "--probe", "alloc=foo_mallocx2(size=arg0)",
                                     "--", made_up)
    assert figures["complete"] is True and result.stderr == b""
    assert not any("unknown" in entry for entry in figures["allocators"])
    assert figures["functions"]["probe.alloc"]["calls"] == 7
    assert figures["functions"]["probe.alloc"]["bytes"] == 700
    assert sums["malloc", "calls"] == 4 and sums["realloc", "calls"] == 1


STATIC = {
    "jemalloc": ["-Wl,--whole-archive", "/usr/lib/x86_64-linux-gnu/libjemalloc.a", "-Wl,--no-whole-archive", "-lm", "-lpthread", "-ldl"],
    "tcmalloc": ["-Wl,--whole-archive", "/usr/lib/x86_64-linux-gnu/libtcmalloc_minimal.a", "-Wl,--no-whole-archive", "-lpthread"],
}


@pytest.mark.slow
@pytest.mark.parametrize("how", ["dynamic", "static"])
@pytest.mark.parametrize("name", STATIC)
def test_linked_in(run, allocprof, programs, tmp_path, name, how):
    """The allocator is part of the program: alone, and with the C library, too."""
    flags = ["-static", "-DALL_HERE"] if how == "static" else []
    program = programs(f"{name}-{how}", *flags, *STATIC[name])
    result = record(run, allocprof, tmp_path / "data", program, "c")
    check_recording(tmp_path / "data", called(result))
