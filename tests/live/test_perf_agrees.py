# SPDX-License-Identifier: GPL-3.0-or-later
"""Raw probe hits of one process, by perf stat: what the counter leaves alone, and what allocprof's
calls and internal hits must add up to."""

import json
import os
import shutil
import signal

import pytest

import conftest
from support import (Hits, Obedient, Runner, TIMEOUT_SECONDS, by_address, libc_path, patched_functions,
                     wait_until)

ONE_PROCESS = [
    (["nothing"], 0),
    (["every_function"], 3),
    (["every_function", "asprintf"], 3),
    (["threads", "8", "1000"], 0),
    (["many_stacks", "20000", "500"], 0),
    (["many_stacks", "-t", "4", "20000", "500"], 0),
    (["longjmp"], 0),
    (["signals"], 0),
    (["throw"], 6),
    (["print_backtrace"], 0),
    (["segv"], None),
]
CASES = pytest.mark.parametrize("words, status", ONE_PROCESS, ids=[" ".join(words) for words, _ in ONE_PROCESS])


@pytest.fixture(scope="module")
def module_hits():
    """The kernel takes most of a second to let go of its probes."""
    if os.geteuid() != 0:
        conftest.unavailable("not root: perf probes need it")
    if not shutil.which("perf"):
        conftest.unavailable("perf is not installed")
    runner = Runner()
    with Hits(runner) as hits:
        yield hits
    runner.end_all()


@pytest.fixture
def hits(runner, module_hits):
    """Its commands are those of the test."""
    module_hits.runner = runner
    return module_hits


BARE = {}


def bare_hits(hits, argv, status):
    """Of one run for all tests: perf takes most of a second to let go of its probes."""
    key = tuple(argv)
    if key not in BARE:
        BARE[key] = hits.count(argv, expect=status)
    return BARE[key]


def raw_of(counts, hits):
    """The counter's calls, in the groups that share an address."""
    return {names[0]: sum(counts[name].calls for name in names)
            for names in by_address(libc_path())}


@pytest.mark.slow
@CASES
def test_counter_changes_no_hit(hits, counter, target, words, status):
    """Every hit, internal ones too, is there with the counter as without, and the counter's calls
    are among them."""
    argv = [target(words[0]), *words[1:]]
    bare = bare_hits(hits, argv, status)
    made = counter()
    counted = hits.count(argv, made, expect=status)
    assert counted == bare
    for name, calls in raw_of(made.read(), hits).items():
        assert calls <= bare[name], name


@pytest.mark.slow
def test_internal_hits_are_the_known_ones(hits, counter, target):
    """Those that glibc makes by entering malloc and realloc from its other functions."""
    made = counter()
    raw = hits.count([target("every_function")], made, expect=3)
    counts = made.read()
    internal = {name: raw[name] - calls for name, calls in raw_of(counts, hits).items()}
    # realloc(p, 0); realloc(NULL) and every aligned request whose alignment malloc has anyway; reallocarray
    # whose product does not overflow.
    fresh = counts["realloc"].fresh + counts["reallocarray"].fresh
    expected = {name: 0 for name in raw}
    expected["malloc"] = fresh + 6 + 9 + 8 + 11
    expected["realloc"] = counts["reallocarray"].calls - 3
    expected["free"] = counts["realloc"].released + counts["reallocarray"].released
    assert internal == expected


@pytest.mark.fast("every_function", "threads 8 1000", "signals")
@CASES
def test_calls_and_internal_are_all_hits(hits, allocprof, run, target, tmp_path, words, status):
    argv = [target(words[0]), *words[1:]]
    raw = bare_hits(hits, argv, status)
    run([allocprof, "stat", "--json", "-o", tmp_path / "stat.json", "--", *argv])
    functions = json.loads((tmp_path / "stat.json").read_text())["functions"]
    assert {name: entry["calls"] + entry["internal"] for name, entry in functions.items()} == raw


@pytest.mark.slow
def test_breakpoints_are_seen(hits, runner, target):
    """patched_functions(), by which other tests judge what is left behind."""
    obedient = Obedient(runner, [target("sleeper")])
    # Another allocprof on this machine may have set some for a while.
    wait_until(lambda: not patched_functions(obedient.pid), "none is probed")
    perf = hits.attach(obedient.pid)
    wait_until(lambda: patched_functions(obedient.pid) == set(hits.names), "all are probed")
    obedient.ask("alloc 100")
    perf.send_signal(signal.SIGINT)
    perf.wait(TIMEOUT_SECONDS)
    wait_until(lambda: not patched_functions(obedient.pid), "none is probed")
    obedient.exit()
