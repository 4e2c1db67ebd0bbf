# SPDX-License-Identifier: GPL-3.0-or-later
"""Pools that are defined by --probe and in files: calls, bytes, blocks, and what is beneath them."""

import json
import pathlib
import re
import shutil

import pytest

from support import Recording, unavailable

FUNCTIONS = """
alloc = pool_get(size=arg0) -> ret
alloc = pool_zget(size=arg0)
alloc = pool_array(count=arg0, size=arg1)
alloc = pool_into(size=arg1) -> *arg0
alloc = pool_wrap(size=arg0)
alloc = pool_fail(size=arg0)
realloc = pool_grow(ptr=arg0, size=arg1) -> retval
free = pool_put(ptr=arg0)
free = pool_drop(ptr=*arg0)
"""
PROBE = ", ".join(FUNCTIONS.strip().split("\n"))

# What the program says in its first comment; pool_zget() calls pool_get().
ALLOC = {"calls": 1000 + 500 + 40 + 40 + 200 + 200 + 3, "internal": 500,
         "bytes": 1000 * 64 + 500 * 32 + 40 * 48 + 30 * 24 + 10 * ((1 << 20) + 1) + 200 * 16 + 200 * 40 + 300}
REALLOC = {"calls": 200, "internal": 0, "bytes": 200 * 128}
FREE = {"calls": 1200, "internal": 0, "bytes": 0}
OWN = 3 + 7


def without_aliases(entry):
    return {key: value for key, value in entry.items() if key != "aliases"}


def stat(run, allocprof, path, *options, expect=0):
    result = run([allocprof, "stat", "--json", "-o", path, *options], expect=expect)
    return result, json.loads(path.read_text())


def beneath(result):
    return int(re.search(rb"beneath=(\d+)", result.stdout).group(1))


@pytest.fixture
def definition(tmp_path):
    path = tmp_path / "pools.ini"

    def write(settings=""):
        path.write_text(f"# What pools.c has.\n\n[pool]\n{settings}\n{FUNCTIONS}")
        return path

    return write


@pytest.mark.parametrize("live", [[], ["--live"]], ids=["", "live"])
@pytest.mark.parametrize("nesting", ["outermost", "beside"])
def test_probe(run, allocprof, target, tmp_path, nesting, live):
    result, figures = stat(run, allocprof, tmp_path / "json", *live, "--probe", f"{PROBE}, nesting={nesting}",
                           "--probe-in", target("pools"), "--", target("pools"))
    functions = {name: without_aliases(entry) for name, entry in figures["functions"].items()}
    inner = beneath(result)
    assert inner == 5 + 200
    assert functions["probe.alloc"] == ALLOC
    assert functions["probe.realloc"] == REALLOC
    assert functions["probe.free"] == FREE
    is_outermost = nesting == "outermost"
    assert functions["malloc"]["calls"] == OWN + (0 if is_outermost else inner)
    assert functions["malloc"]["internal"] == (inner if is_outermost else 0)
    # What pool_log() frees; pool_wrap() is not what gives back.
    assert functions["free"]["calls"] == OWN + (0 if is_outermost else 5)
    assert figures["lost"]["total"] == 0 and figures["not_nested"] == 0
    assert figures["complete"] is not bool(live), "blocks of pool_fail and pool_wrap" if live else ""


def test_aliases_name_the_functions(run, allocprof, target, tmp_path):
    _, figures = stat(run, allocprof, tmp_path / "json", "--probe", f"name=pool, {PROBE}", "--", target("pools"))
    assert figures["functions"]["pool.alloc"]["aliases"] == [
        "pool_array", "pool_fail", "pool_get", "pool_into", "pool_wrap", "pool_zget"]


def absent_words(run, allocprof, target, tmp_path, *arguments):
    _, figures = stat(run, allocprof, tmp_path / "json", "--probe", "alloc = pool_take(size=*arg0) -> *arg1",
                      "--probe-in", target("absent_words"), *arguments)
    return figures


@pytest.mark.parametrize("live", [[], ["--live"]], ids=["", "live"])
def test_absent_words(run, allocprof, target, tmp_path, reads_pages_in, live):
    """Pages that the kernel has taken away are read in, as for the program itself."""
    figures = absent_words(run, allocprof, target, tmp_path, *live, "--", target("absent_words"))
    assert figures["functions"]["probe.alloc"]["bytes"] == 40 * 48
    assert figures["complete"] and figures["calls_unread"] == 0
    if live:
        assert figures["live"] == 40 and figures["live_bytes"] == 40 * 48


@pytest.mark.parametrize("live,unread", [([], 40), (["--live"], 40 + 40)], ids=["", "live"])
def test_absent_words_of_file(run, allocprof, target, tmp_path, live, unread):
    """Nothing waits for a file: the arguments, and with --live the results, are said to be unread."""
    figures = absent_words(run, allocprof, target, tmp_path, *live, "--", target("absent_words"), "file")
    assert figures["functions"]["probe.alloc"]["calls"] == 40
    assert figures["calls_unread"] == unread
    assert not figures["complete"]


@pytest.mark.parametrize("live", [[], ["--live"]], ids=["", "live"])
def test_recorded_from_a_file(run, allocprof, target, tmp_path, definition, live):
    """Stacks are complete, whole and by name; the same definition as --probe has."""
    data = tmp_path / "data"
    run([allocprof, "record", "-q", *live, "--allocator", definition("returns = probes"), "-o", data, "--",
         target("pools")], expect=0)
    recording = Recording(data)
    assert recording.unbalanced() == []
    assert recording.ledger["incomplete"] == 0 and recording.ledger["lost"] == 0
    assert recording.meta["schema_version"] == "5"
    calls = {(function, caller): (n, size) for function, caller, n, size in recording.sql(
        "SELECT function, caller, sum(calls), sum(bytes) FROM calls GROUP BY 1, 2")}
    assert sum(n for (function, _), (n, _) in calls.items() if function == "pool.alloc") == ALLOC["calls"]
    assert calls["pool.realloc", "main"] == (REALLOC["calls"], REALLOC["bytes"])
    assert calls["malloc", "main"] == (OWN, 3 * 11 + 7 * 10)
    if not live:
        return
    rows = recording.sql("SELECT function, sum(allocations), sum(frees), sum(live), sum(failed) FROM memory GROUP BY 1")
    memory = {function: figures for function, *figures in rows}
    # 3 calls of pool_fail do not return; realloc ends what pool_get has made for it.
    assert memory["pool.alloc"] == [ALLOC["calls"] - 13, 1000 + 200, ALLOC["calls"] - 13 - 1200, 10]
    assert memory["pool.realloc"] == [200, 200, 0, 0]
    assert recording.ledger["unfinished"] == 3


def test_blocks_that_end_with_their_pool(run, allocprof, target, tmp_path, definition):
    _, figures = stat(run, allocprof, tmp_path / "json", "--live", "--allocator",
                      definition("blocks = none\nreturns = probes"), "--", target("pools"))
    requests = ALLOC["calls"] + REALLOC["calls"]
    assert figures["untracked"]["pool"] == figures["untracked"]["total"] == requests
    assert figures["complete"] is False
    assert figures["unknown"] == 0 and figures["live"] == 0


def test_one_address_of_two_sources(run, allocprof, target, tmp_path):
    """pool_wrap jumps to malloc, whose block its own is: beside each other both count. Of calls that stand at one
    place of the stack the outer one is not seen to return, which is said."""
    _, figures = stat(run, allocprof, tmp_path / "json", "--live", "--probe",
                      "alloc=pool_wrap(size=arg0), nesting=beside, returns=probes", "--", target("pools"))
    assert figures["functions"]["probe.alloc"]["calls"] == 200
    assert figures["functions"]["malloc"]["calls"] == OWN + 205
    assert figures["live"] == 200 and figures["unfinished"] == 200
    assert figures["unseen"] == 0 and figures["unknown"] == 0


@pytest.mark.parametrize("size, each", [("48", 48), ("16*arg0", 48), ("arg0*100", 300), ("*arg0*1", 0)])
def test_sizes_that_are_numbers(run, allocprof, target, tmp_path, size, each):
    """pool_array is called with 3 and 16, neither of which is an address."""
    _, figures = stat(run, allocprof, tmp_path / "json", "--probe", f"alloc=pool_array(size={size}), nesting=beside",
                      "--", target("pools"))
    assert figures["functions"]["probe.alloc"]["calls"] == 40
    assert figures["functions"]["probe.alloc"]["bytes"] == 40 * each


def test_a_source_that_is_not_there(run, allocprof, target, tmp_path):
    result, figures = stat(run, allocprof, tmp_path / "json", "--probe", "alloc=nosuch(size=arg0)", "--",
                           target("pools"))
    assert figures["complete"] is False
    assert b"no file of the target has a function of probe, such as nosuch" in result.stderr


def test_returns_that_cannot_be_seen(run, allocprof, target, tmp_path):
    """pool_zero ends in a jump to memset, whose return is its own."""
    result, figures = stat(run, allocprof, tmp_path / "json", "--probe", "alloc=pool_zero(size=arg0)", "--",
                           target("pools"))
    assert figures["complete"] is False
    assert b"the code of pool_zero does not show where it returns" in result.stderr
    _, figures = stat(run, allocprof, tmp_path / "json", "--probe", "alloc=pool_zero(size=arg0), nesting=beside",
                      "--", target("pools"))
    assert figures["complete"] is True


@pytest.mark.parametrize("definition_text, words", [
    ("alloc=f(size=arg6)", b"'arg6' is no value; arguments are arg0 (the first) to arg5"),
    ("alloc=f(size=ret)", b"ret is not known when the function is called"),
    ("free=f(size=arg0)", b"free needs the block that it is given"),
    ("alloc=f(ptr=arg0)", b"is no alloc but a realloc"),
    ("alloc=malloc(size=arg0)", b"malloc is known already"),
    ("alloc=f(size=8*9)", b"a size has one number at the most"),
    ("alloc=f(size=0)", b"'0' is no size; a number is from 1 to"),
    ("alloc=f(size=8x)", b"'8x' is no size"),
    ("alloc=f(size=99999999999999999999)", b"is no size"),
    ("alloc=f(size=arg0*8, count=arg1)", b"a product of two values at the most"),
    ("alloc=f(ptr=8) -> *arg0", b"'8' is no value"),
    ("alloc=f(size=arg0), nesting=inside", b"'inside' is not known; it takes outermost, beside"),
    ("alloc=f(size=arg0), blocks=malloc, nesting=beside", b"each block would count twice"),
    ("f", b"'f' has no '='"),
    ("alloc=f(size=arg0", b"should be ',' or ')'"),
    ("nesting=beside", b"has no function"),
    ("name=a.b, alloc=f()", b"'a.b' is no name for an allocator"),
])
def test_refused(run, allocprof, definition_text, words):
    assert words in run([allocprof, "stat", "--probe", definition_text, "--", "true"], expect=64).stderr


@pytest.mark.slow
def test_python(run, allocprof, tmp_path):
    """What is live when Python counts its blocks is what it counts, object by object."""
    python = shutil.which("python3.11d") or shutil.which("python3.13d")
    if not python:
        unavailable("Python's debugging build is not installed: scripts/setup --test")
    program = ("import sys, os; keep = [object() for i in range(int(sys.argv[1]))]; "
               "os.write(1, b'%d' % sys.getallocatedblocks()); os._exit(0)")
    for n in ("1000", "3000"):
        data = tmp_path / "data"
        result = run([allocprof, "record", "-q", "--live", "--allocator", "python", "-o", data, "--", python, "-c",
                      program, n], expect=0)
        recording = Recording(data)
        live = dict(recording.sql("SELECT function, sum(live) FROM memory GROUP BY 1"))
        assert sum(live[f"python{domain}.{kind}"] for domain in ("", "-mem") for kind in ("alloc", "realloc")) == int(
            result.stdout)


GLIB_USER = r"""
#include <stddef.h>
void *g_malloc(size_t), *g_malloc0(size_t), *g_malloc_n(size_t, size_t), *g_realloc(void *, size_t);
char *g_strdup(const char *);
void g_free(void *), free(void *);

int main(int argc, char **argv)
{
	if (argc > 1)
		return 0;
	for (int i = 0; i < 100; i++)
		g_free(g_malloc(24));
	for (int i = 0; i < 50; i++)
		free(g_malloc0(40));
	for (int i = 0; i < 30; i++)
		g_free(g_realloc(g_malloc_n(3, 8), 100));
	for (int i = 0; i < 20; i++)
		g_strdup("seven..");
	return 0;
}
"""


@pytest.mark.slow
def test_glib(run, allocprof, tmp_path):
    """Each nesting finds the same requests of GLib; what was internal is malloc's calls beside."""
    library = "/usr/lib/x86_64-linux-gnu/libglib-2.0.so.0"
    if not pathlib.Path(library).exists():
        unavailable("GLib is not installed: scripts/setup --test")
    (tmp_path / "user.c").write_text(GLIB_USER)
    run(["gcc", "-O1", "-fno-builtin", "-o", tmp_path / "user", tmp_path / "user.c", library], expect=0)
    of = {}
    for nesting in ("outermost", "beside"):
        counted = []
        for arguments in ([], ["nothing"]):
            _, figures = stat(run, allocprof, tmp_path / "json", "--allocator", f"glib:{nesting}", "--",
                              tmp_path / "user", *arguments)
            assert figures["complete"] is True
            counted.append(figures["functions"])
        # Without what GLib makes when it is loaded.
        of[nesting] = {name: {key: entry[key] - counted[1][name][key] for key in ("calls", "internal", "bytes")}
                       for name, entry in counted[0].items()}
        assert of[nesting]["glib.alloc"]["calls"] == 100 + 50 + 30 + 20
        assert of[nesting]["glib.alloc"]["bytes"] == 100 * 24 + 50 * 40 + 30 * 24 + 20 * 8
        assert of[nesting]["glib.realloc"]["calls"] == 30
        assert of[nesting]["glib.free"]["calls"] == 130
    beneath = {name: of["outermost"][name]["internal"] for name in ("malloc", "calloc", "realloc", "free")}
    assert beneath["malloc"] + beneath["calloc"] >= 200 and beneath["realloc"] >= 30 and beneath["free"] >= 130
    for name in ("malloc", "calloc", "realloc", "free"):
        inner, outer = of["outermost"][name], of["beside"][name]
        assert inner["calls"] + inner["internal"] == outer["calls"] + outer["internal"]
    calls = {nesting: sum(entry["calls"] for entry in functions.values()) for nesting, functions in of.items()}
    internal = {nesting: sum(entry["internal"] for entry in functions.values()) for nesting, functions in of.items()}
    assert calls["beside"] == calls["outermost"] + internal["outermost"] - internal["beside"]

    _, figures = stat(run, allocprof, tmp_path / "json", "--live", "--allocator", "glib", "--", tmp_path / "user")
    assert figures["complete"] is True
    assert figures["unknown"] == 0, "free() was given g_malloc0's blocks"
