# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of interfaces.py called in allocators that are there to find errors, and in another C library: their
functions call and jump to each other in other ways."""

import glob
import re
import shutil
import sqlite3

import pytest

import interfaces
from support import unavailable
from test_interfaces import check_recording, families

# Of those that replace malloc, functions that they have at the least.
LIBRARIES = {"libtcmalloc_debug": 40, "libtcmalloc_minimal_debug": 40, "libtcmalloc_and_profiler": 50, "libduma": 12,
             "libefence": 7, "libdmallocth": 8}
# gperftools' debugging variant takes the size for wrong where it is given with an alignment.
NOT_CALLED = {"libtcmalloc_debug": "psa", "libtcmalloc_minimal_debug": "psa"}
MUSL = {"dynamic": [], "static": ["-static"], "static_stripped_of_debug": ["-static", "-g", "-Wl,-S"]}


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return tmp_path_factory.mktemp("others")


def library(name):
    path = interfaces.library(name)
    if not path:
        unavailable(f"{name} is not installed: scripts/setup --test")
    return path


def entries_of(result, table, least):
    names = result.stdout.decode().split()
    entries = [entry for entry in table if entry.name in names]
    assert len(entries) >= least, result
    return entries


def check_exact(run, allocprof, path, program, table, least, env=None):
    """All of a recording with live, and that stat counts as many calls."""
    result = run([allocprof, "record", "--live", "-o", path, "--", program, "c"], env=env, expect=0)
    assert b"not complete" not in result.stderr
    memory = check_recording(path, entries_of(result, table, least))
    _, sums, figures = families(run, allocprof, path.with_suffix(".json"), "--", program, "c", env=env)
    assert figures["complete"] is True
    frees = ("free", "delete", "free_sized", "dallocx", "sdallocx")
    counted = sum(n for (function, what), n in sums.items() if what == "calls" and function not in frees)
    assert counted == sum(memory.calls.values())


@pytest.mark.parametrize("name", LIBRARIES)
def test_debugging_allocators(run, allocprof, directory, tmp_path, monkeypatch, name):
    kept = [entry for entry in interfaces.ENTRIES if entry.arguments != NOT_CALLED.get(name) or not entry.frees]
    monkeypatch.setattr(interfaces, "ENTRIES", kept)
    program = interfaces.build(directory, name, library(name))
    check_exact(run, allocprof, tmp_path / "data", program, kept, LIBRARIES[name])


@pytest.mark.parametrize("how", MUSL)
def test_musl(run, allocprof, directory, tmp_path, how):
    """valloc is a jump to memalign, and that one to aligned_alloc: one request, by the first of them."""
    compiler = shutil.which("musl-gcc", path="/usr/bin")
    if not compiler:
        unavailable("musl-tools is not installed: scripts/setup --test")
    program = interfaces.build_c(directory, f"musl_{how}", compiler, *MUSL[how])
    check_exact(run, allocprof, tmp_path / "data", program, interfaces.C_ENTRIES, 9)


MUSL_STACKS = r"""
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>

__attribute__((noinline)) static void *work(void *argument)
{
	for (int i = 0; i < 100; i++)
		free(malloc(300));
	return argument;
}
static int c11(void *argument) { return !work(argument); }
__attribute__((noinline)) static int compare(const void *a, const void *b)
{
	free(malloc(7));
	return *(const char *)a - *(const char *)b;
}
static int leave(void) { return !work(0); }
/* As the C library's own function that ends with what main returned, but main called it. */
__attribute__((noinline)) void ends(int (*function)(void)) { exit(function()); }
int main(void)
{
	char text[] = "hello";
	pthread_t posix;
	thrd_t thread;

	pthread_create(&posix, 0, work, 0);
	pthread_join(posix, 0);
	thrd_create(&thread, c11, &thread);
	thrd_join(thread, 0);
	qsort(text, 5, 1, compare);
	free(strdup(text));
	ends(leave);
}
"""
# By the function that a stack is of: whether it is complete, and its frames. "…" are functions that have no names in the
# library, and in the program those of qsort, which call each other.
MUSL_ENDS = {
    "dynamic": {"work": {("complete", "…;work"), ("complete", "…;c11;work")},
                "compare": {("bad_frame", "…;compare")},
                "leave": {("complete", "…;main;ends;leave;work")},
                "strdup": {("complete", "…;main;strdup")}},
    "static": {"work": {("complete", "__clone;start;work"), ("complete", "__clone;start_c11;c11;work")},
               "compare": {("complete", "_start;libc_start_main_stage2;main;qsort;qsort_r;…;compare")},
               "leave": {("complete", "_start;libc_start_main_stage2;main;ends;leave;work")},
               "strdup": {("complete", "_start;libc_start_main_stage2;main;strdup")}},
}
# One without a table or a name is not taken for the outermost.
MUSL_ENDS["unnamed"] = {**MUSL_ENDS["static"], "leave": {("bad_frame", "…;leave;work")}}


@pytest.mark.engines("uprobe", "preload")
@pytest.mark.parametrize("how", MUSL_ENDS)
@pytest.mark.fast("dynamic", "unnamed", "preload-dynamic")
def test_musl_stacks(run, allocprof, tmp_path, how):
    """musl has no unwind tables: its functions are followed by their instructions, and what it begins main and threads with is
    outermost, but no function of the program's that does the same."""
    compiler = shutil.which("musl-gcc", path="/usr/bin")
    if not compiler:
        unavailable("musl-tools is not installed: scripts/setup --test")
    (tmp_path / "m.c").write_text(MUSL_STACKS)
    options = {"dynamic": [], "static": ["-static"], "unnamed": ["-static", "-fno-asynchronous-unwind-tables"]}[how]
    run([compiler, "-O1", "-fno-builtin", "-fno-optimize-sibling-calls", *options, "-o", tmp_path / "m", tmp_path / "m.c"],
        expect=0)
    if how == "unnamed":
        run(["strip", "--strip-symbol=ends", tmp_path / "m"], expect=0)
    run([allocprof, "record", "-o", tmp_path / "data", "--", tmp_path / "m"], expect=1)
    stacks = {}
    for end, frames in sqlite3.connect(tmp_path / "data").execute("SELECT DISTINCT end, frames FROM calls"):
        names = frames.split(";")
        frames = re.sub(r"(^|;)(\[[^]]*\]|trinkle|sift)(;(\[[^]]*\]|trinkle|sift))*", r"\1…", frames)
        last = next((name for name in ("compare", "leave", "strdup", "work") if name in names), frames)
        stacks.setdefault(last, set()).add((end, frames.removesuffix(";malloc")))
    assert stacks == MUSL_ENDS[how]


def test_scudo(run, allocprof, directory, tmp_path):
    """LLVM's, whose library is in a directory of its own."""
    found = sorted(glob.glob("/usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.scudo_standalone-x86_64.so"))
    if not found:
        unavailable("libclang-rt-dev is not installed: scripts/setup --test")
    program = interfaces.build(directory, "scudo", found[0], f"-Wl,-rpath,{found[0].rpartition('/')[0]}")
    # Else its sampling of a few random blocks loads a library, which allocates.
    check_exact(run, allocprof, tmp_path / "data", program, interfaces.ENTRIES, 20,
                env={"SCUDO_OPTIONS": "GWP_ASAN_Enabled=false"})


def test_malloc_debug(run, allocprof, directory, tmp_path, monkeypatch):
    """glibc's checks, which come with a library of their own since 2.34. It has no cfree, and glibc's does not know its blocks; the process's first call of malloc, which is main's,
    counts twice, as it is executed anew when all is prepared."""
    kept = [entry for entry in interfaces.C_ENTRIES if entry.name != "cfree"]
    monkeypatch.setattr(interfaces, "C_ENTRIES", kept)
    program = interfaces.build_c(directory, "malloc_debug", "gcc")
    environment = {"LD_PRELOAD": "/usr/lib/x86_64-linux-gnu/libc_malloc_debug.so.0",
                   "GLIBC_TUNABLES": "glibc.malloc.check=3"}
    result = run([allocprof, "record", "--live", "-o", tmp_path / "data", "--", program], env=environment, expect=0)
    assert b"not complete" not in result.stderr
    check_recording(tmp_path / "data", entries_of(result, kept, 8))


COPIES = r"""
#include <stdlib.h>
#include <string.h>

int main(void)
{
	for (int i = 0; i < 5; i++) {
		free(strdup("seven.."));
		free(strndup("seven..", 3));
	}
	return 0;
}
"""


@pytest.mark.fast("libduma", "libdmallocth")
@pytest.mark.parametrize("name", ["libjemalloc", "libtcmalloc_minimal", "libmimalloc", *LIBRARIES])
def test_strings(run, allocprof, tmp_path, name):
    """What the allocator's own strdup asks for counts, or is named: DUMA's gets memory by no function that is
    known."""
    (tmp_path / "user.c").write_text(COPIES)
    run(["gcc", "-O1", "-fno-builtin", "-o", tmp_path / "user", tmp_path / "user.c", "-Wl,--no-as-needed",
         library(name)], expect=0)
    (tmp_path / "none.c").write_text("int main(void) { return 0; }")
    run(["gcc", "-o", tmp_path / "none", tmp_path / "none.c", "-Wl,--no-as-needed", library(name)], expect=0)
    _, before, _ = families(run, allocprof, tmp_path / "json", "--", tmp_path / "none")
    result, after, figures = families(run, allocprof, tmp_path / "json", "--", tmp_path / "user")
    own = name == "libduma"
    after.subtract(before)
    assert {at: n for at, n in after.items() if n} == {
        ("malloc", "calls"): 5 if own else 10, ("malloc", "bytes"): 20 if own else 60, ("delete", "calls"): 10}
    assert figures["complete"] is not own
    assert (b"exports strdup, which is not known: 5 calls" in result.stderr) == own


REALLOCARRAY = r"""
#define _GNU_SOURCE
#include <stdlib.h>

int main(void)
{
	for (int i = 0; i < 10; i++) {
		void *p = reallocarray(malloc(5), 10, 12);

		if (i % 2)
			free(p);
	}
	return 0;
}
"""


@pytest.mark.parametrize("name", ["libjemalloc", "libtcmalloc_minimal", "libefence"])
def test_reallocarray_of_the_c_library(run, allocprof, tmp_path, name):
    """These have none: the C library's ends in a jump to their realloc, and is one request."""
    (tmp_path / "user.c").write_text(REALLOCARRAY)
    run(["gcc", "-O1", "-fno-builtin", "-o", tmp_path / "user", tmp_path / "user.c", "-Wl,--no-as-needed",
         library(name)], expect=0)
    _, sums, figures = families(run, allocprof, tmp_path / "json", "--live", "--", tmp_path / "user")
    assert (sums["reallocarray", "calls"], sums["realloc", "calls"]) == (10, 0)
    assert (figures["reallocations"], figures["unfinished"]) == (10, 0)
    assert figures["complete"] is True
