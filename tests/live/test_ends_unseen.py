# SPDX-License-Identifier: GPL-3.0-or-later
"""Functions that end blocks without naming them, and a collector that does by itself: blocks count as live that are
not, and where blocks are followed that is said."""

import json

import pytest

import interfaces
from support import Recording, unavailable
from test_interfaces import Memory

HEAD = """
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
"""

HEAP = HEAD + """
void *mi_heap_new(void);
void *mi_heap_malloc(void *heap, size_t size);
void mi_heap_destroy(void *heap);
void mi_heap_delete(void *heap);

int main(int argc, char **argv)
{
	void *heap = mi_heap_new();

	for (int i = 0; i < 5; i++)
		mi_heap_malloc(heap, 100);
	(argc > 1 ? mi_heap_destroy : mi_heap_delete)(heap);
	return 0;
}
"""

ARENA = HEAD + """
#include <stdio.h>
int mallctl(const char *name, void *old, size_t *old_size, void *new, size_t new_size);
void *mallocx(size_t size, int flags);

int main(int argc, char **argv)
{
	static char name[64];
	unsigned int arena;
	size_t size = sizeof(arena);

	if (mallctl("arenas.create", &arena, &size, NULL, 0))
		return 1;
	/* In the arena, without a cache. */
	for (int i = 0; i < 5; i++)
		mallocx(100, (int)((arena + 1) << 20 | 1 << 8));
	snprintf(name, sizeof(name), "arena.%u.%s", arena, argc > 1 ? "destroy" : "decay");
	return mallctl(name, NULL, NULL, NULL, 0);
}
"""

PROGRAMS = {"libmimalloc": (HEAP, "mi_heap_destroy"), "libjemalloc": (ARENA, "mallctl")}

COLLECTED = HEAD + """
void GC_init(void);
void *GC_malloc(size_t size);
void *GC_malloc_atomic(size_t size);
void *GC_realloc(void *p, size_t size);
void *GC_memalign(size_t alignment, size_t size);
char *GC_strdup(const char *text);
void GC_free(void *p);
#define NOINLINE __attribute__((noinline))

static NOINLINE void call_malloc(void) { for (int i = 0; i < 5; i++) GC_free(GC_malloc(100)); }
static NOINLINE void call_atomic(void) { for (int i = 0; i < 6; i++) GC_free(GC_malloc_atomic(200)); }
static NOINLINE void call_realloc(void) { for (int i = 0; i < 7; i++) GC_free(GC_realloc(GC_malloc(10), 5000)); }
static NOINLINE void call_memalign(void) { for (int i = 0; i < 9; i++) GC_memalign(64, 300); }
static NOINLINE void call_strdup(void) { for (int i = 0; i < 8; i++) GC_strdup("seven.."); }

int main(void)
{
	GC_init();
	call_malloc();
	call_atomic();
	call_realloc();
	call_memalign();
	call_strdup();
	return 0;
}
"""


def build(run, directory, text, name):
    library = interfaces.library(name)
    if not library:
        unavailable(f"{name} is not installed: scripts/setup --test")
    (directory / "user.c").write_text(text)
    run(["gcc", "-O1", "-fno-builtin", "-fno-optimize-sibling-calls", "-o", directory / "user", directory / "user.c",
         "-Wl,--no-as-needed", library], expect=0)
    return directory / "user"


def stat(run, allocprof, path, *arguments):
    result = run([allocprof, "stat", "--json", "-o", path, *arguments], expect=0)
    figures = json.loads(path.read_text())
    unknown = {}
    for entry in figures["allocators"]:
        unknown.update(entry.get("unknown", {}))
    return figures, unknown, result.stderr


@pytest.mark.fast("libmimalloc")
@pytest.mark.parametrize("name", PROGRAMS)
def test_blocks_of_a_heap(run, allocprof, tmp_path, name):
    text, function = PROGRAMS[name]
    program = build(run, tmp_path, text, name)
    figures, unknown, told = stat(run, allocprof, tmp_path / "json", "--live", "--", program, "end")
    assert unknown == {function: 1} and figures["complete"] is False
    assert f"{function} was called 1 time and ended blocks".encode() in told

    run([allocprof, "record", "--live", "-q", "-o", tmp_path / "data", "--", program, "end"], expect=0)
    (calls, _, name), = Recording(tmp_path / "data").gaps["function_ends"]
    assert (calls, name) == (1, function)
    run([allocprof, "report", "--strict", tmp_path / "data"], expect=1)


@pytest.mark.fast("libjemalloc-not_ended")
@pytest.mark.parametrize("options, words", [([], ["end"]), (["--live"], [])], ids=["not_followed", "not_ended"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_nothing_is_missing_otherwise(run, allocprof, tmp_path, name, options, words):
    """Where no block is followed, and where the heap's blocks stay."""
    program = build(run, tmp_path, PROGRAMS[name][0], name)
    figures, unknown, told = stat(run, allocprof, tmp_path / "json", *options, "--", program, *words)
    assert unknown == {} and figures["complete"] is True and told == b""


def test_collector(run, allocprof, tmp_path):
    program = build(run, tmp_path, COLLECTED, "libgc")
    figures, _, told = stat(run, allocprof, tmp_path / "json", "--", program)
    assert figures["complete"] is True and told == b""
    result = run([allocprof, "record", "--live", "-o", tmp_path / "data", "--", program], expect=0)
    assert b"its collector frees unreachable blocks" in result.stderr
    report = run([allocprof, "report", "--json", "--strict", tmp_path / "data"], expect=1)
    assert json.loads(report.stdout)["complete"] is False and b"its collector frees unreachable blocks" in report.stderr
    memory = Memory(tmp_path / "data")
    assert memory.of("call_malloc") == {"malloc": (5, 500, 5, 0)}
    assert memory.of("call_atomic") == {"malloc": (6, 1200, 6, 0)}
    assert memory.of("call_realloc") == {"malloc": (7, 70, 7, 0), "realloc": (7, 35000, 7, 0)}
    assert memory.of("call_memalign") == {"aligned_alloc": (9, 2700, 0, 9)}
    assert memory.of("GC_strdup")["malloc"][:2] == (8, 64)
