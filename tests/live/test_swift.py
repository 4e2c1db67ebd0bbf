# SPDX-License-Identifier: GPL-3.0-or-later
"""A program in Swift, with the libraries of Debian 13 on whatever Debian this is: a dynamic linker
is what is started, the C library is another than the system's."""

import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess

import pytest

import conftest
import support
import test_figures
import test_regions
from names import Named
from test_check import documented
from test_names import assert_as_addr2line

SWIFT = support.SOURCE / "tests" / "swift"


@pytest.fixture(scope="module")
def swift():
    """Where the programs were built. They stay, so that the second time is fast."""
    result = subprocess.run([SWIFT / "build.sh"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if result.returncode:
        conftest.unavailable(f"{SWIFT / 'build.sh'} failed, which needs root, debootstrap, the "
                             f"network and 4 GB of disk: {result.stdout[-1000:]}")
    return pathlib.Path(result.stdout.splitlines()[-1])


@pytest.fixture
def recording(run, allocprof, swift, tmp_path):
    return record(run, allocprof, swift, tmp_path)


def record(run, allocprof, swift, tmp_path, *options):
    result = run([allocprof, "record", "-o", tmp_path / "data", *options, "--",
                  swift / "lib" / "ld-linux-x86-64.so.2", "--library-path", swift / "lib",
                  swift / "shapes"], expect=0)
    assert result.stdout == b"done\n"
    return Named(tmp_path / "data")


def demangler(swift):
    directory = swift / "demangle"
    return [str(directory / "ld-linux-x86-64.so.2"), "--library-path", str(directory),
            str(directory / "swift-demangle"), "--compact", "--simplified"]


def readable(swift, symbols):
    """Names by symbol, as the toolchain's demangler has them."""
    symbols = sorted(symbols)
    output = subprocess.run(demangler(swift),
                            input="".join(f"{symbol}\n" for symbol in symbols),
                            stdout=subprocess.PIPE, check=True, text=True).stdout
    return dict(zip(symbols, output.split("\n")))


def test_everything_is_recorded(recording, swift):
    assert recording.unbalanced() == []
    assert recording.ledger["lost"] == 0 and recording.ledger["events"] > 100
    assert "allocator_unprobed" not in recording.gaps
    paths = {path for path, in recording.sql("SELECT path FROM modules")}
    libraries = ("libswiftCore.so", "libc.so.6", "ld-linux-x86-64.so.2")
    assert {str(swift / "shapes"), *(str(swift / "lib" / name) for name in libraries)} <= paths
    assert all(path.startswith(str(swift)) or path[0] != "/" for path in paths)
    # The compiler's helpers, such as __swift_instantiateGenericMetadata in libswiftCore, have a
    # frame pointer and no call frame information: that a stack goes over one of them is told.
    assert recording.ledger["incomplete"] == recording.ledger["incomplete_frame_pointers"]
    # The linker's own start has no name.
    ends = {os.path.basename(stack.frames[-1].path) for stack in recording.stacks()}
    assert ends == {"shapes", "ld-linux-x86-64.so.2"}


def test_stacks(recording, swift):
    """Those that are committed, as often."""
    found = {}
    for stack in recording.stacks("symbol"):
        names = [frame.lines[-1].name if frame.lines else
                 f"[{os.path.basename(frame.path)}+{frame.address + 1:#x}]"
                 for frame in reversed(stack.frames)]
        if "main" in names:
            text = ";".join([*names[names.index("main"):], stack.function])
            found[text] = found.get(text, 0) + stack.calls
    wrong = []
    for line in (SWIFT / "shapes.folded").read_text().splitlines():
        text, _, calls = line.rpartition(" ")
        if found.get(text) != int(calls):
            wrong.append(f"{text}: expected {calls} calls, got {found.get(text)}")
    assert not wrong, "\n".join(wrong + [f"recorded: {text} {found[text]}" for text in found])


def test_demangled(run, allocprof, swift, tmp_path):
    """By the filter, which is used where the library of Swift's demangler is not installed."""
    recording = record(run, allocprof, swift, tmp_path, "--demangle-command",
                       shlex.join(demangler(swift)))
    symbols = dict(recording.sql("SELECT symbol, name FROM functions WHERE symbol LIKE '$s%'"))
    assert len(symbols) > 20
    assert symbols == readable(swift, symbols)


def test_demangler_says_what_is_committed(swift):
    """The unit tests go by it, where there is no Swift."""
    committed = {}
    for line in (SWIFT / "names.tsv").read_text().splitlines():
        symbol, name, _ = line.split("\t")
        committed[symbol] = name
    assert readable(swift, committed) == committed


@pytest.mark.engines("uprobe", "preload")
@pytest.mark.parametrize("level", ["Onone", "O"])
def test_types(run, allocprof, swift, tmp_path, level, engine):
    """No class has objects that the program has not made, and all of its own have their class, but for generic ones that are not
    specialized; names in full have arguments."""
    full = [part for part in demangler(swift) if part not in ("--compact", "--simplified")] + ["--compact"]
    for command, is_full in ((full, True), (demangler(swift), False)):
        said = run([allocprof, "record", "-q", "-o", tmp_path / "data", "--demangle-command", shlex.join(command), "--",
                    swift / f"types-{level}"], expect=0).stdout.decode()
        truth = {}
        for line in said.splitlines():
            count, name = line.split("\t")
            name = name if is_full else re.sub("^types\\.|<.*", "", name)
            truth[name] = truth.get(name, 0) + int(count)
        found = by_type(run, allocprof, tmp_path / "data")
        named = {name: count for name, count in found.items() if not name.startswith("[in ")}
        # The program's other arrays are of its own dictionary, its output and its names.
        own = {name: count for name, count in named.items() if name in truth or not name.startswith("Swift._ContiguousArrayStorage")}
        wrong = {name: (count, truth.get(name, 0)) for name, count in own.items() if count > truth.get(name, 0)}
        assert not wrong, f"{wrong}: (found, made)"
        unspecialized = [name for name in truth if "<" in name and (level == "Onone" or not is_full)]
        arrays = [name for name in truth if name.startswith("Swift._")]
        missing = {name: (named.get(name, 0), count) for name, count in truth.items()
                   if named.get(name, 0) != count and name not in unspecialized and name not in arrays}
        assert not missing, f"{missing}: (found, made), {found}"
        if level == "O" and is_full:
            assert {name: named.get(name, 0) for name in arrays} == {name: truth[name] for name in arrays}


def without_inlined(text):
    """The optimizer inlines the closure of withTaskGroup(), of which the code with which it goes on has no trace."""
    return text.replace("closure < group", "group")


def chains(recording):
    """{what "SIZE: leaf < main" of chains.swift says without the size: (calls, bytes)} of its blocks."""
    found = {}
    marked = {frame for frame, in recording.sql("SELECT id FROM frames WHERE interrupted = 2")}
    assert marked
    for stack in recording.stacks():
        names = [line.name for frame in stack.frames for line in frame.lines]
        if not any(name.startswith("take(") for name in names):
            continue
        chain = []
        for name in names:
            if name.startswith(("partial apply", "thunk", "specialized thunk")):
                continue
            name = "closure(" if name.startswith("closure #") else name
            chain += re.findall(r"(?:^|[ .])(leaf|suspends|nested|child|group|resumed|hop|visits|main|closure)\(", name)
        text = without_inlined(" < ".join(chain))
        calls, size = found.get(text, (0, 0))
        found[text] = (calls + stack.calls, size + stack.bytes)
    return found


@pytest.mark.engines("preload")
@pytest.mark.parametrize("configuration", ["debug", "release"])
def test_async(run, allocprof, swift, tmp_path, configuration):
    """What awaits what is as the program says."""
    said = run([allocprof, "record", "-q", "-o", tmp_path / "data", "--demangle-command", shlex.join(demangler(swift)), "--",
                swift / "lib" / "ld-linux-x86-64.so.2", "--library-path", swift / "lib", swift / f"chains-{configuration}"], expect=0).stdout.decode()
    truth = {}
    for line in said.splitlines():
        size, _, text = without_inlined(line).partition(": ")
        calls, total = truth.get(text, (0, 0))
        truth[text] = (calls + 1, total + int(size))
    found = chains(Named(tmp_path / "data"))
    wrong = {text: (found.get(text), truth.get(text)) for text in {**found, **truth} if found.get(text) != truth.get(text)}
    assert not wrong, f"{wrong}: (found, said)"
    folded = run([allocprof, "folded", "--no-comm", tmp_path / "data"], expect=0).stdout.decode()
    assert "visits(_:_:)_[async];Counter.hop(_:_:)" in folded.replace("(_:_:) [async]", "(_:_:)_[async]")


def by_type(run, allocprof, data):
    report = json.loads(run([allocprof, "report", "--json", "--top=0", "--by=type", data], expect=0).stdout)
    found = {}
    for stack in report["stacks"]:
        name = report["frames"][stack["frames"][0]]["name"]
        found[name] = found.get(name, 0) + stack["all"]["allocations"]
    return found


def test_inlined(recording, swift):
    assert_as_addr2line(recording, swift / "shapes", swift / "shapes", column="symbol")


@pytest.mark.engines("preload")
@pytest.mark.parametrize("live", [[], ["--live"]], ids=["plain", "live"])
@pytest.mark.parametrize("configuration", ["debug", "release"])
def test_package(run, allocprof, swift, tmp_path, configuration, live):
    """Regions and figures by the package of bindings/swift: what the program knows, reads and stat prints is the same."""
    command = [swift / "lib" / "ld-linux-x86-64.so.2", "--library-path", swift / "lib", swift / f"regions-{configuration}"]
    report, result = test_regions.stat(run, allocprof, tmp_path, live, command)
    del report["regions"]["warm_up"]
    test_regions.assert_regions(report, test_regions.own_figures(result.stdout), live)
    read = test_figures.read_by_program(result.stdout)
    for name, region in report["regions"].items():
        test_figures.assert_equal(read[name], region, live)
    # Three of nest(), ten of recurse(), and one in no region.
    assert read["thread"]["allocations"] == 14 and read["thread"]["live"] == 0
    assert read["misspelt"]["answer"] == test_figures.NOT_BEGUN
    assert set(test_figures.answers(test_figures.read_by_program(run(command, expect=0).stdout)).values()) == {test_figures.NOBODY}


def test_package_by_probes(run, allocprof, swift, tmp_path):
    """The program is told why it reads nothing."""
    command = [swift / "lib" / "ld-linux-x86-64.so.2", "--library-path", swift / "lib", swift / "regions-release"]
    result = run([allocprof, "stat", "--engine=uprobe", "--expect", command[-1], "--", *command], expect=0)
    assert set(test_figures.answers(test_figures.read_by_program(result.stdout)).values()) == {test_figures.PROBES}


@pytest.mark.engines("preload")
def test_tasks(run, allocprof, swift, tmp_path):
    """1,000 tasks that four threads resume, among others: each task's figures are its own, and what the runtime allocates for its
    suspensions, which is the same for equally many; the region has their sum."""
    command = [swift / "lib" / "ld-linux-x86-64.so.2", "--library-path", swift / "lib", swift / "tasks-release"]
    report, result = test_regions.stat(run, allocprof, tmp_path, [], command)
    *answers, total = result.stdout.decode().splitlines()
    more = [re.fullmatch(r"(\d) suspensions: (\d+) more", answer).groups() for answer in answers]
    assert [int(suspensions) for suspensions, _ in more] == [5, 6, 7]
    assert report["complete"] and report["regions_complete"]
    region = report["regions"]["task"]
    assert total == f"sum allocations={region['allocations']} deallocations={region['deallocations']}"
    assert region["allocations"] > 1000 * 6 * 25
    assert run(command, expect=0).stdout.startswith(b"5 suspensions: nobody\n")


# What the functions of each count are, but for those that call others of them.
COUNTED = {
    "swift-retain": ["swift_retain", "swift_retain_n", "swift_tryRetain", "swift_allocEmptyBox"],
    "swift-release": ["swift_release", "swift_release_n"],
    "swift-object": ["swift_allocObject", "swift_allocBox", "swift_bufferAllocate"],
}


def referenced(run, allocprof, swift, tmp_path, n, *options):
    command = [swift / "lib" / "ld-linux-x86-64.so.2", "--library-path", swift / "lib", swift / "references", str(n)]
    report, _ = test_regions.stat(run, allocprof, tmp_path, ["--allocator", "swift", *options], command)
    assert report["complete"] and report["lost"]["total"] == 0
    return {name: report["functions"][f"{name}.count"]["calls"] for name in COUNTED}, report


@pytest.mark.engines("uprobe", "preload")
def test_references(run, runner, allocprof, swift, tmp_path, engine):
    """Retains, releases and objects of four threads, also those within the runtime, are as the kernel counts them in the same run."""
    names = [name for functions in COUNTED.values() for name in functions]
    with support.EveryHit(runner, swift / "lib" / "libswiftCore.so", names) as hits:
        calls, _ = referenced(run, allocprof, swift, tmp_path, 1000)
        by_kernel = hits.read()
    assert calls == {name: sum(by_kernel[function] for function in functions) for name, functions in COUNTED.items()}, by_kernel
    more, _ = referenced(run, allocprof, swift, tmp_path, 1500, "--live")
    assert more["swift-object"] - calls["swift-object"] == 4 * 500
    assert calls["swift-release"] > calls["swift-retain"] > 4 * 1000


@pytest.mark.engines("preload")
def test_references_are_no_allocations(run, allocprof, swift, tmp_path):
    _, report = referenced(run, allocprof, swift, tmp_path, 1000)
    command = [swift / "lib" / "ld-linux-x86-64.so.2", "--library-path", swift / "lib", swift / "references", "1000"]
    alone, _ = test_regions.stat(run, allocprof, tmp_path, [], command)
    assert {name: alone[name] for name in ("allocations", "deallocations", "bytes_allocated")} == \
        {name: report[name] for name in ("allocations", "deallocations", "bytes_allocated")}


@pytest.mark.engines("uprobe", "preload")
def test_who_retains(run, allocprof, swift, tmp_path, engine):
    run([allocprof, "record", "-o", tmp_path / "data", "--allocator", "swift", "--", swift / "lib" / "ld-linux-x86-64.so.2",
         "--library-path", swift / "lib", swift / "references", "1000"], expect=0)
    folded = run([allocprof, "folded", "--cost=allocations", "--where", "function = 'swift-retain.count'", tmp_path / "data"],
                 expect=0).stdout.decode()
    assert sum(int(line.rpartition(" ")[2]) for line in folded.splitlines() if "work" in line) >= 4 * 1000


@pytest.mark.engines("preload")
def test_story(run, allocprof, swift, tmp_path, monkeypatch):
    """docs/ci.md: from the failing test to the line, by the commands that are there, without privileges."""
    monkeypatch.setenv("PATH", str(pathlib.Path(allocprof).parent), prepend=":")
    engine, before, after, why = documented("From the failing test to the line", 0)
    assert engine == "export ALLOCPROF_ENGINE=preload"
    monkeypatch.setenv("ALLOCPROF_ENGINE", "preload")

    def do(command, expect):
        return run([*conftest.WITHOUT_PRIVILEGES, "sh", "-c", command], cwd=tmp_path, expect=expect)

    shutil.copy(swift / "callbacks", tmp_path / "callbacks")
    do(before, expect=0)
    do(after, expect=0)
    shutil.copy(swift / "callbacks-regression", tmp_path / "callbacks")
    said = do(after, expect=1).stderr.decode()
    lines = (SWIFT / "callbacks.swift").read_text().splitlines()
    line, = [number for number, text in enumerate(lines, 1) if text.endswith("// the regression")]
    assert "lots_of_callbacks: total_allocations 76,103, over the limit of 43,150 by 32,953" in said
    first = said.partition("only in AFTER: +33,000\n")[2].split("\n\n")[1].splitlines()
    assert first[1].strip() == "malloc" and f"callbacks.swift:{line})" in first[2], said
    said = do(why, expect=0).stdout.decode()
    assert re.search(r"Allocations grew by 33,000, 76.6 %: 43,103 to 76,103, most in \S*succeed\S*: \+22,000", said), said
