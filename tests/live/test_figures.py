# SPDX-License-Identifier: GPL-3.0-or-later
"""Figures that a program reads itself, by allocprof_read() of include/allocprof.h: those of stat in the same run."""

import re
import shutil

import pytest

import support
from support import SOURCE, Obedient, TIMEOUT_SECONDS, read_report, unavailable

PRELOAD = pytest.mark.engines("preload")
NOBODY, COUNTS, LIVE, PROBES, NO_REGIONS, INCOMPLETE, NOT_BEGUN = 0, 1, 2, -1, -2, -3, -4
READ = {"REGIONS_READ": "1"}
EXAMPLES = SOURCE / "examples" / "figures"


def read_by_program(printed):
    """What the target says that it has read, by region, and as "process"."""
    return {name: {key: int(value) for key, value in re.findall(r"(\w+)=(-?\d+)", rest)}
            for name, rest in re.findall(r"^read (\w+) (.*)$", printed.decode(), re.M)}


def stat(run, allocprof, tmp_path, *words, expect=0):
    output = tmp_path / "stat.json"
    result = run([allocprof, "stat", "--json", "-o", output, *words], env=READ, expect=expect)
    return read_report(output), read_by_program(result.stdout), result


def assert_equal(read, reported, live):
    keys = ["allocations", "reallocations", "deallocations"]
    if live:
        keys += ["bytes_allocated", "bytes_reallocated", "bytes_deallocated"]
    assert {key: read[key] for key in keys} == {key: reported[key] for key in keys}
    assert read["live"] == reported["remaining_allocations"]
    if live:
        assert read["live_bytes"] == read["bytes_allocated"] - read["bytes_deallocated"]
    else:
        assert read["bytes_allocated"] + read["bytes_reallocated"] == reported["total_allocated_bytes"]
        assert not any(read[key] for key in ("bytes_deallocated", "live_bytes", "peak_bytes", "temporary"))


@PRELOAD
@pytest.mark.covering(1)
@pytest.mark.fast("preload-O2-live-threads", "preload-O2-plain-nest")
@pytest.mark.parametrize("way", ["nest", "recurse", "jump", "threads", "overlap", "alternate"])
@pytest.mark.parametrize("live", [[], ["--live"]], ids=["plain", "live"])
@pytest.mark.parametrize("level", ["O0", "O2", "O3"])
def test_equal(run, allocprof, target, tmp_path, level, live, way):
    report, read, _ = stat(run, allocprof, tmp_path, *live, "--", target(f"regions_{level}"), way)
    assert report["complete"]
    for name in ("parse", "emit", "write", "a"):
        assert read[name]["answer"] == (NOT_BEGUN if not read[name]["entered"] else LIVE if live else COUNTS)
        assert read[name]["entered"] == report["regions"][name]["entered"]
        assert_equal(read[name], report["regions"][name], live)
        assert not any(read[name][key] for key in ("peak_bytes", "temporary", "temporary_bytes"))
    assert read["process"]["answer"] == (LIVE if live else COUNTS)
    assert read["process"]["entered"] == 0
    assert_equal(read["process"], report, live)
    if live:
        for key in ("live", "live_bytes", "peak_bytes", "temporary", "temporary_bytes"):
            assert read["process"][key] == report[key], key


@PRELOAD
def test_within(run, allocprof, target, tmp_path):
    """A part of the run is measured, and read."""
    report, read, _ = stat(run, allocprof, tmp_path, "--live", "--within", "nest", "--", target("regions_O0"), "jump")
    assert report["regions"]["write"]["allocations"] == 24
    for name in ("parse", "emit", "write"):
        assert_equal(read[name], report["regions"][name], True)
    assert_equal(read["process"], report, True)


@PRELOAD
def test_forked(run, allocprof, target, tmp_path):
    """A process has figures of its own: those of its children are not in them."""
    report, read, _ = stat(run, allocprof, tmp_path, "--", target("regions_O2"), "fork")
    assert read["parse"]["answer"] == COUNTS
    assert read["parse"]["allocations"] == 3
    assert report["regions"]["parse"]["allocations"] > 3 and report["regions"]["parse"]["entered"] > read["parse"]["entered"] == 1


def all_zero(read):
    return not any(value for figures in read.values() for key, value in figures.items() if key != "answer")


def answers(read):
    return {name: figures["answer"] for name, figures in read.items()}


def test_nobody(run, target):
    read = read_by_program(run([target("regions_O2"), "nest"], env=READ, expect=0).stdout)
    assert set(answers(read).values()) == {NOBODY} and len(read) == 5 and all_zero(read)


def test_probes(run, allocprof, target, tmp_path):
    """Where probes count the program is told so; regions are counted as without."""
    report, read, _ = stat(run, allocprof, tmp_path, "--engine=uprobe", "--", target("regions_O2"), "nest")
    assert set(answers(read).values()) == {PROBES} and len(read) == 5 and all_zero(read)
    assert report["regions_complete"] and report["regions"]["parse"]["entered"] == 2
    assert report["complete"]
    # Nothing is set at marks by record.
    result = run([allocprof, "record", "--engine=uprobe", "-o", tmp_path / "x.data", "--", target("regions_O2"), "nest"], env=READ,
                 expect=0)
    assert set(answers(read_by_program(result.stdout)).values()) == {NOBODY}


def test_probes_in_static_program(run, allocprof, tmp_path):
    """The same where no library can be loaded."""
    run(["gcc", "-O2", "-static", "-I", SOURCE / "include", SOURCE / "tests/targets/regions.c", "-pthread",
         "-o", tmp_path / "regions"], expect=0)
    _, read, _ = stat(run, allocprof, tmp_path, "--engine=uprobe", "--", tmp_path / "regions", "nest")
    assert set(answers(read).values()) == {PROBES} and all_zero(read)


@PRELOAD
def test_record(run, allocprof, target, tmp_path):
    """record counts no regions, and says so; of the process it knows the figures."""
    for live, answer in ([], COUNTS), (["--live"], LIVE), (["--live", "--sample=1"], COUNTS):
        result = run([allocprof, "record", *live, "-o", tmp_path / "x.data", "--", target("regions_O2"), "nest"],
                     env=READ, expect=0)
        read = read_by_program(result.stdout)
        assert answers(read) == {"parse": NO_REGIONS, "emit": NO_REGIONS, "write": NO_REGIONS,
                                 "a": NO_REGIONS, "process": answer}
        assert read["process"]["allocations"] == 6 and read["parse"]["allocations"] == 0


@PRELOAD
@pytest.mark.parametrize("way", ["deep", "sets"])
def test_incomplete(run, allocprof, target, tmp_path, way):
    """What stat reports as missing from regions, the reading does not call exact."""
    report, read, _ = stat(run, allocprof, tmp_path, "--", target("regions_O0"), way)
    assert not report["regions_complete"]
    assert answers(read) == {"parse": INCOMPLETE, "emit": INCOMPLETE, "write": INCOMPLETE, "a": INCOMPLETE,
                             "process": COUNTS}


@PRELOAD
def test_attached(runner, allocprof, target, tmp_path):
    """With -p the program reads what was counted since allocprof came."""
    output = tmp_path / "stat.json"
    obedient = Obedient(runner, [target("regions_O2"), "obey"], env=READ)
    process = runner.start([allocprof, "stat", "--live", "--json", "-o", output, "-p", str(obedient.pid)])
    support.wait_until_counting(allocprof, process)
    obedient.ask("end")
    obedient.ask("nest")
    obedient.process.stdin.close()
    obedient.process.stdin = None
    printed = obedient.pending + obedient.process.stdout.read()
    assert process.wait(TIMEOUT_SECONDS) == 0
    read, report = read_by_program(printed), read_report(output)
    assert read["parse"]["answer"] == LIVE and read["parse"]["allocations"] == 4
    for name in ("parse", "emit", "write"):
        assert_equal(read[name], report["regions"][name], True)


OTHER_SIZES = r"""
#include <assert.h>
#include <string.h>
#include <allocprof.h>
int allocprof_read_(const char *region, void *out, unsigned long bytes) __attribute__((weak));
int main(void)
{
	/* An older program's struct, and one with fields that this library does not know. */
	unsigned long long older[4] = { 7, 7, 7, 7 }, newer[64];

	free(malloc(100));
	memset(newer, 0, sizeof(newer));
	assert(allocprof_read_(0, older, 3 * sizeof(older[0])) == 1);
	assert(older[0] >= 1 && older[1] == 0 && older[2] >= 1 && older[3] == 7);
	assert(allocprof_read_(0, newer, sizeof(newer)) == 1);
	assert(newer[0] == older[0]);
	for (unsigned i = sizeof(struct allocprof_figures) / 8; i < 64; i++)
		assert(newer[i] == 0);
	return 0;
}
"""


@PRELOAD
def test_other_sizes(run, allocprof, compiled):
    """Programs and libraries of different ages read what both know."""
    program = compiled("#include <stdlib.h>\n" + OTHER_SIZES, "-I", SOURCE / "include")
    run([allocprof, "stat", "--", program], expect=0)


FIRST = r"""
#include "allocprof.h"
int other(struct allocprof_figures *figures);
int main(void)
{
	struct allocprof_figures figures, before;
	int answer = allocprof_read(0, &before), misspelt = allocprof_read("parze", &before);

	if (other(&figures) != answer || figures.allocations || figures.entered != (answer > 0))
		return 9;
	if (misspelt != (answer > 0 ? ALLOCPROF_READ_NOT_BEGUN : answer))
		return 8;
	return answer < 0 ? 10 - answer : answer;
}
"""
SECOND = r"""
#include "allocprof.h"
int other(struct allocprof_figures *figures);
int other(struct allocprof_figures *figures)
{
	ALLOCPROF_REGION("parse");
	return allocprof_read("parse", figures);
}
"""
STANDARDS = {"c": ["c99", "c11", "c17", "c2x"], "cc": ["c++11", "c++14", "c++17", "c++20"]}


@pytest.mark.fast("c-gcc-c11", "cc-clang++-c++20")
@pytest.mark.parametrize("suffix, compiler, standard", [
    (suffix, compiler, standard) for suffix, compilers in (("c", ("gcc", "clang")), ("cc", ("g++", "clang++")))
    for compiler in compilers for standard in STANDARDS[suffix]])
def test_header(run, allocprof, tmp_path, suffix, compiler, standard):
    """Without a warning, in programs of several files, with nothing to link with, and however that is linked."""
    sources = [tmp_path / f"{name}.{suffix}" for name in ("first", "second")]
    for source, text in zip(sources, (FIRST, SECOND)):
        source.write_text(text)
    for options in (["-O0"], ["-O2"], ["-O2", "-fno-pie", "-no-pie"], ["-O2", "-masm=intel"], ["-O1", "-static"]):
        run([compiler, f"-std={standard}", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror", *options,
             "-I", SOURCE / "include", *sources, "-o", tmp_path / "program"], expect=0)
        run([tmp_path / "program"], expect=NOBODY)
        if "-static" not in options:
            run([allocprof, "stat", "--engine=preload", "--", tmp_path / "program"], expect=COUNTS)


EXAMPLE_STATUS = {"words": 134, "vector": 1, "text": 101}


@PRELOAD
@pytest.mark.parametrize("name", EXAMPLE_STATUS)
def test_example(run, allocprof, tmp_path, name):
    """Each example passes, and fails where an allocation is planted; unmeasured it says that it did not look."""
    if name == "text" and not shutil.which("rustc"):
        unavailable("rustc is not installed")
    shutil.copytree(EXAMPLES, tmp_path / "figures", ignore=lambda _, names: set(names) & set(EXAMPLE_STATUS))
    make = ["make", "-C", tmp_path / "figures", name, f"CPPFLAGS=-I{SOURCE / 'include'} -Wall -Wextra -Werror",
            f"BINDINGS={SOURCE / 'bindings'}"]
    run(make, expect=0)
    program = tmp_path / "figures" / name
    result = run([allocprof, "stat", "--", program], expect=0)
    assert b"allocated 0 times" in result.stdout
    assert run([program], expect=0).stdout.startswith(b"allocations not checked: ")
    planted = {"words": "CFLAGS=-DREGRESSION", "vector": "CXXFLAGS=-DREGRESSION", "text": "RUSTFLAGS=--cfg regression"}
    if name == "words":
        # The region is renamed where it is begun.
        source = tmp_path / "figures" / "words.c"
        text = source.read_text()
        source.write_text(text.replace('REGION("count_words")', 'REGION("words")'))
        run([*make, "-B"], expect=0)
        result = run([allocprof, "stat", "--", program], expect=134)
        assert b"answer != ALLOCPROF_READ_NOT_BEGUN" in result.stderr
        source.write_text(text)
    run([*make, "-B", planted[name]], expect=0)
    run([allocprof, "stat", "--", program], expect=EXAMPLE_STATUS[name])
