# SPDX-License-Identifier: GPL-3.0-or-later
"""What `report --json` says of recordings of the target sample_shapes, sampled and not."""

import json
import math

from support import TIMEOUT_SECONDS

# Standard deviations in the margin that is stated (src/report/selection.c).
CONFIDENCE = 1.96

FIGURES = ("allocations", "bytes", "live", "live_bytes", "temporary", "temporary_bytes")
TOTAL = ("all", "all")


class Estimates:
    """Figures by (function of the allocator, its caller), and TOTAL."""

    def __init__(self, report):
        names = [frame["name"] for frame in report["frames"]]
        self.rows = {TOTAL: report["all"]}
        for stack in report["stacks"]:
            key = (stack["function"], names[stack["frames"][0]])
            assert key not in self.rows, f"two stacks of {key}"
            self.rows[key] = stack["all"]
        self.ledger = report["ledger"]
        self.complete = report["complete"]

    def value(self, key, figure):
        return self.rows[key][figure] if key in self.rows else 0

    def margin(self, key, figure):
        return self.rows[key]["error"][figure] if key in self.rows else 0


def record(run, allocprof, data, argv, sample=None, live=True):
    """The recording's Estimates."""
    run([allocprof, "record", "-o", data, *(["--live"] if live else []),
         *(["--sample", sample] if sample else []), "--", *argv], expect=0)
    result = run([allocprof, "report", "--json", "-i", data], expect=0)
    return Estimates(json.loads(result.stdout))


def record_runs(run, allocprof, data, argv, sample, runs):
    """The Estimates of each of as many runs of one recording."""
    run([allocprof, "record", "--live", "-r", runs, "--warmup", "0", "--sample", sample, "-o", data, "--", *argv], expect=0,
        timeout=10 * TIMEOUT_SECONDS)
    return [Estimates(json.loads(run([allocprof, "report", "--json", "--run", number, "-i", data], expect=0).stdout))
            for number in range(1, runs + 1)]


def figures_of(truth):
    """All (key, figure) that are not 0."""
    return [(key, figure) for key, row in truth.rows.items() for figure in FIGURES if row[figure]]


def assert_sampled_ledger(ledger):
    assert ledger["events"] == ledger["sampled"] + ledger["not_sampled"] + ledger["lost"]
    assert ledger["attributed"] == ledger["complete"] + ledger["incomplete"]
    if "allocations" in ledger:
        assert ledger["attributed"] == ledger["allocations"] + ledger["failed"] + \
            ledger["released"] + ledger["unfinished"] + ledger["untracked"]


def deviation_of_one(size_bytes, interval):
    """The standard deviation of what one call counts as: the chance that one of its bytes is chosen, and
    one over it rounded at random."""
    chance = -math.expm1(max(size_bytes, 1) * math.log1p(-1 / interval))
    fraction, low = math.modf(1 / chance)
    mean_square = chance * ((1 - fraction) * low ** 2 + fraction * (low + 1) ** 2)
    return math.sqrt(mean_square - 1)
