# SPDX-License-Identifier: GPL-3.0-or-later
"""More of test_live.py, in minutes: reports without stacks, threads, all targets, many blocks."""

import pytest

from memory import (CASES, FIRST_NAMES, MANY_AT_ONCE, assert_none, differences, differing,
                    stat_differences, status_of)
from support import INPUT, in_pid_namespace, programs

RANDOM = [(1, 1, 5000), (3, 4, 3000), (5, 64, 100)]
# "nothing" does not even load the library.
PROGRAMS = [name for name in programs(str) if name != "nothing"]


@pytest.mark.parametrize("name, status", [
    (["live_shapes", "fail"], 0), (["live_shapes", "vfork_exec"], 0), (["every_function"], 3),
    (["live_random", 3, 4, 3000], 0)], ids=lambda value: value[-1] if isinstance(value, list) else "")
def test_library_changes_no_call(both, target, name, status):
    """Without --live too: allocprof sees the calls that the log has, from where it has them."""
    argv = [target(name[0]), *name[1:]]
    expected, found, _ = both.record(argv, live=False, expect=status)
    functions = {key[2] for key in found.calls}
    calls = {key: sums for key, sums in expected.calls.items() if key[2] in functions}
    assert_none(differing("calls", calls, found.calls, found, ("calls", "bytes")))
    found, report = both.stat(argv, live=False, expect=status)
    calls, _ = found.by(lambda key: FIRST_NAMES[key.function])
    assert {name: entry["calls"] for name, entry in report["functions"].items()
            if entry["calls"]} == {name: sums.calls for name, sums in calls.items()}


@pytest.mark.parametrize("name, case", CASES)
def test_stat(both, target, name, case):
    expected, report = both.stat([target(name), case], expect=status_of(case))
    assert_none(stat_differences(report, expected, peak=case not in MANY_AT_ONCE))


@pytest.mark.parametrize("arguments", RANDOM)
def test_random(both, target, arguments):
    argv = [target("live_random"), *arguments]
    alone = arguments[1] == 1
    expected, found, _ = both.record(argv, expect=0)
    assert_none(differences(expected, found, peak=alone))
    expected, report = both.stat(argv, expect=0)
    assert_none(stat_differences(report, expected, peak=alone))


@pytest.mark.parametrize("wrap", [list, in_pid_namespace], ids=["plain", "pid_namespace"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_program(both, target, name, wrap):
    """Trees of processes and threads. In a PID namespace the log has other process ids."""
    argv, status = programs(target)[name]
    if wrap is list:
        expected, found, _ = both.record(argv, expect=status, stdin=INPUT)
        assert_none(differences(expected, found, peak=False))
    expected, report = both.stat(argv, wrap=wrap, expect=status, stdin=INPUT)
    assert_none(stat_differences(report, expected, peak=False))


def test_many_live(both, target):
    expected, found, _ = both.record([target("many_live"), 200000, 33], expect=0)
    assert found.all_blocks.live == 200000
    assert_none(differences(expected, found))


