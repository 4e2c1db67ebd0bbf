# SPDX-License-Identifier: GPL-3.0-or-later
"""Command lines of processes in recordings: of what is launched, forked and executed, and of what runs already; by what reports show and
select them, and that none are kept with --no-arguments."""

import json

import pytest

from support import Obedient, Recording

ROWS = "SELECT p.comm, a.text FROM processes p LEFT JOIN arguments a ON a.process = p.id ORDER BY p.id"
LONG = "x" * 300
# Each program ends in a moment, so that nobody could read its arguments in /proc.
SCRIPT = f"""/bin/true 'two words' x
/bin/true 'a\tb'
(/bin/true below; exec /bin/true {LONG})"""


@pytest.fixture
def shell(run, allocprof, tmp_path):
    def record(*options):
        data = tmp_path / "data"
        run([allocprof, "record", "--engine=preload", "-q", "-o", data, *options, "--", "/bin/sh", "-c", SCRIPT], expect=0)
        return data
    return record


def test_launched(shell):
    (first, script), *others = Recording(shell()).sql(ROWS)
    assert (first, script[:8]) == ("sh", "/bin/sh ") and script.endswith("...")
    # A forked process has those of its parent, until it executes a program.
    assert others == [("true", "/bin/true 'two words' x"), ("true", "/bin/true 'a?b'"), ("sh", script), ("true", "/bin/true below"),
                      ("true", "/bin/true " + "x" * (256 - len("/bin/true ")) + "...")]


def test_views(run, allocprof, shell):
    data = shell()

    def report(*options):
        return json.loads(run([allocprof, "report", "--json", "-i", data, *options], expect=0).stdout)

    selected = report("--where", "arguments = '/bin/true below'")["selected"]["allocations"]
    assert 0 < selected < report("--process=true")["selected"]["allocations"]
    lines = run([allocprof, "folded", "-i", data, "--by=arguments"], expect=0).stdout.decode().splitlines()
    assert {"/bin/true_'a?b'", "/bin/true_below"} <= {line.split(";")[0] for line in lines}
    error = run([allocprof, "report", "-i", data, "--by=arguments,pid"], expect=64).stderr.decode()
    assert "--by takes one of pid, arguments and cgroup" in error


def test_none(shell):
    recording = Recording(shell("--no-arguments"))
    assert recording.sql("SELECT * FROM arguments") == []
    assert recording.meta["command"] == "/bin/sh"


@pytest.mark.engines("uprobe", "preload")
def test_running(run, runner, allocprof, target, tmp_path):
    """Those of a process that runs are read before its recording says that it counts."""
    process = Obedient(runner, [target("sleeper")])
    words = [allocprof, "record", "-q", "-o", tmp_path / "data", "--duration=100ms", "-p", process.pid]
    run(words, expect=0)
    recording = Recording(tmp_path / "data")
    assert recording.sql(ROWS) == [("sleeper", str(target("sleeper")))]
    assert recording.meta["attached_command"] == str(target("sleeper"))
    run([*words[:2], "--no-arguments", *words[2:]], expect=0)
    recording = Recording(tmp_path / "data")
    assert recording.sql(ROWS) == [("sleeper", None)]
    assert recording.meta["attached_command"] == "sleeper"
    process.exit(0)
