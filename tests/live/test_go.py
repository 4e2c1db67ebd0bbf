# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs that are written in Go: C code runs on another stack than the goroutine that calls it."""

import re
import shutil
import subprocess

import pytest

from support import SOURCE, Recording, clean_environment, read_report, unavailable

SOURCES = SOURCE / "tests" / "targets" / "go"

BUILDS = {
    "plain": [],
    "stripped": ["-ldflags=-s"],
    "internal": ["-ldflags=-linkmode=internal"],
    "internal_stripped": ["-ldflags=-s -linkmode=internal"],
    "pie": ["-buildmode=pie"],
    "pie_stripped": ["-buildmode=pie", "-ldflags=-s"],
}

# Outermost first, from where the goroutine began.
MAIN = ["runtime.goexit", "runtime.main", "main.main"]
C_CALL = ["runtime.cgocall", "runtime.asmcgocall"]
LEAK = ["main.leak", "main._Cfunc_allocate", *C_CALL]
GO_CALL = ["crosscall2", "runtime.cgocallback", "runtime.cgocallbackg", "runtime.cgocallbackg",
           "runtime.cgocallbackg1", "_cgoexp_backAgain", "main.backAgain"]
ALLOCATE = ["_cgo_Cfunc_allocate", "allocate"]
THERE = ["main._Cfunc_callGo", *C_CALL]
CALL_GO = ["_cgo_Cfunc_callGo", "callGo", "backAgain"]

STACKS = {
    100: (1000, [*MAIN, *LEAK, *ALLOCATE]),
    200: (7, ["runtime.goexit", "main.main.func1", *["main.grow"] * 4, *LEAK, *ALLOCATE]),
    300: (5, [*MAIN, "main.there", *THERE, *CALL_GO, *GO_CALL, *LEAK[1:], *ALLOCATE]),
    400: (3, [*MAIN, "main.there", *(THERE + CALL_GO + GO_CALL) * 3, *LEAK[1:], *ALLOCATE]),
}

# Functions of C code, whose names are not in a stripped program's table where gcc linked it.
C_FUNCTIONS = {*ALLOCATE, *CALL_GO}


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    """Builds a program of tests/targets/go."""
    go = shutil.which("go", path="/usr/bin")
    if not go:
        unavailable("golang-go is not installed")
    directory = tmp_path_factory.mktemp("go")

    def build(name, *options):
        path = directory / f"{name}{''.join(options).replace(' ', '')}"
        subprocess.run([go, "build", *options, "-o", path, SOURCES / f"{name}.go"], check=True, cwd=directory,
                       env=clean_environment({"GOCACHE": str(directory / "cache"), "GO111MODULE": "off",
                                              "PATH": "/usr/bin:/bin"}))
        return path
    return build


def stacks_by_size(recording):
    """{size of a block: {names of the stack's functions: calls}}. cgo puts a hash in names."""
    found = {}
    for text, calls, size in recording.sql(
            "SELECT functions, calls, bytes / calls FROM uninlined WHERE calls > 0"):
        names = tuple(re.sub(r"_cgo(exp)?_[0-9a-f]{12}_", r"_cgo\1_", name) for name in text.split(";"))
        stacks = found.setdefault(size, {})
        stacks[names] = stacks.get(names, 0) + calls
    return found


@pytest.mark.fast("plain")
@pytest.mark.parametrize("options", BUILDS.values(), ids=BUILDS.keys())
def test_c_code_that_go_calls(run, allocprof, tmp_path, build, options):
    run([allocprof, "record", "-o", tmp_path / "data", build("cgo", *options)], expect=0)
    recording = Recording(tmp_path / "data")
    found = stacks_by_size(recording)
    named = "-s" not in "".join(options)
    for size, (calls, names) in STACKS.items():
        expected = tuple(name if named or name not in C_FUNCTIONS else "C" for name in names)
        got = {tuple("C" if not named and (name in C_FUNCTIONS or name.startswith("[")) else name
                     for name in stack): n for stack, n in found.get(size, {}).items()}
        assert got == {expected: calls}, f"blocks of {size} bytes"
    # Those of Go's runtime, which starts threads on the stack that C code runs on, too.
    assert recording.ledger["complete"] == recording.ledger["events"], recording.ledger


@pytest.mark.engines("uprobe", "preload")
@pytest.mark.parametrize("options", [[], ["-ldflags=-s"]], ids=["plain", "stripped"])
def test_own_heap(run, allocprof, tmp_path, build, options):
    """What Go itself allocates is no call of malloc: that is said."""
    program = build("cgo", *options)
    sentence = f"allocprof: Go ({program}) allocates from a heap of its own, not by malloc".encode()
    result = run([allocprof, "record", "--no-symbols", "-o", tmp_path / "data", program], expect=0)
    assert result.stderr.count(sentence) == 1, result
    assert Recording(tmp_path / "data").meta["own_heaps"] == f"go {program}"
    assert sentence in run([allocprof, "report", "-i", tmp_path / "data"], expect=0).stderr
    run([allocprof, "stat", "--json", "-o", tmp_path / "json", "--", program], expect=0)
    assert read_report(tmp_path / "json")["own_heaps"] == [{"runtime": "go", "path": str(program)}]
    text = " ".join(run([allocprof, "stat", "--", program], expect=0).stderr.decode().split())
    assert f"Go ({program}) allocates from a heap of its own" in text


def test_live(run, allocprof, tmp_path, build):
    """No call is missing where returns are probed too."""
    program = build("cgo")
    run([allocprof, "record", "--live", "-o", tmp_path / "data", program], expect=0)
    found = stacks_by_size(Recording(tmp_path / "data"))
    assert {size: sum(stacks.values()) for size, stacks in found.items() if size in STACKS} == \
        {size: calls for size, (calls, _) in STACKS.items()}


NO_MALLOC = (b"which has no malloc: Go's runtime allocates memory itself, and Go's package runtime/pprof "
             b"profiles that")


@pytest.mark.fast("plain")
@pytest.mark.parametrize("options", [[], ["-ldflags=-s"]], ids=["plain", "stripped"])
def test_go_alone(run, allocprof, tmp_path, build, options):
    program = build("pure", *options)
    for command in ["record", "stat"]:
        result = run([allocprof, command, "-o", tmp_path / "data", program])
        assert result.status == 125
        assert result.stderr == f"allocprof: {program} is a Go program, ".encode() + NO_MALLOC + \
            b"; --engine=preload counts the programs that it runs\n"


def test_go_alone_attached(runner, run, allocprof, tmp_path, build):
    process = runner.start([build("pure"), "sleep"], stderr=subprocess.PIPE)
    assert process.stderr.readline() == b"1000\n"
    result = run([allocprof, "record", "-o", tmp_path / "data", "-p", process.pid])
    assert result.stderr == f"allocprof: process {process.pid} is a Go program, ".encode() + NO_MALLOC + b"\n"
