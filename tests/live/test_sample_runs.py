# SPDX-License-Identifier: GPL-3.0-or-later
"""36 sampled recordings of the same program: the mean of the estimates is the truth, and the errors that
are stated hold it as often as they say. Takes minutes.

The kernel's random numbers cannot be seeded, so a right implementation must fail as good as never. The 30
figures (of 6 stacks and of all together) are 17 different ones, as blocks of one size have as many bytes:

- mean: that of 36 has a standard deviation of sigma / sqrt(36), where sigma follows from sizes and numbers of
  the blocks alone (sampling.deviation_of_one). 2.5 % of the truth is more than 5.6 of them for keep_small, which is
  exceeded once in 47 million, and more for all others; this is what the program's numbers of blocks are made for,
  and is asserted, too. Together 3e-8.
- cover: of 36 intervals that hold the truth with a chance of 0.945 or more each (0.95 less what the
  normal distribution misses with a thousand samples), fewer than 23 do once in 361 million (binomial):
  17 times 2.8e-9. Of the 216 of all stacks' allocated bytes, which do not depend on each other, fewer than
  181 do (83.8 %) once in 315 million.
- size: the standard deviation that is seen in 36 runs is 0.3 to 1.8 times the mean of those stated: its square has a
  chi-squared distribution of 35 degrees: 17 times 3e-10.

The sum is 9e-8.
"""

import math
import statistics

import pytest

import sampling

RUNS = 36
OF_TRUTH = 0.025
INTERVAL = 1024
WIDE = 5.6

# Of blocks: {(function, caller): {figure: [sizes]}}.
MIXED = [16 + i * 2654435761 % 2**32 % 6000 for i in range(4000)]
BLOCKS = {
    ("malloc", "keep_small"): {"allocations": [40] * 40000, "live": [40] * 40000},
    ("malloc", "churn"): {"allocations": [200] * 12000, "temporary": [200] * 12000},
    ("malloc", "make_mixed"): {"allocations": MIXED, "live": MIXED[::2]},
    ("malloc", "grow"): {"allocations": [200] * 10000, "temporary": [200] * 10000},
    ("realloc", "grow"): {"allocations": [1500] * 10000, "live": [1500] * 5000,
                          "temporary": [1500] * 5000},
    ("calloc", "make_zeroed"): {"allocations": [1200] * 5000},
}


def bytes_of(figure):
    return "bytes" if figure == "allocations" else f"{figure}_bytes"


def truth_and_deviation():
    """{(key, figure): (truth, standard deviation of one estimate)}"""
    blocks = dict(BLOCKS)
    blocks[sampling.TOTAL] = {
        figure: [size for of in BLOCKS.values() for size in of.get(figure, ())]
        for figure in ("allocations", "live", "temporary")}
    known = {}
    for key, figures in blocks.items():
        for figure, sizes in figures.items():
            ones = {size: sampling.deviation_of_one(size, INTERVAL) for size in set(sizes)}
            known[key, figure] = (len(sizes),
                                  math.sqrt(math.fsum(ones[size] ** 2 for size in sizes)))
            known[key, bytes_of(figure)] = (
                sum(sizes), math.sqrt(math.fsum((size * ones[size]) ** 2 for size in sizes)))
    return known


@pytest.fixture(scope="module")
def known():
    return truth_and_deviation()


def test_truth(run, allocprof, target, tmp_path, known):
    """What is worked out here is what is recorded without sampling."""
    found = sampling.record(run, allocprof, tmp_path / "data", [target("sample_shapes")])
    wanted = {(key, figure): truth for (key, figure), (truth, _) in known.items()}
    assert {(key, figure): found.value(key, figure)
            for key, figure in sampling.figures_of(found)} == wanted


def test_runs(run, allocprof, target, tmp_path, known):
    argv = [target("sample_shapes")]
    runs = sampling.record_runs(run, allocprof, tmp_path / "data", argv, INTERVAL, RUNS)
    wrong = []
    independent = 0
    for (key, figure), (truth, deviation) in known.items():
        assert WIDE * deviation / math.sqrt(RUNS) < OF_TRUTH * truth, \
            f"{key}, {figure}: too few blocks for this test"
        values = [found.value(key, figure) for found in runs]
        margins = [found.margin(key, figure) for found in runs]
        covered = sum(abs(value - truth) <= margin for value, margin in zip(values, margins))
        mean = statistics.fmean(values)
        stated = statistics.fmean(margins) / sampling.CONFIDENCE
        seen = statistics.stdev(values)
        print(f"{' '.join(key)} {figure}: {truth}, mean {mean / truth - 1:+.4%}, covered {covered}, "
              f"deviation {seen / deviation:.3f} of what it should be, stated {stated / deviation:.3f}")
        if abs(mean - truth) > OF_TRUTH * truth:
            wrong.append(f"{key}, {figure}: the mean is {mean}, the truth {truth}")
        if covered < 23:
            wrong.append(f"{key}, {figure}: {covered} of {RUNS} intervals have the truth")
        if not 0.3 < seen / stated < 1.8:
            wrong.append(f"{key}, {figure}: the deviation is {seen}, {stated} is stated")
        if figure == "bytes" and key != sampling.TOTAL:
            independent += covered
    print(f"{independent} of {RUNS * len(BLOCKS)} independent intervals have the truth")
    if independent < 181:
        wrong.append(f"{independent} of {RUNS * len(BLOCKS)} intervals of stacks have the truth")
    assert not wrong, "\n".join(wrong)
    for found in runs:
        sampling.assert_sampled_ledger(found.ledger)
        assert found.ledger["events"] == sum(len(of["allocations"]) for of in BLOCKS.values())
