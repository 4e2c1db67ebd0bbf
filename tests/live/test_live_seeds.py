# SPDX-License-Identifier: GPL-3.0-or-later
"""What random programs with eight threads each do with memory, against the log of their
events. Takes minutes."""

import os

import pytest

from memory import assert_none, differences

TRIES = int(os.environ.get("ALLOCPROF_TRIES", 6))


def random_program(both, target, seed):
    expected, found, _ = both.record([target("live_random"), seed, 8, 1500], expect=0)
    assert_none(differences(expected, found, peak=False))


@pytest.mark.engines("uprobe")
@pytest.mark.parametrize("seed", range(TRIES))
def test_random_program(both, target, seed):
    random_program(both, target, seed)


@pytest.mark.engines("preload")
@pytest.mark.parametrize("seed", range(10000, 10000 + TRIES // 2))
def test_random_program_inside(both, target, seed):
    """Others; tests/live/random_programs runs as many as there is time for."""
    random_program(both, target, seed)
