# SPDX-License-Identifier: GPL-3.0-or-later
"""Many runs: of a program that always does the same, and of one that does not."""

import json
import os

import pytest

from runs import Runs

pytestmark = pytest.mark.engines("uprobe", "preload")

RUNS = int(os.environ.get("ALLOCPROF_TRIES", 5))
TIMEOUT = 900  # seconds, of a loaded machine


@pytest.mark.parametrize("name, argument", [("request_server_before", "10"), ("every_function", None)])
def test_stat_is_the_same(run, allocprof, target, tmp_path, name, argument):
    words = [target(name), *([argument] if argument else [])]
    run([allocprof, "stat", "-r", RUNS, "--json", "-o", tmp_path / "out", "--", *words],
        timeout=TIMEOUT)
    report = json.loads((tmp_path / "out").read_text())
    assert report["complete"] and len(report["runs"]) == RUNS
    total = report["figures"]["total_allocations"]
    assert total["same"] and total["spread"] == 0 and total["min"] == total["max"] > 0
    assert {one["total_allocations"] for one in report["runs"]} == {total["min"]}


@pytest.mark.parametrize("options", [[], ["--live"]], ids=["plain", "live"])
def test_record_is_the_same(run, allocprof, target, tmp_path, options):
    """To the stack and byte."""
    run([allocprof, "record", "-r", RUNS, *options, "-o", tmp_path / "data", "--",
         target("every_function")], expect=3, timeout=TIMEOUT)
    runs = Runs(tmp_path / "data")
    assert runs.numbers == list(range(1, RUNS + 1))
    assert runs.ledger["lost"] == 0
    first = runs.calls(1)
    assert first and all(runs.calls(number) == first for number in runs.numbers)


def test_what_varies_is_told(run, allocprof, target, tmp_path):
    """By how much, and exactly what each run says of itself."""
    result = run([allocprof, "record", "-r", RUNS, "--warmup", "0", "-o", tmp_path / "data", "--",
                  target("racing")], expect=0, timeout=TIMEOUT)
    said = [int(line) for line in result.stdout.split()]
    runs = Runs(tmp_path / "data")
    assert [runs.callers(number)["allocate"] for number in runs.numbers] == said
    events = sorted(runs.events.values())
    low, median, high = events[0], events[(RUNS - 1) // 2], events[-1]
    expected = f"{RUNS} runs: {low:,} to {high:,} events, median {median:,}, spread {high - low:,}"
    if low == high:
        expected = f"{RUNS} runs: {low:,} events each time"
    assert expected in result.stderr.decode()
    report = json.loads(run([allocprof, "report", "--json", "-i", tmp_path / "data"],
                            expect=0).stdout)
    assert report["runs"]["events"] == {"min": low, "median": median, "max": high}
