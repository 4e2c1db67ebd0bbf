# SPDX-License-Identifier: GPL-3.0-or-later
"""What a hundred random programs with eight threads each do with memory, against the log of their
events. Takes minutes."""

import pytest

from memory import assert_none, differences


@pytest.mark.parametrize("seed", range(40))
def test_random_program(both, target, seed):
    expected, found, _ = both.record([target("live_random"), seed, 8, 1500], expect=0)
    assert_none(differences(expected, found, peak=False))
