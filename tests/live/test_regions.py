# SPDX-License-Identifier: GPL-3.0-or-later
"""Regions that a program marks: what stat counts in each is what the program counts itself, as
stats_alloc does (tests/targets/regions.h)."""

import html
import json
import os
import pathlib
import shutil
import signal

import pytest

from support import SOURCE, Obedient, TIMEOUT_SECONDS, command_of, figures, read_report, unavailable, wait_until, wait_until_counting

WAYS = ["nest", "recurse", "leave", "jump", "overlap", "threads", "fork", "exec", "alternate",
        "alternate_above"]
LEVELS = ["O0", "O2", "O3"]
ENGINES = pytest.mark.engines("uprobe", "preload")
LIVE = pytest.mark.parametrize("live", [[], ["--live"]], ids=["plain", "live"])


def own_figures(printed):
    """What the target printed of itself, by region."""
    lines = (line.split(" ", 1) for line in printed.decode().splitlines() if "=" in line and not line.startswith("read "))
    return {name: figures(rest) for name, rest in lines}


def stat(run, allocprof, tmp_path, options, argv, status=0):
    output = tmp_path / "stat.json"
    result = run([allocprof, "stat", "--json", "-o", output, *options, "--", *argv], expect=status)
    return read_report(output), result


def expected_of(own, live, knows_bytes=True):
    expected = {name: own[name] for name in ("entered", "allocations", "reallocations",
                                             "deallocations")}
    expected["total_allocations"] = own["allocations"] + own["reallocations"]
    expected["remaining_allocations"] = own["allocations"] - own["deallocations"]
    if knows_bytes:
        expected["total_allocated_bytes"] = own["asked"]
        expected["bytes_allocated"] = own["allocated"]
    if knows_bytes and live:
        expected["bytes_allocated"] += own["grown"]
        expected["bytes_deallocated"] = own["freed"] + own["shrunk"]
        expected["bytes_reallocated"] = own["grown"] - own["shrunk"]
        expected["failed"] = 0
    return expected


def assert_regions(report, own, live, knows_bytes=True):
    """The regions that were entered have these figures, and no others were."""
    entered = {name for name, region in report["regions"].items() if region["entered"]}
    assert entered == set(own)
    for name, figures_of in own.items():
        expected = expected_of(figures_of, live, knows_bytes)
        region = report["regions"][name]
        assert {key: region[key] for key in expected} == expected, name
    assert report["regions_complete"], report["regions_gaps"]
    assert report["complete"], {key: report[key] for key in (
        "lost", "mappings_lost", "processes_unfollowed", "untracked", "allocators") if key in report}


SOURCE_TEXT = r"""
#define LINE  "\n.balign 1"
#define LINES LINE LINE LINE LINE LINE LINE LINE LINE LINE LINE LINE LINE LINE LINE LINE LINE LINE LINE LINE LINE LINE "\n"
#include "allocprof.h"
#ifdef PLAIN
#undef ALLOCPROF_NOTE_
/* As many lines: gcc takes each for an instruction, clang each that is not empty. And no two alike, which are merged. */
#define ALLOCPROF_NOTE_(provider, name, arguments) \
	__asm__ __volatile__("nop # " provider " " #name LINES ::: "memory")
#endif
int work(int n);
int work(int n)
{
	ALLOCPROF_REGION("work");
	if (n > 2)
		return work(n - 1);
	for (int i = 0; i < n; i++) {
		ALLOCPROF_REGION("loop");
		if (i == 1)
			break;
	}
	ALLOCPROF_BEGIN("rest");
	n++;
	ALLOCPROF_END("rest");
	return n;
}
"""
COMPILERS = {
    "c": ("gcc", "clang", ["c99", "c11", "c17", "c2x"]),
    "cc": ("g++", "clang++", ["c++11", "c++14", "c++17", "c++20"]),
}


@pytest.mark.fast("c-gcc-c11", "cc-clang++-c++20")
@pytest.mark.parametrize("suffix, compiler, standard", [
    (suffix, compiler, standard) for suffix, (*compilers, standards) in COMPILERS.items()
    for compiler in compilers for standard in standards])
def test_header(run, tmp_path, suffix, compiler, standard):
    """It compiles without a warning, and of the note nothing is in the code but a nop."""
    source = tmp_path / f"work.{suffix}"
    source.write_text(SOURCE_TEXT)
    for level in ("-O0", "-O2"):
        code = []
        for define in ("-UPLAIN", "-DPLAIN"):
            run([compiler, f"-std={standard}", level, "-Wall", "-Wextra", "-Wpedantic", "-Wshadow",
                 "-Werror", define, "-I", SOURCE / "include", "-c", source,
                 "-o", tmp_path / "work.o"], expect=0)
            run(["objcopy", "-O", "binary", "-j", ".text", tmp_path / "work.o",
                 tmp_path / "code"], expect=0)
            code.append((tmp_path / "code").read_bytes())
        assert code[0] == code[1] and code[0]


@pytest.mark.covering(2)
@ENGINES
@pytest.mark.fast("nest-O2-plain", "threads-O3-live", "jump-O0-live", "preload-jump-O2-live",
                  "preload-fork-O2-plain", "preload-alternate-O3-live")
@LIVE
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("way", WAYS)
def test_ways(run, allocprof, target, tmp_path, way, level, live):
    report, result = stat(run, allocprof, tmp_path, live, [target(f"regions_{level}"), way])
    assert_regions(report, own_figures(result.stdout), live)


@pytest.mark.covering(1)
@pytest.mark.fast("preload-O2-live")
@ENGINES
@LIVE
@pytest.mark.parametrize("level", LEVELS)
def test_interrupted(run, allocprof, target, tmp_path, level, live):
    """A signal's handler marks a region while marks are being passed: none is lost or stays open."""
    report, result = stat(run, allocprof, tmp_path, live, [target(f"regions_{level}"), "interrupt"])
    rounds = own_figures(result.stdout).pop("rounds")["entered"]
    by_handler = {name: report["regions"].pop(name) for name in ("a", "b")}
    assert [region["entered"] for region in by_handler.values()] == [rounds, rounds]
    assert_regions(report, {name: own for name, own in own_figures(result.stdout).items()
                            if name != "rounds"}, live)
    for region in by_handler.values():
        assert region["allocations"] <= report["regions"]["emit"]["allocations"]


def built(run, directory, *options):
    """The target of other tests, compiled and linked otherwise."""
    program = directory / "regions"
    run(["gcc", "-O2", *options, "-I", SOURCE / "include", SOURCE / "tests/targets/regions.c",
         "-pthread", "-ldl", "-o", program], expect=0)
    return program


@pytest.mark.covering(1)
@pytest.mark.fast("preload-fixed")
@ENGINES
@pytest.mark.parametrize("options", [["-fno-pie", "-no-pie"], ["-static"], ["-static-pie", "-fPIE"],
                                     ["-Wl,-z,now"], ["-masm=intel"]],
                         ids=["fixed", "static", "static-pie", "now", "intel"])
def test_links(run, allocprof, tmp_path, options):
    """However it was linked; with preload uprobes count in static programs."""
    report, result = stat(run, allocprof, tmp_path, [], [built(run, tmp_path, *options), "nest"])
    assert_regions(report, own_figures(result.stdout), False)


DISCARDED = r"""
#include <stdlib.h>
#include "allocprof.h"
void unused(void);
void unused(void)
{
	ALLOCPROF_REGION("unused");
	free(malloc(1));
}
int main(void)
{
	struct allocprof_figures figures;
	ALLOCPROF_REGION("used");
	free(malloc(2));
	return allocprof_read(0, &figures) + 10;
}
"""


@ENGINES
def test_discarded(run, allocprof, compiled, tmp_path, engine):
    """Notes of functions that the linker has left out are none of marks. With lld pages of data are mapped twice."""
    if not shutil.which("ld.lld"):
        unavailable("lld is not installed: scripts/setup --test")
    program = compiled(DISCARDED, "-fuse-ld=lld", "-ffunction-sections", "-Wl,--gc-sections", "-I", SOURCE / "include")
    report, _ = stat(run, allocprof, tmp_path, [], [program], status=11 if engine == "preload" else 9)
    assert report["regions_complete"], report["regions_gaps"]
    assert {name: region["allocations"] for name, region in report["regions"].items()} == {"used": 1}
    run([program], expect=10)


@pytest.mark.engines("preload")
@pytest.mark.fast("preload")
def test_older_header(run, allocprof, tmp_path):
    """Marks that call nothing are named, and the totals are complete."""
    text = (SOURCE / "include/allocprof.h").read_text()
    calls = "#if defined(__x86_64__)"
    assert calls in text
    (tmp_path / "allocprof.h").write_text(text.replace(calls, "#if 0"))
    program = built(run, tmp_path, "-I", tmp_path)
    report, result = stat(run, allocprof, tmp_path, [], [program, "nest"])
    assert report["complete"] and not report["regions_complete"]
    (gap,) = report["regions_gaps"]["files"]
    assert str(program) in gap and "compile it anew" in gap
    assert not any(region["entered"] for region in report["regions"].values())
    assert b"regions not complete" in result.stderr


@pytest.mark.covering(2)
@ENGINES
@pytest.mark.fast("catch-O2-live", "preload-catch-O2-live")
@LIVE
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("way", ["throw", "catch", "lambda"])
def test_cpp(run, allocprof, target, tmp_path, way, level, live):
    report, result = stat(run, allocprof, tmp_path, live, [target(f"regions_throw_{level}"), way])
    # How large an exception is is the C++ library's business.
    assert_regions(report, own_figures(result.stdout), live, knows_bytes=way == "lambda")


@pytest.mark.slow
def test_single_probes(run, allocprof, target, tmp_path):
    report, result = stat(run, allocprof, tmp_path, ["--live", "--inject", "multi=0"],
                          [target("regions_O2"), "nest"])
    assert_regions(report, own_figures(result.stdout), True)


@ENGINES
def test_functions(run, allocprof, target, tmp_path):
    report, _ = stat(run, allocprof, tmp_path, [], [target("regions_O2"), "nest"])
    functions = report["regions"]["write"]["functions"]
    assert functions["realloc"] == {"calls": 2, "bytes": 55}
    assert functions["malloc"] == {"calls": 0, "bytes": 0}


@pytest.mark.covering(1)
@ENGINES
@pytest.mark.fast("live")
@LIVE
def test_library_expected(run, allocprof, target, tmp_path, live):
    """Two regions of one name in two files are one; what is loaded later can be known before."""
    library = target("libregions.so")
    report, result = stat(run, allocprof, tmp_path, [*live, "--expect", library],
                          [target("regions_O2"), "library", library])
    own = own_figures(result.stdout)
    assert own["parse"]["entered"] == 2
    assert_regions(report, own, live)


@pytest.mark.covering(1)
@pytest.mark.fast("preload-plain")
@ENGINES
@LIVE
def test_window_of_ctl(runner, allocprof, target, tmp_path, live):
    """Regions are followed while the window is shut, and counted from when it opens."""
    output = tmp_path / "stat.json"
    obedient = Obedient(runner, [allocprof, "stat", "--paused", *live, "--json", "-o", output, "--",
                                 target("regions_O2"), "obey"])
    obedient.ask("nest")
    runner.run([allocprof, "ctl", "-p", obedient.pid, "start"], expect=0)
    obedient.ask("end")
    obedient.ask("nest")
    obedient.exit()
    regions = read_report(output)["regions"]
    assert [regions[name]["entered"] for name in ("parse", "emit", "write")] == [5, 2, 2]
    assert [regions[name]["allocations"] for name in ("parse", "emit", "write")] == [5, 1, 0]
    assert [regions[name]["reallocations"] for name in ("parse", "emit", "write")] == [2, 2, 2]


@pytest.mark.covering(1)
@pytest.mark.fast("plain", "preload-live")
@ENGINES
@LIVE
def test_within(run, allocprof, target, tmp_path, live):
    """Calls count that are both within the function and in the region; nest() runs 6 times."""
    report, _ = stat(run, allocprof, tmp_path, [*live, "--within", "nest"],
                     [target("regions_O0"), "jump"])
    regions = report["regions"]
    assert [regions[name]["allocations"] for name in ("parse", "emit", "write")] == [24, 6, 24]
    assert [regions[name]["reallocations"] for name in ("parse", "emit", "write")] == [12, 12, 12]
    assert [regions[name]["deallocations"] for name in ("parse", "emit", "write")] == [24, 6, 24]
    assert report["regions_complete"]


@pytest.mark.fast("preload")
@ENGINES
def test_reset(runner, allocprof, target, tmp_path):
    """What was counted before is forgotten; a region that was begun before is still open."""
    output = tmp_path / "stat.json"
    obedient = Obedient(runner, [allocprof, "stat", "--json", "-o", output, "--",
                                 target("regions_O2"), "obey"])
    obedient.ask("nest")
    runner.run([allocprof, "ctl", "-p", obedient.pid, "reset"], expect=0)
    obedient.ask("end")
    obedient.ask("nest")
    obedient.exit()
    regions = read_report(output)["regions"]
    assert [regions[name]["entered"] for name in ("parse", "emit", "write")] == [2, 1, 1]
    assert [regions[name]["allocations"] for name in ("parse", "emit", "write")] == [5, 1, 0]


@pytest.mark.engines("preload")
def test_memory_given_back(runner, allocprof, target, tmp_path):
    """What ended processes have counted is added up before their memory is given back."""
    program = target("regions_O2")
    command = f"echo ready; read line; for i in 1 2 3; do {program} fork >/dev/null; done; echo looped; read line; {program} fork"
    output = tmp_path / "stat.json"
    obedient = Obedient(runner, [allocprof, "stat", "--json", "-o", output, "--expect", program, "--", "sh", "-c", command])
    maps = pathlib.Path(f"/proc/{command_of(obedient.pid)}/maps").read_text()
    memory, = {line.split()[-1] for line in maps.splitlines() if line.endswith("/memory")}
    before = os.stat(memory).st_blocks
    obedient.process.stdin.write(b"\n")
    obedient.process.stdin.flush()
    obedient.expect_line("looped")
    # Each of the three has taken 28 KiB, and leaves 12.
    wait_until(lambda: os.stat(memory).st_blocks * 512 <= before * 512 + 3 * (16 << 10), "memory is given back")
    lines, _ = obedient.process.communicate(b"\n", TIMEOUT_SECONDS)
    own = own_figures(lines)
    assert_regions(read_report(output), {name: {figure: 4 * value for figure, value in of.items()}
                                         for name, of in own.items()}, False)


def test_library_met_late(run, allocprof, target, tmp_path):
    """It is said that regions of it may be missing; the totals are complete."""
    library = target("libregions.so")
    report, _ = stat(run, allocprof, tmp_path, [], [target("regions_O2"), "library", library])
    assert report["complete"] and not report["regions_complete"]
    (gap,) = report["regions_gaps"]["files"]
    assert library in gap and "--expect" in gap


@ENGINES
def test_many_processes(run, allocprof, target, tmp_path):
    """Each process has regions of its own; the shell has none."""
    program = target("regions_O2")
    command = f"{program} nest & {program} recurse & wait"
    report, result = stat(run, allocprof, tmp_path, ["--expect", program], ["sh", "-c", command])
    sums = {}
    for line in result.stdout.decode().splitlines():
        name, rest = line.split(" ", 1)
        for figure, value in figures(rest).items():
            sums.setdefault(name, {}).setdefault(figure, 0)
            sums[name][figure] += value
    assert_regions(report, sums, False)


def test_attached_within(runner, allocprof, target, tmp_path):
    """A region that was begun before is not known; the next one is, also of another program."""
    obedient = Obedient(runner, [target("regions_O2"), "obey"])
    output = tmp_path / "stat.json"
    process = runner.start([allocprof, "stat", "--json", "-o", output, "-p", str(obedient.pid)])
    wait_until_counting(allocprof, process)
    obedient.ask("end")
    obedient.ask("nest")
    process.send_signal(signal.SIGINT)
    assert process.wait(TIMEOUT_SECONDS) == 0
    obedient.exit()
    regions = read_report(output)["regions"]
    assert [regions[name]["entered"] for name in ("parse", "emit", "write")] == [2, 1, 1]
    assert [regions[name]["allocations"] for name in ("parse", "emit", "write")] == [4, 1, 0]


@pytest.mark.covering(2)
@ENGINES
@pytest.mark.fast("deep-depth", "preload-sets-sets")
@pytest.mark.parametrize("way, gap", [("deep", "depth"), ("sets", "sets")])
def test_gaps(run, allocprof, target, tmp_path, way, gap):
    """What there is no room for is counted, and said."""
    program = target("regions_O0")
    report, result = stat(run, allocprof, tmp_path, [], [program, way])
    assert not report["regions_complete"] and report["complete"]
    assert report["regions_gaps"][gap] == {"deep": 4, "sets": 2 * (127 - 63)}[way]
    assert b"regions not complete" in result.stderr
    if way == "sets":
        got = sum(region["functions"]["malloc"]["calls"] for region in report["regions"].values())
        lost = sum(bin(number).count("1") for number in range(64, 128))
        assert got == 7 * 64 - lost
    text = run([allocprof, "stat", "--", program, way], expect=0).stderr.decode()
    assert "regions not complete: " in text


def test_no_room_for_threads(run, allocprof, target, tmp_path):
    report, _ = stat(run, allocprof, tmp_path, ["--inject", "threads=1"],
                     [target("regions_O2"), "threads"])
    assert report["regions_gaps"]["threads"] and not report["regions_complete"]


def test_window(run, allocprof, target, tmp_path):
    """Regions are followed while the window is shut, and counted where it is open."""
    report, _ = stat(run, allocprof, tmp_path,
                     ["--start-on", "sdt:allocprof_begin:write", "--stop-on",
                      "sdt:allocprof_end:write"], [target("regions_O2"), "nest"])
    assert report["total_allocations"] == 2
    assert {name: region["total_allocations"] for name, region in report["regions"].items()
            if region["total_allocations"]} == {"parse": 2, "emit": 2, "write": 2}


@ENGINES
def test_none(run, allocprof, target, tmp_path):
    """Without marks nothing is said of regions."""
    report, _ = stat(run, allocprof, tmp_path, [], [target("every_function")], 3)
    assert not [key for key in report if "region" in key]


@ENGINES
def test_text(run, allocprof, target):
    text = run([allocprof, "stat", "--live", "--", target("regions_O2"), "nest"],
               expect=0).stderr.decode()
    assert text.index("Region 'emit', entered 1 time:") < \
        text.index("Region 'parse', entered 2 times:") < text.index("seconds elapsed")
    assert "Regions that were not entered: a, b, c, d, e, f, g" in text


@ENGINES
@pytest.mark.slow
def test_series(run, allocprof, target, tmp_path):
    output = tmp_path / "series.json"
    result = run([allocprof, "stat", "--json", "-o", output, "-r", 3, "--warmup", 0, "--per", 2,
                  "--", target("regions_O2"), "nest"], expect=0)
    report = json.loads(output.read_text())
    own = own_figures(result.stdout)["parse"]
    parse = report["regions"]["parse"]
    allocations = own["allocations"] / 2
    assert parse["figures"]["allocations"] == {
        "min": allocations, "median": allocations, "max": allocations, "spread": 0, "same": True}
    assert parse["functions"]["malloc"]["median"] == allocations
    assert report["regions_complete"]
    assert all(run["regions"]["parse"]["allocations"] == own["allocations"]
               for run in report["runs"])
    text = run([allocprof, "stat", "-r", 2, "--", target("regions_O2"), "nest"], expect=0)
    assert b"Region 'parse':" in text.stderr


@pytest.mark.covering(1)
@ENGINES
@pytest.mark.fast("threads")
@pytest.mark.parametrize("way", ["nest", "threads", "jump", "fork"])
def test_no_harm(run, allocprof, target, way):
    """The same output and status with probes at the marks and without."""
    argv = [target("regions_O2"), way]
    alone = run(argv, expect=0)
    probed = run([allocprof, "stat", "--", *argv], expect=0)
    assert probed.stdout == alone.stdout


def check(run, allocprof, tmp_path, test, *options, expect=0):
    budget = tmp_path / "budget.json"
    if test:
        budget.write_text(json.dumps({"tests": {"t": {"runs": 2, "warmup": 0, **test}}}))
    result = run([allocprof, "check", "--budget", budget, *options], expect=expect)
    return result.stderr.decode(), json.loads(budget.read_text())["tests"]["t"]


@ENGINES
@pytest.mark.slow
def test_check(run, allocprof, target, tmp_path):
    command = [target("regions_O2"), "nest"]
    own = own_figures(run(command).stdout)
    said, test = check(run, allocprof, tmp_path, {"command": command, "regions": {
        "parse": {}, "emit": {"total_allocations": {"max": 1000, "min": 900}}}}, "--update")
    assert said.startswith("updated")
    total = own["parse"]["allocations"] + own["parse"]["reallocations"]
    assert test["regions"]["parse"] == {"total_allocations": {"max": total, "min": total}}
    emit = own["emit"]["allocations"] + own["emit"]["reallocations"]
    assert test["regions"]["emit"] == {"total_allocations": {"max": emit, "min": emit}}
    assert "total_allocations" not in test

    said, _ = check(run, allocprof, tmp_path, None, "--junit", tmp_path / "junit.xml")
    assert said.startswith("within") and f"in region 'parse' total_allocations {total}" in said
    assert "in region 'parse'" in html.unescape((tmp_path / "junit.xml").read_text())


@pytest.mark.covering(1)
@ENGINES
@pytest.mark.slow
@pytest.mark.parametrize("limit, status, words", [
    ({"parse": {"total_allocations": {"max": 1}}}, 1, "in region 'parse' total_allocations"),
    ({"parse": {"total_allocated_bytes": {"min": 10**6}}}, 3, "under the lower limit"),
    ({"parse": {"remaining_bytes": {"max": 0}, "remaining_allocations": {"max": 0}}}, 0,
     "in region 'parse' remaining_bytes 0"),
    ({"a": {"total_allocations": {"max": 1}}}, 5, "did not enter the region 'a'"),
    ({"prase": {"total_allocations": {"max": 1}}}, 5, "no region 'prase'; it has 'a', 'b'"),
    ({"parse": {"peak_bytes": {"max": 1}}}, 2, "region 'parse', \"peak_bytes\": unknown key"),
    ({"parse": 3}, 2, "region 'parse': it has to be an object"),
    ({}, 2, "a key for each region"),
], ids=["over", "stale", "within", "not-entered", "unknown", "peak", "no-object", "empty"])
def test_check_judges(run, allocprof, target, tmp_path, limit, status, words):
    said, _ = check(run, allocprof, tmp_path, {
        "command": [target("regions_O2"), "nest"], "regions": limit}, "--strict-limits", expect=status)
    assert words in said


@ENGINES
@pytest.mark.slow
def test_check_incomplete(run, allocprof, target, tmp_path):
    said, _ = check(run, allocprof, tmp_path, {
        "command": [target("regions_O0"), "deep"],
        "regions": {"parse": {"total_allocations": {"max": 100}}}}, expect=4)
    assert "regions were begun within too many others" in said
