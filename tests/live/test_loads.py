# SPDX-License-Identifier: GPL-3.0-or-later
"""The kernel's verifier accepts the programs of every mode. What it accepts depends on the clang that
compiled them: CI has this file run in Debian 13, too, with those of a later clang (scripts/test)."""

import pytest

MODES = [
    ["stat"], ["stat", "--within", "main"], ["stat", "--start-on", "main"],
    ["stat", "--live"], ["stat", "--live", "--within", "main"],
    ["record"], ["record", "--within", "main"], ["record", "--sample", "100"],
    ["record", "--live"], ["record", "--live", "--within", "main"],
    ["record", "--live", "--sample", "100"],
    ["record", "--live", "--sample", "100", "--within", "main"],
]


@pytest.mark.parametrize("inject", [None, "multi=0", "sessions=0"])
@pytest.mark.parametrize("mode", MODES, ids=" ".join)
def test_loads(run, allocprof, target, tmp_path, mode, inject):
    """The program's own malloc has its return instructions probed, libc's has not."""
    options = ["--inject", inject] if inject else []
    result = run([allocprof, *mode, *options, "-o", tmp_path / "out", "--", target("own_malloc")])
    assert result.status == 0, result.stderr.decode()
