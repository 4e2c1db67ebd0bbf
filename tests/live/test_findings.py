# SPDX-License-Identifier: GPL-3.0-or-later
"""What report and diff say first, of tests/targets/case_study.c, which plants a leak, what holds the peak, and what
churns; and of recordings that lack something."""

import json
import sqlite3
import sys

import pytest

from support import SOURCE

sys.path.insert(0, str(SOURCE / "tests"))

import data_digest  # noqa: E402

STEPS = 2000
LEAKED = 100 * STEPS
# The blocks of leak_until_end, all live when most was.
PEAK = 200 * STEPS


@pytest.fixture
def record(run, allocprof, target, tmp_path):
    """record(name, options...): a recording of so many steps of a millisecond."""

    def make(name, *options, steps=STEPS):
        data = tmp_path / f"{name}.data"
        run([allocprof, "record", "-q", *options, "-o", data, "--", target("case_study"), str(steps)], expect=0)
        return data

    return make


@pytest.fixture
def said(run, allocprof):
    """said(words): what a command says as JSON, and as text."""

    def read(command, *words):
        text = run([allocprof, command, *words], expect=0).stdout.decode()
        return json.loads(run([allocprof, command, "--json", *words], expect=0).stdout), text

    return read


@pytest.mark.engines("uprobe", "preload")
def test_what_is_planted_is_found(record, said):
    report, text = said("report", record("planted", "--live"))
    found = {finding["kind"]: finding for finding in report["findings"]}
    assert [finding["kind"] for finding in report["findings"]] == ["growing", "peak", "churn", "advice"]
    assert {kind: finding["function"] for kind, finding in found.items()} == {
        "growing": "linear_leak", "peak": "leak_until_end", "churn": "mixture", "advice": "mixture"}
    growing, peak, churn = found["growing"], found["peak"], found["churn"]
    assert (growing["blocks"], growing["bytes"]) == (STEPS, LEAKED)
    # A block of 100 bytes each millisecond.
    assert growing["bytes_per_second"] == pytest.approx(100000, rel=0.2)
    # Of the peak the stacks are known to within a hundredth.
    assert peak["bytes"] == pytest.approx(PEAK, rel=0.01) and peak["whole"] == report["peak_bytes"]
    assert (churn["blocks"], churn["bytes"], churn["whole"]) == (20700, 900000, report["all"]["allocations"])
    head = text[:text.index("\nAllocated: ")]
    for finding in report["findings"]:
        assert f"\n  {finding['function']} {finding['says']}: {finding['detail']}\n" in head


def test_what_is_selected_has_none(record, said):
    """They are of all blocks. What is asked for alone stands alone."""
    data = record("selected", "--live", steps=200)
    for options in (["--thread=case_study"], ["--leaks"], ["--through=mixture"]):
        report, text = said("report", *options, data)
        assert "findings" not in report and " of the peak: " not in text


def test_lost_blocks(record, said):
    """What no pointer leads to is lost: linear_leak forgets its blocks at once."""
    report, _ = said("report", record("lost", "--live", "--reachable"))
    [lost] = [finding for finding in report["findings"] if finding["kind"] == "lost"]
    of_leak = sum(stack["all"][kind] for stack in report["stacks"] for kind in ("lost_bytes", "indirectly_lost_bytes")
                  if report["frames"][stack["frames"][0]]["name"] == "linear_leak")
    assert (lost["function"], lost["bytes"]) == ("linear_leak", of_leak) and lost["bytes_per_second"] > 0
    assert not [finding for finding in report["findings"] if finding["kind"] == "growing" and finding["function"] == "linear_leak"]


def test_resident_memory(record, said):
    report, _ = said("report", record("resident", "--live", "--resident", steps=200))
    [resident] = [finding for finding in report["findings"] if finding["kind"] == "resident"]
    [parts] = [{kind: size for kind, size in process.items() if kind not in ("pid", "comm", "huge", "highest")} for process in report["rss"]]
    assert (resident["bytes"], resident["whole"]) == (parts.pop("blocks"), sum(parts.values()) + resident["bytes"])


def test_what_is_missing_comes_first(record, said):
    data = record("missing", "--live", steps=200)
    with sqlite3.connect(data) as database:
        database.execute("UPDATE ledger SET value = value + 7 WHERE name IN ('events', 'lost', 'lost_ring_full')")
        data_digest.renew(database)
    report, text = said("report", data)
    assert report["findings"][0]["kind"] == "incomplete" and report["findings"][0]["blocks"] == 7
    assert "\n  Not complete: 7 calls are missing, " in text


def test_what_moved(record, said):
    """Costs that moved, each with the function that moved it; none where nothing did."""
    before, after = record("before", "--live", steps=1000), record("after", "--live", steps=2000)
    diff, text = said("diff", before, after)
    moved = {finding["kind"]: finding for finding in diff["findings"]}
    assert {kind: (finding["before"], finding["after"]) for kind, finding in moved.items() if kind in ("allocations", "bytes")} == {
        "allocations": tuple(said("report", data)[0]["all"]["allocations"] for data in (before, after)),
        "bytes": tuple(said("report", data)[0]["all"]["bytes"] for data in (before, after))}
    assert moved["peak"]["says"].startswith("The peak grew by ")
    assert moved["peak"]["detail"].endswith("most in leak_until_end: +195 KiB")
    assert moved["live-bytes"]["detail"].endswith("most in linear_leak: +97.7 KiB")
    head = text[:text.index("\nallocations\n")]
    assert all(f"\n  {finding['says']}: {finding['detail']}\n" in head for finding in diff["findings"])
    diff, text = said("diff", before, before)
    assert diff["findings"] == [] and "\n  No cost moved by 1 % or more.\n" in text
    # Of a part it is not known, nor of what was multiplied.
    for option in ("--thread=case_study", "--per=1:2"):
        diff, text = said("diff", option, before, after)
        assert "findings" not in diff and "The peak grew" not in text


@pytest.mark.engines("uprobe", "preload")
def test_sampled_blocks_name_no_leak(record, said):
    """A sample is too rough for a sentence on what grows, holds or churns."""
    report, _ = said("report", record("sampled", "--live", "--sample=4k"))
    assert not {finding["kind"] for finding in report["findings"]} & {"growing", "lost", "peak", "churn"}


def test_short_runs_have_no_rate(record, said):
    """What is measured for less than a second says nothing of a second."""
    report, _ = said("report", record("short", "--live", steps=200))
    assert "peak" in [finding["kind"] for finding in report["findings"]]
    assert not [finding for finding in report["findings"] if finding.get("bytes_per_second")]
