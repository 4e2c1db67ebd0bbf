# SPDX-License-Identifier: GPL-3.0-or-later
"""Every allocator in every way that a program can come by it, in every mode that counts: what the program of
interfaces.py knows of itself is what is counted. Where a cell of the table is left out, the allocator itself ends the
program that asks for too much, or that frees what another one gave it."""

import collections
import dataclasses
import glob
import json
import os
import shutil
import sqlite3

import pytest

import interfaces
from support import Obedient, read_report, shell_status, unavailable, wait_until_counting
from test_interfaces import Memory, expected, kind

MODES = {"stat": ["stat"], "stat-live": ["stat", "--live"], "record": ["record"], "record-live": ["record", "--live"]}
# One that keeps neither stacks nor blocks, and one that keeps both.
TWO_MODES = ["stat", "record-live"]
LIB = "/usr/lib/x86_64-linux-gnu"


@dataclasses.dataclass
class Variant:
    """Parts: c each function, e expressions of C++, f requests that fail with null, t those that throw."""
    library: str = None
    parts: str = "ceft"
    least: int = 7  # functions of the table that it has
    left_out: tuple = ()  # arguments of freeing functions that are not called
    has_operators: bool = True
    environment: dict = dataclasses.field(default_factory=dict)
    static: tuple = ()

    def path(self):
        if not self.library:
            return None
        found = glob.glob(self.library) if "/" in self.library else [interfaces.library(self.library)]
        if not found or not found[0]:
            unavailable(f"{self.library} is not installed: scripts/setup --test")
        return str(sorted(found)[0])


# They are only named in weak references.
NAMED = tuple(f"-Wl,-u,{function}" for function in interfaces.C_LIBRARY)


def whole(name):
    return ("-Wl,--whole-archive", f"{LIB}/{name}", "-Wl,--no-whole-archive", "-lm", "-lpthread", "-ldl")


VARIANTS = {
    "glibc": Variant(parts="cef", has_operators=False, static=(*NAMED, "-ldl")),
    "malloc_debug": Variant(f"{LIB}/libc_malloc_debug.so.0", "cef", has_operators=False,
                            environment={"GLIBC_TUNABLES": "glibc.malloc.check=3"}),
    "jemalloc": Variant("libjemalloc", least=30, static=whole("libjemalloc.a")),
    "tcmalloc_minimal": Variant("libtcmalloc_minimal", least=50, static=whole("libtcmalloc_minimal.a")),
    "tcmalloc": Variant("libtcmalloc", least=50),
    "tcmalloc_and_profiler": Variant("libtcmalloc_and_profiler", least=50),
    # The size is taken for wrong where it is given with an alignment.
    "tcmalloc_minimal_debug": Variant("libtcmalloc_minimal_debug", least=40, left_out=("psa",)),
    "tcmalloc_debug": Variant("libtcmalloc_debug", least=40, left_out=("psa",)),
    "mimalloc": Variant("libmimalloc", "cef", least=80),
    "duma": Variant("libduma", "c", least=12),
    "efence": Variant("libefence", "c"),
    "dmalloc": Variant("libdmallocth", "cef", least=8, has_operators=False),
    # Else its sampling of a few random blocks loads a library, which allocates.
    "scudo": Variant("/usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.scudo_standalone-x86_64.so", least=20,
                     environment={"SCUDO_OPTIONS": "GWP_ASAN_Enabled=false"}),
}
LINKED = [name for name, variant in VARIANTS.items() if name not in ("glibc", "malloc_debug")]
PRELOADED = [name for name in VARIANTS if name != "glibc"]
STATIC = [name for name, variant in VARIANTS.items() if variant.static]


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """programs(VARIANT, WAY) is the program that comes by it so."""
    directory = tmp_path_factory.mktemp("matrix")
    made = {}

    def make(variant, way):
        table = [entry for entry in interfaces.ENTRIES
                 if not (entry.frees and entry.arguments in variant.left_out) and
                 (variant.has_operators or not entry.name.startswith("_Z"))]
        path = variant.path()
        flags = {"linked": [path, f"-Wl,-rpath,{path and path.rpartition('/')[0]}"], "preloaded": ["-ldl"],
                 "static": ["-static", "-DALL_HERE", *variant.static]}[way]
        key = (way, *flags, len(table))
        if key not in made:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(interfaces, "ENTRIES", table)
                made[key] = interfaces.build(directory, f"program{len(made)}", *flags)
        return made[key]

    return make


class Run:
    """What a run of the program printed and what was counted of it."""

    def __init__(self, mode, path, stdout, stderr):
        self.called = collections.Counter(stdout.decode().split())
        self.stderr = stderr
        self.memory = Memory(path) if mode.startswith("record") and mode.endswith("live") else None
        self.figures = json.loads(path.read_text()) if mode.startswith("stat") else None
        self.calls = collections.defaultdict(dict)
        if mode.startswith("record"):
            connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
            # Sums of requests that are too large do not fit into SQL's numbers.
            for caller, function, calls, size in connection.execute("SELECT caller, function, calls, bytes FROM calls"):
                before = self.calls[caller].get(kind(function), (0, 0))
                self.calls[caller][kind(function)] = (before[0] + calls, before[1] + size)
            self.ledger = dict(connection.execute("SELECT name, value FROM ledger"))
            connection.close()

    def sums(self):
        """Of stat, calls and bytes by function."""
        sums = collections.Counter()
        for function, counts in self.figures["functions"].items():
            sums[kind(function), "calls"] += counts["calls"]
            sums[kind(function), "bytes"] += counts["bytes"]
        return sums


    def count_requests(self):
        return self.figures["total_allocations"] if self.figures else self.ledger["attributed"]

    def count_frees(self):
        return self.figures["deallocations"] if self.figures else \
            self.ledger["frees"] - self.ledger["reallocations"] + self.ledger["frees_null"] + self.ledger["frees_unknown"]


class Measuring:
    def __init__(self, runner, run, allocprof, directory, mode):
        self.runner, self.run, self.allocprof, self.directory, self.mode = runner, run, allocprof, directory, mode

    def options(self, path):
        json_option = ["--json"] if self.mode.startswith("stat") else []
        return [self.allocprof, *MODES[self.mode], *json_option, "-o", path]

    def launch(self, program, parts, environment):
        path = self.directory / f"launched{len(list(self.directory.iterdir()))}"
        result = self.run([*self.options(path), "--", program, parts], env=environment, expect=0)
        return Run(self.mode, path, result.stdout, result.stderr)

    def attach(self, program, parts, environment):
        path = self.directory / f"attached{len(list(self.directory.iterdir()))}"
        obedient = Obedient(self.runner, [program, "w" + parts], env=environment)
        recorder = self.runner.start([*self.options(path), "-p", str(obedient.pid)])
        wait_until_counting(self.allocprof, recorder)
        obedient.process.stdin.write(b"\n")
        obedient.process.stdin.flush()
        rest, _ = obedient.process.communicate()
        assert shell_status(recorder.wait()) == 0
        return Run(self.mode, path, obedient.pending + rest, b"")


def operator_of(variant, expression):
    """What an expression of C++ is counted as."""
    if variant.has_operators:
        return "new"
    return "aligned_alloc" if expression.startswith("over") else "malloc"


def check_expressions(variant, run, wrong):
    wanted = collections.defaultdict(collections.Counter)
    for expression, size in interfaces.EXPRESSION_SIZES.items():
        if size:
            # Else the C++ library's operator is what calls the allocator.
            caller = f"call_expression_{expression}" if variant.has_operators else "operator new"
            wanted[caller][operator_of(variant, expression)] += 5 * size
    for caller, sizes in wanted.items():
        n = 5 if variant.has_operators else 0
        found = {}
        for name, functions in run.calls.items():
            if name.startswith(caller) and (name == caller or not variant.has_operators):
                for function, (calls, size) in functions.items():
                    found[function] = found.get(function, 0) + size
        if found != dict(sizes):
            wrong[caller] = f"expected {dict(sizes)}, found {found}"
        elif n and dict(run.calls[caller]) != {"new": (n, sizes["new"])}:
            wrong[caller] = f"expected {n} calls, found {run.calls[caller]}"
        elif n and run.memory and run.memory.of(caller) != {"new": (n, sizes["new"], n, 0)}:
            wrong[caller] = f"{n} blocks that are freed, not {run.memory.of(caller)}"
    if run.calls["call_expression_placement"]:
        wrong["placement"] = run.calls["call_expression_placement"]


def check_callers(variant, run):
    """By the function that called: calls and bytes, and with live what became of the blocks."""
    wrong = {}
    entries = [entry for entry in interfaces.ENTRIES if entry.name in run.called]
    assert len(entries) >= variant.least, run.called
    for entry in entries:
        wanted = {function: counts[:2] for function, counts in expected(entry).items()}
        found = dict(run.calls[f"call_{entry.name}"])
        if found != wanted:
            wrong[entry.name] = f"expected {wanted}, found {found}"
        elif run.memory and run.memory.of(f"call_{entry.name}") != expected(entry):
            wrong[entry.name] = f"expected {expected(entry)}, found {run.memory.of(f'call_{entry.name}')}"
    if "e" in variant.parts:
        check_expressions(variant, run, wrong)
    failing = [entry for entry in entries if interfaces.fails(entry) and
               ("t" if entry.throws else "f") in variant.parts]
    assert failing or "f" not in variant.parts
    for entry in failing:
        caller, function = f"fail_{entry.name}", kind(entry.family)
        calls, _ = run.calls[caller].get(function, (0, 0))
        if calls != 2 or len(run.calls[caller]) != 1:
            wrong[caller] = f"expected 2 calls, found {run.calls[caller]}"
        elif run.memory and (run.memory.kept[caller, function], run.memory.freed[caller, function]) != (0, 0):
            wrong[caller] = "a block came of it"
        elif run.memory and not entry.throws and run.memory.failed[caller, function] != 2:
            wrong[caller] = f"{run.memory.failed[caller, function]} failed"
    assert not wrong
    if run.memory:
        lacking = {name: n for name, n in run.memory.ledger.items() if n and name.startswith(("lost", "untracked"))}
        assert not lacking and run.memory.ledger["frees_unknown"] == 0


def check_sums(variant, before, run):
    """Of the whole process, above what it calls without being told to."""
    wanted = collections.Counter()

    def add(function, n, size):
        wanted[function, "calls"] += n
        wanted[function, "bytes"] += n * size

    entries = [entry for entry in interfaces.ENTRIES if entry.name in run.called]
    assert len(entries) >= variant.least, run.called
    for entry in entries:
        n = entry.calls
        if entry.frees or entry.family == "xallocx" or entry.reallocates:
            first = "new" if variant.has_operators and ("new" in entry.partner or "array" in entry.partner) else "malloc"
            add(first, n, 24 if entry.reallocates and entry.family != "xallocx" else entry.size)
        if entry.frees:
            wanted[kind(entry.family), "calls"] += n
        else:
            add(kind(entry.family), n, entry.size)
            wanted["delete", "calls"] += n if entry.family == "xallocx" else n // 2
    for expression, size in interfaces.EXPRESSION_SIZES.items() if "e" in variant.parts else ():
        if size:
            add(operator_of(variant, expression), 5, size)
            wanted["delete", "calls"] += 5
    found = run.sums()
    found.subtract(before)
    assert {at: n for at, n in found.items() if n} == {at: n for at, n in wanted.items() if n}
    assert run.figures["complete"] is True and run.figures["lost"]["total"] == 0


def check(measuring, variant, program, start, environment):
    measure = getattr(measuring, start)
    if measuring.mode.startswith("stat"):
        parts = "".join(part for part in variant.parts if part in "ce")
        check_sums(variant, measure(program, "0", environment).sums(), measure(program, parts, environment))
        return
    run = measure(program, variant.parts, environment)
    assert b"not complete" not in run.stderr
    check_callers(variant, run)


@pytest.fixture
def measuring(runner, run, allocprof, tmp_path):
    return lambda mode: Measuring(runner, run, allocprof, tmp_path, mode)


def preload_of(variant):
    return {"LD_PRELOAD": variant.path(), **variant.environment} if variant.library else {}


@pytest.mark.covering(1)
@pytest.mark.fast("stat-jemalloc", "record-live-scudo")
@pytest.mark.parametrize("name", LINKED)
@pytest.mark.parametrize("mode", MODES)
def test_linked(measuring, programs, mode, name):
    variant = VARIANTS[name]
    check(measuring(mode), variant, programs(variant, "linked"), "launch", variant.environment)


@pytest.mark.covering(1)
@pytest.mark.fast("record-live-tcmalloc_minimal")
@pytest.mark.parametrize("name", PRELOADED)
@pytest.mark.parametrize("mode", TWO_MODES)
def test_preloaded(measuring, programs, mode, name):
    variant = VARIANTS[name]
    check(measuring(mode), variant, programs(variant, "preloaded"), "launch", preload_of(variant))


@pytest.mark.covering(1)
@pytest.mark.fast("record-live-mimalloc")
@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("mode", TWO_MODES)
def test_attached(measuring, programs, mode, name):
    variant = VARIANTS[name]
    check(measuring(mode), variant, programs(variant, "preloaded"), "attach", preload_of(variant))


@pytest.mark.covering(1)
@pytest.mark.fast("record-live-jemalloc")
@pytest.mark.parametrize("name", STATIC)
@pytest.mark.parametrize("mode", TWO_MODES)
def test_static(measuring, programs, mode, name):
    """Launched, where the allocator and all else are one file."""
    variant = VARIANTS[name]
    check(measuring(mode), variant, programs(variant, "static"), "launch", {})


@pytest.mark.covering(1)
@pytest.mark.slow
@pytest.mark.parametrize("name", STATIC)
@pytest.mark.parametrize("mode", TWO_MODES)
def test_static_attached(measuring, programs, mode, name):
    variant = VARIANTS[name]
    check(measuring(mode), variant, programs(variant, "static"), "attach", {})


MUSL = {"dynamic": [], "static": ["-static"], "static_stripped_of_debug": ["-static", "-g", "-Wl,-S"]}


@pytest.mark.covering(2)
@pytest.mark.fast("launch-record-live-static")
@pytest.mark.parametrize("how", MUSL)
@pytest.mark.parametrize("mode", TWO_MODES)
@pytest.mark.parametrize("start", ["launch", "attach"])
def test_musl(measuring, tmp_path, monkeypatch, start, mode, how):
    compiler = shutil.which("musl-gcc", path="/usr/bin")
    if not compiler:
        unavailable("musl-tools is not installed: scripts/setup --test")
    variant = Variant(parts="c", least=9, has_operators=False)
    monkeypatch.setattr(interfaces, "ENTRIES", interfaces.C_ENTRIES)
    program = interfaces.build_c(tmp_path, "user", compiler, *MUSL[how])
    measure = getattr(measuring(mode), start)
    run = measure(program, "c", {})
    if mode.startswith("record"):
        check_callers(variant, run)
        return
    # Start-up makes no calls, and main two.
    check_sums(variant, collections.Counter({("malloc", "calls"): 1, ("malloc", "bytes"): 1, ("delete", "calls"): 1}),
               run)


# What the linker puts between functions of the allocator: of the C library, in the order in which they are needed, and of the
# program, in the order in which they are written.
BETWEEN = {
    "musl": (["musl-gcc", "-static"], r"""
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(void)
{
	char *text = NULL;

	for (int i = 0; i < 1000; i++) {
		free(strdup("text"));
		free(i % 2 && asprintf(&text, "%d", i) > 0 ? text : NULL);
	}
	free(realloc(calloc(1, 2), 3));
	return 0;
}
""", {"malloc": 1500, "calloc": 1, "realloc": 1}),
    "own": (["gcc"], r"""
#include <stddef.h>
#include <string.h>
static char room[1 << 20];
static size_t used;
#define FUNCTION __attribute__((noinline))
FUNCTION void *malloc(size_t size)
{
	used += 32;
	asm volatile("");
	return room + used % sizeof(room);
}
FUNCTION static void *get(void) { return memset(malloc(1), 0, 1); }
FUNCTION char *make(void) { return get(); }
FUNCTION static void *get_cleared(size_t size) { return memset(malloc(size), 0, size); }
FUNCTION void *calloc(size_t n, size_t size) { return get_cleared(n * size); }
FUNCTION void *realloc(void *old, size_t size) { return get_cleared(size); }
FUNCTION void free(void *block) { asm volatile(""); }
int main(void)
{
	for (int i = 0; i < 1500; i++)
		free(make());
	free(realloc(calloc(1, 2), 3));
	return 0;
}
""", {"malloc": 1500, "calloc": 1, "realloc": 1}),
}


@pytest.mark.parametrize("how", BETWEEN)
def test_functions_between_the_allocator_s(run, allocprof, tmp_path, how):
    """Their calls are calls; what calloc and realloc get by malloc is internal."""
    compiler, source, calls = BETWEEN[how]
    if not shutil.which(compiler[0], path="/usr/bin"):
        unavailable("musl-tools is not installed: scripts/setup --test")
    (tmp_path / "between.c").write_text(source)
    run([*compiler, "-O1", "-fno-builtin", "-w", "-o", tmp_path / "between", tmp_path / "between.c"], expect=0)
    run([allocprof, "stat", "--json", "-o", tmp_path / "json", "--", tmp_path / "between"], expect=0)
    report = read_report(tmp_path / "json")
    assert {name: report["functions"][name]["calls"] for name in calls} == calls
    assert report["complete"]


# A program's functions in front of glibc's, which they call by their other names; or the way there is a function of its own.
FORWARDS = r"""
#include <stddef.h>
void *__libc_malloc(size_t size), *__libc_calloc(size_t n, size_t size), *__libc_realloc(void *old, size_t size);
void __libc_free(void *block);
static unsigned long calls;
#ifdef OVER
__attribute__((noinline)) static void *over(size_t size)
{
	void *block = __libc_malloc(size);

	calls++;
	return block;
}
#else
#define over __libc_malloc
#endif
void *malloc(size_t size) { calls++; return over(size); }
void *calloc(size_t n, size_t size) { calls++; return __libc_calloc(n, size); }
void *realloc(void *old, size_t size) { calls++; return __libc_realloc(old, size); }
void free(void *block) { calls++; __libc_free(block); }
#ifndef SHARED
int main(void)
{
	for (int i = 0; i < 1000; i++)
		free(malloc(i));
	free(realloc(calloc(1, 2), 3));
	return !calls;
}
#endif
"""


@pytest.mark.parametrize("flags", [[], ["-DOVER"]], ids=["at_once", "over_a_function"])
@pytest.mark.parametrize("engine", ["uprobe", "preload"])
def test_functions_in_front_of_glibc_s(run, allocprof, tmp_path, engine, flags):
    """A call of them is one call, also where a library has them."""
    def built(name, *more):
        run(["gcc", "-O1", "-fno-builtin", *flags, *more, "-o", tmp_path / name, tmp_path / "forwards.c"], expect=0)
        return tmp_path / name

    def calls(*argv):
        run([allocprof, "stat", f"--engine={engine}", "--json", "-o", tmp_path / "json", "--", *argv], expect=0)
        report = read_report(tmp_path / "json")
        assert report["complete"]
        return {name: entry["calls"] for name, entry in report["functions"].items() if entry["calls"]}

    (tmp_path / "forwards.c").write_text(FORWARDS)
    assert calls(built("forwards")) == {"malloc": 1000, "calloc": 1, "realloc": 1, "free": 1001}
    library = built("libforwards.so", "-shared", "-fPIC", "-DSHARED")
    with_library, without = [calls("env", f"LD_PRELOAD={path}", "true") for path in (library, "")]
    # env has a variable more or less, which is a block, and the loader of a library may have some.
    assert abs(with_library["malloc"] - without["malloc"]) < 10


@pytest.mark.parametrize("engine", ["uprobe", "preload"])
def test_allocator_inside_a_library(run, allocprof, tmp_path, engine):
    """A library that has jemalloc for itself is named, since nothing of it can be probed."""
    static = f"{LIB}/libjemalloc_pic.a"
    if not os.path.exists(static):
        unavailable("libjemalloc-dev is not installed: scripts/setup --test")
    (tmp_path / "library.c").write_text("void *malloc(unsigned long); void *use(void) { return malloc(100); }")
    (tmp_path / "program.c").write_text("void *use(void); int main(void) { return !use(); }")
    run(["gcc", "-fno-builtin", "-shared", "-fPIC", "-o", tmp_path / "libown.so", tmp_path / "library.c", static,
         "-Wl,--exclude-libs,ALL", "-pthread", "-lm"], expect=0)
    run(["gcc", "-o", tmp_path / "program", tmp_path / "program.c", tmp_path / "libown.so"], expect=0)
    run([allocprof, "stat", f"--engine={engine}", "--json", "-o", tmp_path / "json", "--", tmp_path / "program"], expect=0)
    report = read_report(tmp_path / "json")
    assert report["complete"] is False
    assert "jemalloc is linked into" in json.dumps(report)


TBB = "libtbbmalloc_proxy"


@pytest.mark.covering(1)
@pytest.mark.fast("launch-record-live")
@pytest.mark.parametrize("mode", TWO_MODES)
@pytest.mark.parametrize("start", ["launch", "attach"])
def test_tbbmalloc(measuring, programs, mode, start):
    """Its malloc and new are in a library that only calls the one that has the allocator: they count there."""
    proxy = interfaces.library(TBB)
    if not proxy:
        unavailable("libtbbmalloc2 is not installed: scripts/setup --test")
    environment, program = {"LD_PRELOAD": str(proxy)}, programs(VARIANTS["jemalloc"], "preloaded")
    measure = getattr(measuring(mode), start)
    before, run = measure(program, "0", environment), measure(program, "c", environment)
    entries = [entry for entry in interfaces.ENTRIES if entry.name in run.called]
    assert len(entries) >= 15
    # An entry that frees is given a block, and one that reallocates, too.
    asked = sum(entry.calls * (1 + entry.reallocates) if not entry.frees else entry.calls for entry in entries)
    freed = sum(entry.calls if entry.frees else entry.calls // 2 for entry in entries)
    assert run.count_requests() - before.count_requests() == asked
    if mode != "record":
        assert run.count_frees() - before.count_frees() == freed


TWO = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern "C" void *ALLOCATE(size_t);
extern "C" void RELEASE(void *);

static __attribute__((noinline)) void call_first() { free(malloc(100)); }
static __attribute__((noinline)) void call_new() { ::operator delete(::operator new(200)); }
static __attribute__((noinline)) void call_second() { RELEASE(ALLOCATE(300)); }

int main(int argc, char **argv)
{
	static char out[4096];

	setvbuf(stdout, out, _IOFBF, sizeof(out));
	/* It is made ready by its first call. */
	RELEASE(ALLOCATE(1));
	if (argc > 1 && strchr(argv[1], 'w')) {
		puts("ready");
		fflush(stdout);
		if (getchar() != '\n')
			return 3;
	}
	for (int i = 0; i < 5 && argc > 1 && strchr(argv[1], 'c'); i++) {
		call_first();
		call_new();
		call_second();
	}
	return 0;
}
"""
# The first one's malloc is the program's; of the second its own names are called.
PAIRS = {
    "jemalloc-mimalloc": ("libjemalloc", "libmimalloc", "mi_malloc", "mi_free", "new"),
    "mimalloc-tcmalloc": ("libmimalloc", "libtcmalloc_minimal", "tc_malloc", "tc_free", "new"),
    "tcmalloc-mimalloc": ("libtcmalloc_minimal", "libmimalloc", "mi_malloc", "mi_free", "new"),
    "jemalloc-tbbmalloc": ("libjemalloc", "libtbbmalloc", "scalable_malloc", "scalable_free", "new"),
    "glibc-tbbmalloc": (None, "libtbbmalloc", "scalable_malloc", "scalable_free", "malloc"),
    "glibc-libgc": (None, "libgc", "GC_malloc_uncollectable", "GC_free", "malloc"),
    "glibc-libgc-atomic": (None, "libgc", "GC_malloc_atomic_uncollectable", "GC_free", "malloc"),
}


@pytest.mark.covering(1)
@pytest.mark.fast("launch-stat-tcmalloc-mimalloc")
@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("start, mode", [("launch", "stat"), ("launch", "record-live")])
def test_two(run, measuring, tmp_path, mode, start, pair):
    first, second, allocate, release, new = PAIRS[pair]
    libraries = [interfaces.library(name) for name in (first, second) if name]
    if not all(libraries):
        unavailable(f"{first} or {second} is not installed: scripts/setup --test")
    (tmp_path / "two.cpp").write_text(TWO.replace("ALLOCATE", allocate).replace("RELEASE", release))
    run(["g++", "-O1", "-fno-builtin", "-fno-optimize-sibling-calls", "-o", tmp_path / "two", tmp_path / "two.cpp",
         "-Wl,--no-as-needed", *libraries], expect=0)
    measure = getattr(measuring(mode), start)
    before, after = measure(tmp_path / "two", "0", {}), measure(tmp_path / "two", "c", {})
    if mode.startswith("stat"):
        sums = after.sums()
        sums.subtract(before.sums())
        wanted = collections.Counter({("malloc", "calls"): 10, ("malloc", "bytes"): 2000, ("delete", "calls"): 15})
        wanted.update({(new, "calls"): 5, (new, "bytes"): 1000})
        assert {at: n for at, n in sums.items() if n} == dict(wanted)
        return
    caller = "call_new" if new == "new" else "operator new"
    found = {name: functions for name, functions in after.calls.items() if name.startswith(("call_", caller))}
    assert {functions: counts for functions, counts in found["call_first"].items()} == {"malloc": (5, 500)}
    assert found["call_second"] == {"malloc": (5, 1500)}
    assert [counts for name, counts in found.items() if name.startswith(caller)] == [{new: (5, 1000)}]
    if after.memory:
        assert after.memory.of("call_first") == {"malloc": (5, 500, 5, 0)}
        assert after.memory.of("call_second") == {"malloc": (5, 1500, 5, 0)}
        assert after.memory.ledger["frees_unknown"] == 0
