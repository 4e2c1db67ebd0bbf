# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands of allocprof-report(1)'s EXAMPLES on a program that runs: each of its four ways to use
memory is found by a command, and told apart from the others."""

import json

import pytest

from support import Recording, stated_cases

STEPS = 2000


@pytest.fixture
def report(run, allocprof, target, tmp_path):
    """report(options): by function, what `report --json` has selected, and the recording."""
    data = tmp_path / "data"
    run([allocprof, "record", "--live", "-o", data, "--", target("case_study")], expect=0)

    def make(*options):
        text = run([allocprof, "report", "-i", data, "--json", *options], expect=0).stdout
        result = json.loads(text)
        return {result["frames"][stack["frames"][0]]["name"]: stack for stack in result["stacks"]}

    make.recording = Recording(data)
    return make


def test_case_study(report):
    stated = stated_cases("case_study")
    found = report()
    assert set(found) == set(stated)
    for name, figures in stated.items():
        everything = found[name]["all"]
        assert {figure: everything[figure] for figure in
                ("allocations", "bytes", "live", "live_bytes", "temporary")} == \
            {**dict.fromkeys(("live", "live_bytes", "temporary"), 0),
             **{figure: figures[figure] for figure in figures
                if figure in ("allocations", "bytes", "live", "live_bytes", "temporary")}}

    # A leak checker's question. What is freed at the end is not among them; of the others the share
    # and the age tell which is the leak, which keeps a few, and which only what is newest.
    leaks = report("--leaks")
    assert list(leaks) == ["linear_leak", "mixture", "bounded_cache"]
    shares = {name: stack["selected"]["live"] / stack["all"]["allocations"]
              for name, stack in leaks.items()}
    assert shares == {"linear_leak": 1, "mixture": 225 / 20700, "bounded_cache": 50 / STEPS}
    oldest = {name: stack["selected"]["oldest_age_seconds"] for name, stack in leaks.items()}
    assert oldest["bounded_cache"] < oldest["mixture"] < oldest["linear_leak"]

    # It was not all allocated at the beginning.
    ((blocks, first, last),) = report.recording.sql(
        "SELECT sum(l.blocks), min(l.born), max(l.born) FROM lifetimes l JOIN memory m USING (count) "
        "WHERE l.died IS NULL AND m.caller = 'linear_leak'")
    assert blocks == STEPS and first < last

    # When leak_until_end begins to free, which is the end unless the machine is slow then.
    ((begins, epoch),) = report.recording.sql(
        "SELECT min(l.died), (SELECT value FROM meta WHERE key = 'epoch_ns') FROM lifetimes l "
        "JOIN memory m USING (count) WHERE m.caller = 'leak_until_end'")
    late = report(f"--freed-after={begins * int(epoch) // 1000000}ms")
    assert late["leak_until_end"]["selected"]["allocations"] == STEPS
    assert "linear_leak" not in late

    # One expression has both: what leaks, and what only the end frees.
    both = report("--where", f"leaked OR freed_at >= {begins * int(epoch) // 1000000 / 1000}")
    assert both["linear_leak"]["selected"]["allocations"] == both["leak_until_end"]["selected"]["allocations"] == STEPS
    assert set(report("--where", "leaked AND NOT through('mixture')")) == {"linear_leak", "bounded_cache"}

    # A cache's blocks have all been freed but for what it holds.
    freed = report("--freed")
    assert "linear_leak" not in freed
    assert freed["bounded_cache"]["all"]["live"] == 50

    # What churns.
    assert list(report("--sort=temporary", "--top=1")) == ["mixture"]
    assert report("--not-stack=" + str(leaks["linear_leak"]["stack"]), "--leaks").keys() == \
        {"mixture", "bounded_cache"}
