# SPDX-License-Identifier: GPL-3.0-or-later
"""Asynchronous work that goes on in one thread after another: each task's figures are its own, and a region's are the sums
(tests/targets/tasks.cpp)."""

import pytest

from support import SOURCE
from test_regions import assert_regions, own_figures, stat

ANSWERS = {("preload", False): 1, ("preload", True): 2, ("uprobe", False): -1, ("uprobe", True): -1}


def built(run, directory, *options):
    program = directory / "tasks"
    run(["g++", "-std=c++20", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror", *options, "-I", SOURCE / "include",
         SOURCE / "tests/targets/tasks.cpp", "-pthread", "-o", program], expect=0)
    return program


@pytest.mark.covering(2)
@pytest.mark.engines("uprobe", "preload")
@pytest.mark.fast("coroutines-O2-live", "preload-coroutines-O2-live", "preload-nested-O0-plain")
@pytest.mark.parametrize("live", [[], ["--live"]], ids=["plain", "live"])
@pytest.mark.parametrize("level", ["O0", "O2"])
@pytest.mark.parametrize("way", ["coroutines", "states", "nested"])
def test_tasks(run, allocprof, tmp_path, engine, way, level, live):
    """1,000 tasks in 4 threads, among others. Probes cannot tell the program its figures, and it is told so."""
    program = built(run, tmp_path, f"-{level}")
    report, result = stat(run, allocprof, tmp_path, live, [program, way])
    assert f"answer {ANSWERS[engine, bool(live)]}\n" in result.stdout.decode()
    assert_regions(report, own_figures(result.stdout), live)


@pytest.mark.engines("preload")
def test_recorded(run, allocprof, tmp_path):
    """record counts no regions; a thread's figures it has, and so a task's."""
    program = built(run, tmp_path, "-O1")
    result = run([allocprof, "record", "-o", tmp_path / "x.data", "--", program, "coroutines"], expect=0)
    assert b"answer 1\n" in result.stdout


def test_nobody(run, tmp_path):
    assert b"answer 0\n" in run([built(run, tmp_path, "-O1"), "coroutines"], expect=0).stdout
