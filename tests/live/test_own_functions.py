# SPDX-License-Identifier: GPL-3.0-or-later
"""The functions that allocators have beside those of the C library (operator new, mallocx, tc_*, mi_*) under the engine
preload: row by row what uprobes count."""

import collections
import contextlib
import sqlite3
import subprocess

import pytest

import interfaces
from support import read_report, unavailable
from test_engines_agree import rows
from test_interfaces import kind

LIBRARIES = ["libjemalloc", "libtcmalloc_minimal", "libmimalloc"]
# What stat says of blocks.
FIGURES = ["total_allocations", "deallocations", "reallocations", "live_blocks", "live_bytes", "temporary",
           "temporary_bytes", "failed", "unfinished"]


def library(name):
    path = interfaces.library(name)
    if not path:
        unavailable(f"{name} is not installed: scripts/setup --test")
    return str(path)


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """programs(NAME, WAY): the program of interfaces.py linked to that library, or to none."""
    directory, made = tmp_path_factory.mktemp("own"), {}

    def make(name, way):
        key = name if way == "linked" else way
        if key not in made:
            made[key] = interfaces.build(directory, key, *([library(name)] if way == "linked" else ["-ldl"]))
        return made[key]
    return make


def environment(name, way):
    return {"ALLOCATOR": library(name), **({"LD_PRELOAD": library(name)} if way == "preloaded" else {})}


def stat(run, allocprof, path, engine, argv, *options, env=None):
    """Calls and bytes by function, figures of blocks, and the report."""
    run([allocprof, "stat", "--json", f"--engine={engine}", "-o", path, *options, "--", *argv], env=env, expect=0)
    report, sums = read_report(path), collections.Counter()
    for function, entry in report["functions"].items():
        sums[kind(function), "calls"] += entry["calls"]
        sums[kind(function), "bytes"] += entry["bytes"]
    for figure in FIGURES:
        sums[figure] = report.get(figure) or 0
    return +sums, report


def by_kind(found):
    """Where several functions have one address, one name stands for all under uprobes."""
    sums = collections.defaultdict(lambda: [0] * 6)
    for (function, frames), row in found.items():
        key = kind(function), frames
        sums[key] = [a + b for a, b in zip(sums[key], row)]
    return dict(sums)


@pytest.mark.fast("linked-libjemalloc", "preloaded-libmimalloc")
@pytest.mark.parametrize("name", LIBRARIES)
@pytest.mark.parametrize("way", ["linked", "preloaded"])
def test_equal(run, allocprof, programs, tmp_path, way, name):
    """Each function as the table has it, expressions of C++, and blocks that stay."""
    argv, env = [programs(name, way), "ce"], environment(name, way)
    for options in (), ("--live",):
        counted = [stat(run, allocprof, tmp_path / "json", engine, argv, *options, env=env)
                   for engine in ("uprobe", "preload")]
        assert counted[0][0] == counted[1][0]
        assert all(report["complete"] for _, report in counted)
        assert sum(n for key, n in counted[1][0].items() if key[1] == "calls") > 900
    found = []
    for engine in "uprobe", "preload":
        data = tmp_path / engine
        run([allocprof, "record", "-q", "--live", f"--engine={engine}", "-o", data, "--", *argv], env=env, expect=0)
        found.append(by_kind(rows(data)[0]))
    uprobe, preload = found
    wrong = [f"{key}: uprobe {uprobe.get(key)}, preload {preload.get(key)}" for key in {**uprobe, **preload}
             if uprobe.get(key) != preload.get(key)]
    assert not wrong, f"{len(wrong)} of {len(uprobe)} rows differ:\n" + "\n".join(wrong[:8])


# The C++ library's code calls operator new of the allocator, although it has one itself.
STRINGS = r"""
#include <sstream>
#include <string>
int main()
{
	for (int i = 0; i < 100; i++) {
		std::ostringstream out;

		out << std::string(100, 'x') << i;
		out << out.str() << out.str();
	}
}
"""


@pytest.mark.covering(1)
@pytest.mark.fast("LAZY-libjemalloc")
@pytest.mark.parametrize("name", LIBRARIES)
@pytest.mark.parametrize("binding", ["LAZY", "NOW"])
def test_calls_of_the_cplusplus_library(run, allocprof, tmp_path, binding, name):
    """Of libstdc++.so as well as of the program, also where names are looked up when they are first called."""
    source = tmp_path / "strings.cc"
    source.write_text(STRINGS)
    program = tmp_path / "strings"
    subprocess.run(["g++", "-O1", "-o", program, source, "-Wl,--no-as-needed", library(name)], check=True)
    env = {"LD_BIND_NOW": "1"} if binding == "NOW" else {}
    for options in (), ("--live",):
        uprobe, preload = [stat(run, allocprof, tmp_path / "json", engine, [program], *options, env=env)[0]
                           for engine in ("uprobe", "preload")]
        assert preload == uprobe
        assert preload["new", "calls"] >= 400


@pytest.mark.fast("libjemalloc")
@pytest.mark.parametrize("name", LIBRARIES)
def test_preloaded_later(run, allocprof, programs, tmp_path, name):
    """LD_PRELOAD of the command names the allocator, and that of a command that it executes: for that program's calls it
    is the same."""
    program, found = programs(name, "preloaded"), []
    for before, env in ([], {"LD_PRELOAD": library(name)}), (["env", f"LD_PRELOAD={library(name)}"], {}):
        run([allocprof, "record", "-q", "--live", "--engine=preload", "-o", tmp_path / "data", "--", *before, program, "ce"],
            env={"ALLOCATOR": library(name), **env}, expect=0)
        with contextlib.closing(sqlite3.connect(tmp_path / "data")) as data:
            found.append(data.execute("""SELECT function, sum(allocations), sum(bytes), sum(frees), sum(live_bytes) FROM memory
                WHERE comm = ? GROUP BY function ORDER BY function""", (program.name[:15],)).fetchall())
            assert data.execute("SELECT value FROM ledger WHERE name = 'lost'").fetchone() == (0,)
    assert found[0] == found[1] and sum(row[1] for row in found[0]) > 400


@pytest.mark.fast("libjemalloc")
@pytest.mark.parametrize("name", LIBRARIES)
def test_command_of_a_command(run, allocprof, programs, tmp_path, name):
    """Probes are set beforehand, so none of the program's calls is missing."""
    program, found = programs(name, "preloaded"), []
    assignment = f"LD_PRELOAD={library(name)}"
    for before, env in ([], {"LD_PRELOAD": library(name)}), (["timeout", "60", "env", "-u", "X", assignment, "nice", "-n", "1"], {}):
        run([allocprof, "record", "-q", "--engine=uprobe", "-o", tmp_path / "data", "--", *before, program, "ce"],
            env={"ALLOCATOR": library(name), **env}, expect=0)
        with contextlib.closing(sqlite3.connect(tmp_path / "data")) as data:
            found.append(data.execute("""SELECT function, sum(c.calls), sum(c.bytes) FROM calls c WHERE comm = ?
                GROUP BY function ORDER BY function""", (program.name[:15],)).fetchall())
        report = run([allocprof, "report", tmp_path / "data"], expect=0)
        assert b"not complete" not in report.stdout + report.stderr, report
    assert found[0] == found[1] and sum(row[1] for row in found[0]) > 400


@pytest.mark.fast("libtcmalloc_minimal")
@pytest.mark.parametrize("name", LIBRARIES)
def test_failing(run, allocprof, programs, tmp_path, name):
    """Requests that get nothing: by null, and by an exception that passes the library."""
    parts = "f" if name == "libmimalloc" else "ft"
    got = []
    for engine in "uprobe", "preload":
        sums, report = stat(run, allocprof, tmp_path / "json", engine, [programs(name, "linked"), parts], "--live",
                            env=environment(name, "linked"))
        got.append(sums)
        assert report["complete"]
    assert got[0] == got[1]


LATER = r"""
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv)
{
	void *library = dlopen(argv[1], RTLD_NOW);
	void (*use)(void) = library ? dlsym(library, "use") : 0;

	if (!use)
		return puts(dlerror());
	use();
	return 0;
}
"""
USER = r"""
#include <stdlib.h>
void *mi_malloc(size_t size);
void *mi_realloc(void *block, size_t size);
void mi_free(void *block);
void use(void)
{
	for (int i = 0; i < 10; i++) {
		void *block = mi_realloc(mi_malloc(100), 200);

		if (i % 2)
			mi_free(block);
	}
}
"""


def compiled(directory, name, text, *flags):
    (directory / f"{name}.c").write_text(text)
    subprocess.run(["gcc", "-O1", "-o", directory / name, directory / f"{name}.c", *flags], check=True)
    return str(directory / name)


@pytest.mark.fast("path")
@pytest.mark.parametrize("way", ["path", "name"])
def test_loaded_later(run, allocprof, tmp_path, way):
    """An allocator that comes with a library is counted; where the search for that depends on the caller, it is named."""
    user = compiled(tmp_path, "libuser.so", USER, "-shared", "-fPIC", library("libmimalloc"))
    flags = ["-Wl,--enable-new-dtags", f"-Wl,-rpath,{tmp_path}"] if way == "name" else []
    program = compiled(tmp_path, "later", LATER, "-ldl", *flags)
    argv = [program, user if way == "path" else "libuser.so"]
    sums, report = stat(run, allocprof, tmp_path / "json", "preload", argv, "--live")
    idle = compiled(tmp_path, "idle", LATER.replace("use();", ""), "-ldl")
    without, _ = stat(run, allocprof, tmp_path / "json", "preload", [idle, user], "--live")
    if way == "name":
        assert not report["complete"]
        gap, = report["engine_gaps"]
        assert "allocator's own" in gap
        return
    assert report["complete"]
    sums.subtract(without)
    assert [sums[function, "calls"] for function in ("malloc", "realloc", "delete")] == [10, 10, 5]
    assert (sums["malloc", "bytes"], sums["realloc", "bytes"], sums["live_bytes"]) == (1000, 2000, 1000)


HEAPS = r"""
#include <stddef.h>
void *mi_heap_new(void);
void *mi_heap_malloc(void *heap, size_t size);
void mi_heap_destroy(void *heap);
char *mi_strdup(const char *text);
int main(int argc, char **argv)
{
	void *heap = mi_heap_new();

	for (int i = 0; i < 10; i++)
		mi_heap_malloc(heap, 100);
	for (int i = 0; i < 3; i++)
		mi_strdup("seven..");
	if (argc > 1)
		mi_heap_destroy(heap);
	return 0;
}
"""


def test_ends_that_are_not_known(run, allocprof, tmp_path):
    """A function that frees blocks which it does not name is one only if it is called."""
    program = compiled(tmp_path, "heaps", HEAPS, library("libmimalloc"))
    for words, is_complete in ([], True), (["destroy"], False):
        sums, report = stat(run, allocprof, tmp_path / "json", "preload", [program, *words], "--live")
        assert report["complete"] == is_complete
        assert bool(report.get("engine_gaps")) != is_complete
        # Three copies of eight bytes are among them.
        assert (sums["malloc", "calls"], sums["malloc", "bytes"]) == (13, 1024)
