# SPDX-License-Identifier: GPL-3.0-or-later
"""Run as /usr/bin/python3 -m pytest tests/web. ALLOCPROF_BUILD names the build directory. It needs no root but for
recordings; chromium, chromium-driver, firefox-esr and python3-websocket, which scripts/setup --ci installs."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("ALLOCPROF_BUILD", SOURCE / "build")).resolve()
ALLOCPROF = BUILD / "cli" / "allocprof"
GOLDEN = BUILD / "tests" / "golden"

sys.path[:0] = [str(SOURCE / "tests" / "web"), str(SOURCE / "tests")]


def unavailable(why):
    # A run that has to prove something must not pass by skipping.
    if os.environ.get("CI"):
        pytest.fail(f"CI is set, so this must run: {why}", pytrace=False)
    pytest.skip(why)


@pytest.fixture(scope="module", params=["chromium", "firefox"])
def started(request):
    """A browser for all tests of a file: it takes seconds to start."""
    try:
        import browser
    except ImportError as error:
        unavailable(f"no Python module {error.name}: scripts/setup --ci installs it")
    missing = browser.missing(request.param)
    if missing:
        unavailable(f"{missing} is not installed: scripts/setup --ci installs it")
    with browser.Browser(request.param) as one:
        yield one


@pytest.fixture
def page(started):
    """The browser. What the test opened in it must neither have asked for anything nor failed."""
    started.resize(1280, 900)
    yield started
    assert started.requests() == []
    assert started.errors() == []
    # The next test begins as a reader does who has chosen no theme.
    started.evaluate("localStorage.clear()")


@pytest.fixture
def run(tmp_path):
    """run(words...): what allocprof prints; it must not fail."""
    def run_allocprof(*words, **more):
        return subprocess.run([ALLOCPROF, *map(str, words)], check=True, cwd=tmp_path, stdout=subprocess.PIPE,
                              env={**os.environ, "XDG_CONFIG_HOME": str(tmp_path)}, **more).stdout.decode()
    return run_allocprof


@pytest.fixture
def totals(run):
    """totals(data, options...): what report says of all that is selected."""
    def read(data, *options):
        return json.loads(run("report", "--json", "-i", data, *options))["selected"]
    return read


@pytest.fixture
def case_study(tmp_path):
    path = tmp_path / "case_study.data"
    subprocess.run([GOLDEN / "write_fixture", path, "case-study"], check=True)
    return path


@pytest.fixture
def fixture_data(tmp_path):
    path = tmp_path / "fixture.data"
    subprocess.run([GOLDEN / "write_fixture", path], check=True)
    return path


@pytest.fixture
def story(tmp_path):
    """before.data and after.data."""
    subprocess.run([GOLDEN / "write_diff_story", tmp_path], check=True)
    return tmp_path / "before.data", tmp_path / "after.data"
