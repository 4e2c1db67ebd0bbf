# SPDX-License-Identifier: GPL-3.0-or-later
"""Probes by which a program tells of its own samples (weight= in definitions): bytes and calls are what the samples stand for, within
the error that is stated (tests/targets/weighted.c)."""

import json
import math
import statistics

import pytest

import sampling
from support import SCALE, TARGETS, TIMEOUT_SECONDS, unavailable

RUNS = 50 * SCALE
# Of so many intervals of 95 % that do not depend on each other fewer hold the truth once in 30,000 times.
LEAST_HELD = RUNS * 0.95 - 4.2 * math.sqrt(RUNS * 0.95 * 0.05)
FIRST_SEED = 1001
FIGURES = ("allocations", "bytes", "live", "live_bytes")
USDT = "alloc=otel_memory:alloc(size=arg1, weight=arg2)->arg0, free=otel_memory:free(ptr=arg0)"


@pytest.fixture
def program():
    path = TARGETS / "weighted"
    if not path.exists():
        unavailable(f"{path} is not built: sys/sdt.h is missing, scripts/setup --test")
    return str(path)


def read(run, allocprof, data, *options):
    return json.loads(run([allocprof, "report", "--json", "--top=0", *options, "-i", data], expect=0).stdout)


def by_function(report, which):
    """What `report` says of allocprof's function `which`, by the function of the program that asked."""
    names = [frame["name"] for frame in report["frames"]]
    return {names[stack["frames"][1]]: stack["all"] for stack in report["stacks"]
            if stack["function"] == which and names[stack["frames"][0]].startswith("allocate")}


@pytest.mark.parametrize("size, weight, calls", [
    (100, 1000, 10), (100, 100, 1), (1, 2 ** 20, 2 ** 20), (0, 7, 7), (1 << 20, 5 << 20, 5), (64, 0, 0),
    (1 << 33, 1 << 34, 2)])
@pytest.mark.parametrize("live", [False, True])
def test_whole_numbers(run, allocprof, tmp_path, program, size, weight, calls, live):
    """Weights that are a multiple of the size: nothing is rounded."""
    n, freed = 12, 5
    data = tmp_path / "data"
    run([allocprof, "record", "-q", *(["--live"] if live else []), "--allocator", "otel-memory", "-o", data, "--", program,
         "tell", n, freed, size, weight], expect=0)
    report = read(run, allocprof, data)
    assert report["complete"], report
    told = [stack["all"] for stack in report["stacks"] if stack["function"] == "otel-memory.alloc"]
    sampling.assert_sampled_ledger(report["ledger"])
    if not calls:
        assert not told and report["ledger"]["not_sampled"] == n
        return
    names = ("allocations", "bytes") + (("live", "live_bytes") if live else ())
    kept = n - freed
    assert [{name: row[name] for name in names} for row in told] == [
        dict(zip(names, (n * calls, n * calls * size, kept * calls, kept * calls * size)))]
    error = told[0]["error"]
    assert error["samples"] == n
    deviation = math.sqrt(n * calls * (calls - 1))
    assert error["allocations"] == pytest.approx(sampling.CONFIDENCE * deviation, abs=1)
    # Each factor of a variance of bytes is cut to a multiple of 64.
    assert sampling.CONFIDENCE * deviation * size - error["bytes"] <= sampling.CONFIDENCE * math.sqrt(n) * 64 + 1
    assert error["bytes"] <= sampling.CONFIDENCE * deviation * size + 1


def test_less_than_the_size(run, allocprof, tmp_path, program):
    """A sample that stands for a part of its size is a whole call or none; no number can be too large."""
    data = tmp_path / "data"
    run([allocprof, "record", "-q", "--allocator", "otel-memory", "-o", data, "--", program, "tell", 1000, 0, 1000, 900],
        expect=0)
    report = read(run, allocprof, data)
    [row] = [stack["all"] for stack in report["stacks"] if stack["function"] == "otel-memory.alloc"]
    ledger = report["ledger"]
    assert row["allocations"] == row["error"]["samples"] == ledger["sampled"]
    assert ledger["sampled"] + ledger["not_sampled"] == ledger["events"] == 1000
    # 900 within 6.4 standard deviations of the rounding, which 1 of 6 thousand million runs is not.
    assert abs(row["allocations"] - 900) < 6.4 * math.sqrt(1000 * 0.9 * 0.1)
    assert row["bytes"] == row["allocations"] * 1000


def test_most(run, allocprof, tmp_path, program):
    data = tmp_path / "data"
    run([allocprof, "record", "-q", "--live", "--allocator", "otel-memory", "-o", data, "--", program, "tell", 3, 1, 1 << 30,
         2 ** 64 - 1], expect=0)
    report = read(run, allocprof, data)
    [row] = [stack["all"] for stack in report["stacks"] if stack["function"] == "otel-memory.alloc"]
    assert (row["bytes"], row["live_bytes"]) == (3 << 36, 2 << 36)


def test_others_are_exact(run, allocprof, tmp_path, program):
    """malloc is counted call by call beside the samples, and each caller's figures are in the stated error of it."""
    seed, data = tmp_path / "seed", tmp_path / "data"
    seed.write_text("1\n")
    run([allocprof, "record", "-q", "--live", "--usdt", f"{program}:name=mine, {USDT}", "-o", data, "--", program, seed],
        expect=0)
    report = read(run, allocprof, data)
    assert report["complete"]
    truth, told = by_function(report, "malloc"), by_function(report, "mine.alloc")
    assert truth["keep_small"]["allocations"] == 4000 and truth["keep_small"]["error"]["bytes"] == 0
    assert truth.keys() == told.keys() == {"keep_small", "make_mixed", "churn", "keep_large"}
    text = run([allocprof, "report", "-i", data], expect=0).stdout.decode()
    assert "samples that probes told of count by their weight" in text and "one byte of" not in text


@pytest.mark.slow
def test_runs(run, allocprof, tmp_path, program):
    """What the program samples depends on its seeds alone; the recorder rounds weights at random, which moves a few of the intervals
    by a little. ALLOCPROF_SCALE=4 makes 200 runs of it."""
    seed, data = tmp_path / "seed", tmp_path / "data"
    seed.write_text(f"{FIRST_SEED}\n")
    run([allocprof, "record", "-q", "--live", "--allocator", "otel-memory", "-r", RUNS, "--warmup", 0, "-o", data, "--", program,
         seed], expect=0, timeout=10 * TIMEOUT_SECONDS)
    assert seed.read_text() == f"{FIRST_SEED + RUNS}\n"
    reports = [read(run, allocprof, data, "--run", number) for number in range(1, RUNS + 1)]
    wrong = []
    truth = by_function(reports[0], "malloc")
    for caller, row in truth.items():
        for figure in FIGURES:
            if not row[figure]:
                continue
            rows = [by_function(report, "otel-memory.alloc")[caller] for report in reports]
            values = [of[figure] for of in rows]
            held = sum(abs(of[figure] - row[figure]) <= of["error"][figure] for of in rows)
            mean = statistics.fmean(values)
            of_mean = statistics.stdev(values) / math.sqrt(RUNS)
            print(f"{caller} {figure}: {row[figure]}, mean {mean / row[figure] - 1:+.3%}, "
                  f"{(mean - row[figure]) / of_mean:+.2f} of its deviations, held {held} of {RUNS}")
            if held < LEAST_HELD or abs(mean - row[figure]) > 4 * of_mean:
                wrong.append(f"{caller}, {figure}: {held} of {RUNS} intervals have {row[figure]}, the mean is {mean}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("command, definition, why", [
    ("stat", USDT, "weight= makes estimates of samples"),
    ("check", USDT, "weight= makes estimates of samples"),
    ("record", "alloc=f:a(weight=arg2)->arg0", "weight= needs size="),
    ("record", "free=f:a(ptr=arg0, weight=arg2)", "weight= needs size="),
    ("record", "alloc=f:a(size=arg0, weight=arg2, weight=arg3)", "given twice"),
    ("record --resident", USDT, "weight= and --resident"),
    ("record --reachable", USDT, "weight= and --reachable"),
    ("record --live --allocator mmap", USDT, "weight= and --allocator mmap")],
    ids=["stat", "check", "no-size", "free", "twice", "resident", "reachable", "mmap"])
def test_refused(run, allocprof, tmp_path, program, command, definition, why):
    name, *options = command.split()
    result = run([allocprof, name, *options, "--usdt", f"{program}:{definition}",
                  *(["--budget", tmp_path / "budget", "--name", "x", "--update"] if name == "check" else []), "--", "true"])
    assert result.status == 64 and why in result.stderr.decode() and result.stderr.count(b"\n") == 1, result.stderr


def test_functions_have_no_weight(run, allocprof):
    result = run([allocprof, "record", "--probe", "alloc=f(size=arg0, weight=arg1)", "--", "true"])
    assert result.status == 64 and "weight= is for USDT probes" in result.stderr.decode(), result.stderr
