#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Holds the tests that meson knows to the cases of tests/live: pytest fails where it is asked for the fast or the slow cases of a
file that has none, and cases that no test asks for are never run. Run as tests/parts.py BUILD."""

import collections
import contextlib
import io
import json
import pathlib
import subprocess
import sys

import pytest

LIVE = pathlib.Path(__file__).resolve().parent / "live"


class Cases:
    """Collects the files that have fast and slow cases, as on a machine where uprobes can be set."""
    def __init__(self):
        self.files = collections.defaultdict(set)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_collection_modifyitems(self):
        sys.modules["conftest"].obstacle = lambda: None
        yield

    def pytest_collection_finish(self, session):
        for item in session.items:
            self.files["slow" if item.get_closest_marker("slow") else "not slow"].add(item.path.name)


def main(build):
    cases = Cases()
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        status = pytest.main(["-qq", "-p", "no:cacheprovider", "--collect-only", str(LIVE)], plugins=[cases])
    if status != pytest.ExitCode.OK:
        sys.exit(printed.getvalue())
    tests = json.loads(subprocess.run(["meson", "introspect", "--tests", build], check=True, stdout=subprocess.PIPE).stdout)
    asked = [(test["name"], test["cmd"][test["cmd"].index("-m", 3) + 1], pathlib.Path(test["cmd"][-1]).name)
             for test in tests if "pytest" in test["cmd"] and "-m" in test["cmd"][3:]]
    assert asked, f"no test of {build} asks for a part of a file"
    empty = [f"{name}: {file} has no case that is {part}" for name, part, file in asked if file not in cases.files[part]]
    words = [(word, "-m" in test["cmd"][3:]) for test in tests if "pytest" in test["cmd"] for word in test["cmd"]]
    whole = {pathlib.Path(word).name for word, is_part in words if not is_part}
    empty += [f"{file}: no test runs what is {part}" for part, files in cases.files.items()
              for file in sorted(files - whole - {file for _, asked_part, file in asked if asked_part == part})]
    if empty:
        sys.exit("\n".join(["parts:", *empty, "all_fast and the lists of tests/live/meson.build say which parts there are"]))


if __name__ == "__main__":
    main(*sys.argv[1:])
