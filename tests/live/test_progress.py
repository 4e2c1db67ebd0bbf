# SPDX-License-Identifier: GPL-3.0-or-later
"""What `record` says of itself on stderr: the line at its end, and the one on a terminal meanwhile."""

import re

import pytest

from support import Recording


def ending(recording, path):
    """The line that a recording in @path ends with."""
    calls = recording.ledger["attributed"]
    stacks = recording.sql("SELECT count(DISTINCT stack) FROM counts")[0][0]
    file = "" if path is None else f" {path}"
    return (f"allocprof: recorded {calls:,} calls from {stacks:,} stacks, "
            f"in {path or 'allocprof.data'}; next: allocprof report{file}\n")


@pytest.mark.parametrize("options, path", [
    ([], None), (["-o", "other.data"], "other.data"),
], ids=["default", "other"])
def test_one_line_ends_a_recording(run, allocprof, target, tmp_path, options, path):
    """Also where no terminal is."""
    result = run([allocprof, "record", *options, "--", target("every_function")], cwd=tmp_path,
                 expect=3)
    bare = run([target("every_function")], expect=3)
    ours = ending(Recording(tmp_path / (path or "allocprof.data")), path)
    assert result.stderr.decode() == bare.stderr.decode() + ours
    # What it names can be typed.
    words = ours.split("; next: ")[1].split()
    report = run([allocprof, *words[1:]], cwd=tmp_path, expect=0)
    assert b"malloc" in report.stdout


def test_names_of_files_are_quoted(run, allocprof, target, tmp_path):
    result = run([allocprof, "record", "-o", "it's one", "--", target("nothing")], cwd=tmp_path,
                 expect=0)
    assert result.stderr.decode().endswith("; next: allocprof report 'it'\\''s one'\n")


@pytest.mark.parametrize("options, lines", [
    (["--live"], 4), (["--live", "-q"], 0), (["-r", "2"], 1), (["-r", "2", "--quiet"], 0),
    (["--sample", "100"], 1),
], ids=lambda value: " ".join(value) if isinstance(value, list) else "")
def test_quiet(run, allocprof, target, tmp_path, options, lines):
    result = run([allocprof, "record", *options, "--", target("nothing")], cwd=tmp_path, expect=0)
    assert len(result.stderr.splitlines()) == lines, result
    if lines:
        assert re.search(rb"^allocprof: recorded .*; next: allocprof report\n\Z", result.stderr,
                         re.MULTILINE), result
