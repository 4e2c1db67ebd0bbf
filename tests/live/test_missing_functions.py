# SPDX-License-Identifier: GPL-3.0-or-later
"""Allocations that no probe and no stub can see: by functions that are in no table, by code that a compiler has put into
its callers, and in a namespace of the dynamic linker's. A report with them does not claim to be complete."""

import subprocess

import pytest

from support import Recording, read_report

# Blocks of a mapping, which are never used again; it counts what the calls ask for.
ALLOCATOR = r"""
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
static char *at, *end;
size_t calls;
__attribute__((noinline)) static void *fresh(size_t size)
{
	size = (size + 31) & ~(size_t)15;
	if ((size_t)(end - at) < size) {
		at = mmap(0, 1 << 24, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		end = at + (1 << 24);
	}
	at += size;
	*(size_t *)(at - size) = size;
	return at - size + 16;
}
static void *get(size_t size) { calls++; return fresh(size < 16 ? 16 : size); }
void *malloc(size_t size) { return get(size); }
void free(void *block) { if (block) *(size_t *)((char *)block - 16) = 0; }
void *calloc(size_t n, size_t size) { return get(n * size); }
void *realloc(void *block, size_t size)
{
	void *moved = get(size);
	if (block) memcpy(moved, block, size);
	return moved;
}
void *moz_arena_malloc(size_t arena, size_t size) { return fresh(size); }
"""
USER = r"""
#include <stdlib.h>
void *moz_arena_malloc(size_t arena, size_t n);
void use(void)
{
	static void *blocks[1000];
	for (int i = 0; i < 700; i++) blocks[i] = moz_arena_malloc(3, 90);
	for (int i = 700; i < 1000; i++) blocks[i] = malloc(50);
	for (int i = 0; i < 1000; i++) free(blocks[i]);
}
"""
MAIN = "void use(void); int main(void) { use(); return 0; }"


def build(directory, name, sources, *flags):
    paths = []
    for part, source in sources.items():
        paths.append(directory / f"{name}_{part}.c")
        paths[-1].write_text(source)
    subprocess.run(["gcc", "-O2", "-fno-builtin", "-w", "-o", directory / name, *paths, *flags], check=True)
    return directory / name


# C++'s delete and jemalloc's dallocx of the same library end what C's functions or the unknown one have made.
FAMILIES = r"""
void _ZdlPv(void *block) { *(size_t *)((char *)block - 16) = 1; }
void *_Znwm(size_t size) { calls += 2; return fresh(size); }
void dallocx(void *block, int flags) { *(size_t *)((char *)block - 16) = 2; }
void *mallocx(size_t size, int flags) { calls += 3; return fresh(size); }
"""
USES_FAMILIES = r"""
#include <stdlib.h>
void *moz_arena_malloc(size_t arena, size_t n);
void _ZdlPv(void *);
void *_Znwm(size_t);
void dallocx(void *, int);
void *mallocx(size_t, int);
int main(void)
{
	for (int i = 0; i < 10; i++) free(malloc(50));
	for (int i = 0; i < 10; i++) _ZdlPv(_Znwm(50));
	for (int i = 0; i < 10; i++) dallocx(mallocx(50, 0), 0);
	for (int i = 0; i < 400; i++) free(moz_arena_malloc(3, 90));
	for (int i = 0; i < 30; i++) realloc(moz_arena_malloc(3, 90), 200);
	for (int i = 0; i < 200; i++) _ZdlPv(moz_arena_malloc(3, 90));
	for (int i = 0; i < 100; i++) dallocx(moz_arena_malloc(3, 90), 0);
	return 0;
}
"""


@pytest.fixture
def arena(tmp_path):
    """The program whose library calls moz_arena_malloc, which is in the program or in another library."""
    def made(place):
        build(tmp_path, "libuser.so", {"user": USER}, "-shared", "-fPIC", "-Wl,--unresolved-symbols=ignore-all")
        where = [f"-L{tmp_path}", "-luser", f"-Wl,-rpath,{tmp_path}"]
        if place == "program":
            return build(tmp_path, "program", {"main": MAIN, "allocator": ALLOCATOR}, "-rdynamic", *where)
        build(tmp_path, "liballocator.so", {"allocator": ALLOCATOR}, "-shared", "-fPIC")
        return build(tmp_path, "program", {"main": MAIN}, *where, "-lallocator")
    return made


@pytest.mark.parametrize("engine, place", [("uprobe", "program"), ("uprobe", "library"), ("preload", "library"),
                                           ("preload", "program")])
def test_unknown_function(run, allocprof, arena, tmp_path, engine, place):
    """A library calls a function of the allocator that resembles those of the table."""
    program = arena(place)
    result = run([allocprof, "stat", f"--engine={engine}", "--json", "-o", tmp_path / "json", program], expect=0)
    assert read_report(tmp_path / "json")["complete"] is False
    said = result.stderr.decode()
    if engine == "uprobe" or place == "program":
        assert "moz_arena_malloc, which is not known: 700 calls of it" in said, said
        assert "inlined" not in said, said
    else:
        assert "700 calls or uses of functions of an allocator's own are not followed" in said, said
    # What its blocks' ends say is so whatever the function's name is.
    result = run([allocprof, "record", "--live", f"--engine={engine}", "-o", tmp_path / "data",
                  *(["--ignore=moz_arena_malloc"] if engine == "uprobe" else []), program], expect=0)
    if engine == "preload" and place == "program":
        return
    recording = Recording(tmp_path / "data")
    assert recording.functions["malloc"] == (300, 15000)
    assert recording.gaps["allocations_unseen_c"] == [(700, "", "")] and recording.ledger["frees_unknown"] == 700
    assert "700 blocks were freed as in C (free, realloc) that no counted call had allocated" in result.stderr.decode()
    report = run([allocprof, "report", "--strict", tmp_path / "data"])
    assert b"700 blocks were freed as in C (free, realloc) that no counted call had allocated" in report.stderr
    assert report.status == 1


@pytest.mark.parametrize("engine", ["uprobe", "preload"])
def test_families_of_what_was_freed(run, allocprof, tmp_path, engine):
    """Blocks of one unknown function, by which functions they were freed."""
    build(tmp_path, "liballocator.so", {"allocator": ALLOCATOR + FAMILIES}, "-shared", "-fPIC")
    program = build(tmp_path, "program", {"main": USES_FAMILIES}, f"-L{tmp_path}", "-lallocator", f"-Wl,-rpath,{tmp_path}")
    measured = ["--live", f"--engine={engine}", *(["--ignore=moz_arena_malloc"] if engine == "uprobe" else [])]
    expected = {"c": 430, "cxx": 200, "jemalloc": 100, "defined": 0}
    result = run([allocprof, "record", *measured, "-o", tmp_path / "data", program], expect=0)
    recording = Recording(tmp_path / "data")
    found = {family: sum(gap[0] for gap in recording.gaps.get(f"allocations_unseen_{family}", [])) for family in expected}
    assert found == expected and recording.ledger["frees_unknown"] == 730
    for how in ["430 blocks were freed as in C (free, realloc)", "200 blocks were freed as in C++ (operator delete)",
                "100 blocks were freed by jemalloc's interface (dallocx, sdallocx, rallocx)"]:
        assert f"{how} that no counted call had allocated" in result.stderr.decode()
    run([allocprof, "stat", "--json", *measured, "-o", tmp_path / "json", program], expect=0)
    report = read_report(tmp_path / "json")
    assert {family: report[f"allocations_unseen_{family}"] for family in expected} == expected
    assert report["complete"] is False


# Its calls come from functions that LTO has put malloc's code into.
CALLER = r"""
#include <stdio.h>
#include <stdlib.h>
extern size_t calls;
static void *keep[2000];
__attribute__((noinline)) void make(void)
{
	for (int i = 0; i < 1000; i++) keep[i] = malloc(40);
	for (int i = 0; i < 500; i++) keep[1000 + i] = calloc(2, 50);
}
__attribute__((noinline)) void grow(void) { for (int i = 0; i < 250; i++) keep[i] = realloc(keep[i], 80); }
__attribute__((noinline)) void drop(void) { for (int i = 10; i < 1500; i++) free(keep[i]); }
int main(void)
{
	make(); grow(); drop();
	printf("%zu\n", calls);
	return 0;
}
"""


@pytest.mark.parametrize("flags, is_bypassed", [(["-flto"], True), ([], False), (["-flto", "-fno-inline", "-fno-ipa-cp"], False),
                                                (["-no-pie", "-flto"], True)],
                         ids=["lto", "plain", "lto_without_inlining", "lto_no_pie"])
def test_inlined(run, allocprof, tmp_path, flags, is_bypassed):
    program = build(tmp_path, "program", {"caller": CALLER, "allocator": ALLOCATOR}, *flags)
    result = run([allocprof, "stat", "--json", "-o", tmp_path / "json", program], expect=0)
    report = read_report(tmp_path / "json")
    # That of stdio's buffer comes after the number was read.
    assert result.stdout == b"1750\n"
    assert report["complete"] is not is_bypassed
    assert (b"inlined or have clones" in result.stderr) == is_bypassed
    if not is_bypassed:
        assert report["total_allocations"] == 1751
    run([allocprof, "record", "-o", tmp_path / "data", program], expect=0)
    assert run([allocprof, "report", "--strict", tmp_path / "data"]).status == is_bypassed


def test_auditor(run, allocprof, tmp_path):
    """A library that audits the dynamic linker has a C library of its own, where the preloaded one is not."""
    auditor = build(tmp_path, "auditor.so", {"auditor": """
        #include <stdlib.h>
        unsigned int la_version(unsigned int version)
        {
            for (int i = 0; i < 300; i++)
                free(malloc(48));
            return version;
        }
    """}, "-shared", "-fPIC")
    program = build(tmp_path, "program", {"main": "int main(void) { return 0; }"})
    figures = {}
    for engine in "uprobe", "preload":
        for name, value in ("with", auditor), ("without", ""):
            result = run([allocprof, "stat", f"--engine={engine}", "--json", "-o", tmp_path / "json", "--",
                          "env", f"LD_AUDIT={value}", program], expect=0)
            report = read_report(tmp_path / "json")
            assert report["complete"] is (engine == "uprobe" or name == "without"), result
            figures[engine, name] = report["functions"]["malloc"]["calls"]
    assert figures["uprobe", "with"] - figures["uprobe", "without"] >= 300
    told = b"1 library was loaded by dlmopen, as an auditor (LD_AUDIT)"
    assert told in \
        run([allocprof, "stat", "--engine=preload", "--", "env", f"LD_AUDIT={auditor}", program], expect=0).stderr
    named = build(tmp_path, "named", {"main": "int main(void) { return 0; }"}, f"-Wl,--audit={auditor}")
    assert told in run([allocprof, "stat", "--engine=preload", "--", named], expect=0).stderr
