# SPDX-License-Identifier: GPL-3.0-or-later
"""--verbose: what is probed and why there, and what libbpf says when the kernel refuses what it loads."""

import re


def test_what_is_probed(run, allocprof, target, tmp_path):
    """As doctor prints it, on stderr; the report is as without."""
    doctor = run([allocprof, "doctor", target("nothing")]).stdout.decode().split("\n\n")[-1]
    result = run([allocprof, "stat", "-v", "-o", tmp_path / "report", "--", target("nothing")], expect=0)
    said = [line.removeprefix("allocprof: ") for line in result.stderr.decode().splitlines()]
    assert said == doctor.splitlines()
    assert any(re.match(r"  malloc\b", line) for line in said)


def test_a_program_that_comes_later(run, allocprof, target, tmp_path):
    """It has a malloc of its own, of which calls may have been missed."""
    result = run([allocprof, "record", "-qv", "-o", tmp_path / "data", "--", target("launcher"), "1",
                  target("own_malloc")], expect=0)
    lines = [line.removeprefix("allocprof: ") for line in result.stderr.decode().splitlines()]
    at = next(i for i, line in enumerate(lines) if line.startswith(str(target("own_malloc"))))
    assert lines[at + 1].startswith("  found only after process"), lines[at:at + 3]
    assert lines[at + 2].startswith("  malloc"), lines[at:at + 3]


def test_refused(run, allocprof, target, tmp_path):
    """A map that no kernel makes."""
    command = ["--inject", "processes=4294967295", "-o", tmp_path / "out", "--", target("nothing")]
    quiet = run([allocprof, "stat", *command], expect=125).stderr.decode()
    assert quiet.count("\n") == 1 and "--verbose shows the verifier's log" in quiet
    told = run([allocprof, "stat", "--verbose", *command], expect=125).stderr.decode()
    assert "libbpf: map 'processes': failed to create" in told
    assert "refused the BPF programs" in told.splitlines()[-1]
