# SPDX-License-Identifier: GPL-3.0-or-later
"""More of test_live.py, in minutes: reports without stacks, threads, all targets, many blocks."""

import collections
import dataclasses

import pytest

from memory import (CASES, FIRST_NAMES, MANY_AT_ONCE, SHARING, assert_none, differences, differing, of_all_processes,
                    shared_differences, stat_differences, status_of)
from support import IN_PID_NAMESPACES, INPUT, in_pid_namespace, programs

pytestmark = [pytest.mark.engines("uprobe", "preload"), pytest.mark.slow]

RANDOM = [(1, 1, 5000), (3, 4, 3000), (5, 64, 100)]
# "nothing" does not even load the library.
PROGRAMS = [name for name in programs(str) if name != "nothing"]


@pytest.mark.covering(1)
@pytest.mark.parametrize("name, status", [
    (["live_shapes", "fail"], 0), (["live_shapes", "vfork_exec"], 0), (["every_function"], 3),
    (["live_random", 3, 4, 3000], 0)], ids=lambda value: value[-1] if isinstance(value, list) else "")
def test_library_changes_no_call(both, target, engine, name, status):
    """Without --live too: allocprof sees the calls that the log has, from where it has them."""
    argv = [target(name[0]), *name[1:]]
    expected, found, _ = both.record(argv, live=False, expect=status)
    if engine == "preload" and name[-1] in SHARING:
        expected, found = of_all_processes(expected), of_all_processes(found)
    functions = {key[2] for key in found.calls}
    calls = {key: sums for key, sums in expected.calls.items() if key[2] in functions}
    assert_none(differing("calls", calls, found.calls, found, ("calls", "bytes")))
    found, report = both.stat(argv, live=False, expect=status)
    names = both.names or FIRST_NAMES
    calls, _ = found.by(lambda key: names[key.function])
    reported = collections.Counter()
    for function, entry in report["functions"].items():
        reported[names[function]] += entry["calls"]
    assert +reported == {name: sums.calls for name, sums in calls.items()}


@pytest.mark.covering(1)
@pytest.mark.parametrize("name, case", CASES)
def test_stat(both, target, engine, name, case):
    expected, report = both.stat([target(name), case], expect=status_of(case))
    if engine == "preload" and case in SHARING:
        # A block of a child's is temporary only if the child is a thread of its own.
        expected.blocks = {key: dataclasses.replace(blocks, temporary=0, temporary_bytes=0)
                           for key, blocks in expected.blocks.items()}
        report.update(temporary=0, temporary_bytes=0)
    assert_none(stat_differences(report, expected, peak=case not in MANY_AT_ONCE))


@pytest.mark.covering(1)
@pytest.mark.parametrize("arguments", RANDOM)
def test_random(both, target, arguments):
    argv = [target("live_random"), *arguments]
    alone = arguments[1] == 1
    expected, found, _ = both.record(argv, expect=0)
    assert_none(differences(expected, found, peak=alone))
    expected, report = both.stat(argv, expect=0)
    assert_none(stat_differences(report, expected, peak=alone))


@pytest.mark.engines("uprobe")
@pytest.mark.parametrize("name", PROGRAMS)
def test_program(both, target, name):
    """Trees of processes and threads. What stat says of such is held below."""
    argv, status = programs(target)[name]
    expected, found, _ = both.record(argv, expect=status, stdin=INPUT)
    assert_none(differences(expected, found, peak=False))


@pytest.mark.engines("uprobe")
@pytest.mark.parametrize("name", IN_PID_NAMESPACES)
def test_program_in_pid_namespace(both, target, name):
    """The log has other process ids."""
    argv, status = programs(target)[name]
    expected, report = both.stat(argv, wrap=in_pid_namespace, expect=status, stdin=INPUT)
    assert_none(stat_differences(report, expected, peak=False))


@pytest.mark.engines("preload")
@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in ("stacks", "ten_at_once", "many_threads")])
def test_program_inside(both, target, name):
    """The same, but for those whose logs take long to read."""
    argv, status = programs(target)[name]
    expected, found, _ = both.record(argv, expect=status, stdin=INPUT)
    # The shell's children, too, share its memory until they execute something.
    wrong = shared_differences if name in ("vfork", "ten_vforking", "shell") else differences
    assert_none(wrong(expected, found, peak=False))


def test_many_live(both, target, engine):
    """More than the first table of live blocks holds, by a program that an earlier one has executed: the next table
    comes in time although the earlier one's blocks are taken out."""
    # The library's first table is a small one.
    blocks = {"uprobe": 300000, "preload": 50000}[engine]
    expected, found, _ = both.record([target("many_live"), blocks, 33], expect=0)
    assert found.all_blocks.live == blocks
    assert_none(differences(expected, found))


