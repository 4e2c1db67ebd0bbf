# SPDX-License-Identifier: GPL-3.0-or-later
"""At least 99.9 % of the stacks of real programs, as the distribution builds them, are followed to
their outermost frame: in C, C++, Rust, and two interpreters."""

import shutil
import subprocess

import pytest

import conftest
import support
from test_truth import PROGRAMS, Recording

AT_LEAST = 0.999

MORE = {
    "gdb": (["gdb", "-nx", "-batch", "-ex", "info functions ^a", "-ex", "info line main",
             support.TARGETS / "throw"], ""),
}
LANGUAGES = {"C": "sqlite3", "C too": "jq", "C++": "cmake", "C++ and Python": "gdb", "Rust": "rg",
             "Python": "python3", "Perl": "perl"}


def share(recording, name):
    recording.assert_no_loss()
    complete, events = recording.ledger["complete"], recording.ledger["events"]
    print(f"{name}: {complete} of {events} stacks complete; others: {recording.reasons()}")
    assert events >= 1000, "too few to tell"
    return complete / events


def loaded_later(name):
    """Libraries that a program loads itself."""
    if name != "python3":
        return []
    words = "import _decimal, _json; print(_decimal.__file__, _json.__file__)"
    return subprocess.run(["/usr/bin/python3", "-c", words], capture_output=True, text=True,
                          check=True).stdout.split()


@pytest.mark.slow
@pytest.mark.parametrize("name", LANGUAGES.values(), ids=LANGUAGES.keys())
def test_real_program(run, allocprof, tmp_path, name):
    argv, text = {**PROGRAMS, **MORE}[name]
    if not shutil.which(argv[0]):
        conftest.unavailable(f"{argv[0]} is not installed")
    # What is loaded later is expected: else a busy machine may not have its table in time.
    options = [word for path in loaded_later(name) for word in ("--expect", path)]
    # Deeper ones are not asked for.
    run([allocprof, "record", "--max-depth", "512", "-o", tmp_path / "data", *options, "--", *argv],
        env={"PYTHONMALLOC": "malloc"}, stdin=text.encode(), expect=0)
    recording = Recording(tmp_path / "data")
    assert share(recording, name) >= AT_LEAST, recording.reasons()


@pytest.mark.parametrize("expected", [True, False], ids=["expected", "unexpected"])
def test_started_by_another(run, allocprof, tmp_path, expected):
    """Programs that a shell starts. Those that allocprof learns of only when they are executed may
    allocate before their tables are there; what of that could not be sent to user space is told."""
    programs = [name for name in ("cmake", "gdb", "rg", "jq") if shutil.which(name)]
    words = " ".join(f"{program} --version >/dev/null;" for program in programs)
    options = [word for name in programs for word in ("--expect", name)] if expected else []
    run([allocprof, "record", "-o", tmp_path / "data", *options, "--", "sh", "-c", words * 3],
        expect=0)
    recording = Recording(tmp_path / "data")
    if expected:
        assert share(recording, words) >= AT_LEAST, recording.reasons()
    else:
        told = {name for name, value in recording.ledger.items()
                if name.startswith("incomplete_") and value}
        assert told <= {"incomplete_no_table", "incomplete_dump_short"}
