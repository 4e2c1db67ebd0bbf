# SPDX-License-Identifier: GPL-3.0-or-later
"""Several runs of a command: what record -r keeps of each, and what ends a series."""

import json
import os
import pathlib
import shlex
import shutil
import signal
import subprocess

import pytest

from runs import Runs
from support import (Obedient, Recording, TIMEOUT_SECONDS, folded, in_pid_namespace, programs,
                     shell_status)

COMMANDS = ["stat", "record"]
KEPT_BYTES = 48
MADE_BYTES = 1111


def argv_of(allocprof, command, output, *options):
    return [allocprof, command, *(["--json"] if command == "stat" else []), "-o", output,
            *options, "--"]


class Numbered:
    """A shell script that knows in which run it is: $n."""

    def __init__(self, directory, script):
        self.state = directory / "state"
        self.path = directory / "script"
        self.path.write_text(f"#!/bin/sh\necho x >> {self.state}\n"
                             f"n=$(wc -l < {self.state})\n{script}\n")
        self.path.chmod(0o755)

    def begun(self):
        return len(self.state.read_text().splitlines()) if self.state.exists() else 0


@pytest.fixture(scope="module")
def one_run(tmp_path_factory):
    """one_run(run, allocprof, words, options, status): a recording of one run, made once."""
    made = {}

    def one_run(run, allocprof, words, options, status):
        key = (os.environ.get("ALLOCPROF_ENGINE"), *words, *options)
        if key not in made:
            path = tmp_path_factory.mktemp("one") / "data"
            run([allocprof, "record", *options, "-o", path, "--", *words], expect=status)
            made[key] = Recording(path)
        return made[key]

    return one_run


@pytest.mark.covering(1)
@pytest.mark.engines("uprobe", "preload")
@pytest.mark.slow
@pytest.mark.parametrize("options", [[], ["--live"]], ids=["plain", "live"])
@pytest.mark.parametrize("name, wrap", [
    *((name, list) for name in ("every_function", "fork", "threads")),
    ("fork", in_pid_namespace)],
    ids=lambda value: value if isinstance(value, str) else "here" if value is list else "pid_namespace")
def test_each_run_is_what_one_is(run, one_run, allocprof, target, tmp_path, name, wrap, options):
    argv, status = programs(target)[name]
    words = [str(word) for word in argv]
    one = one_run(run, allocprof, words, options, status)
    expected = {name: calls for name, (calls, _) in one.functions.items()}
    result = run(wrap([allocprof, "record", "-r", "2", *options, "-o", str(tmp_path / "data"), "--",
                       *words]), expect=status)
    runs = Runs(tmp_path / "data")
    assert runs.numbers == [1, 2]
    assert runs.ledger["lost"] == 0
    assert [runs.functions_of(number) for number in runs.numbers] == [expected] * 2
    assert f"2 runs: {one.ledger['events']:,} events each time, in " in result.stderr.decode()
    assert runs.of_each("exit_status") == [str(status)] * 2
    # What the runs have in common is there once, with names.
    assert [runs.calls(number) for number in runs.numbers] == [runs.calls(1)] * 2
    assert runs.sql("SELECT count(*), count(DISTINCT path) FROM modules")[0] == \
        one.sql("SELECT count(*), count(*) FROM modules")[0]
    assert runs.texts() == {text: 2 * calls for text, calls in one.texts().items()}
    assert runs.sql("SELECT DISTINCT text FROM stack_texts ORDER BY text") == \
        one.sql("SELECT DISTINCT text FROM stack_texts ORDER BY text")


@pytest.mark.engines("uprobe", "preload")
@pytest.mark.slow
def test_reports(run, allocprof, target, tmp_path):
    """Run n keeps n blocks; each report has one run, or says that it has them all."""
    data = tmp_path / "data"
    script = Numbered(tmp_path, f"echo \"keep $n\" | {target('sleeper')} >/dev/null")
    run([allocprof, "record", "--live", "-r", "3", "--warmup", "0", "-o", data, "--",
         "/bin/sh", script.path], expect=0)
    runs = Runs(data)
    kept = [runs.sql("SELECT sum(m.live), sum(m.live_bytes) FROM memory m JOIN processes p "
                     "ON p.id = m.process WHERE p.run = ? AND m.comm = 'sleeper' AND m.live",
                     number)[0] for number in runs.numbers]
    assert kept == [(n, n * KEPT_BYTES) for n in runs.numbers]
    # Every run's clock begins at 0.
    assert runs.sql("SELECT run, min(time_ns) FROM timeline GROUP BY run ORDER BY run") == \
        [(1, 0), (2, 0), (3, 0)]
    leaks = ["report", "--leaks", "--process=sleeper", "--through=keep"]
    for words, live in [([], 6), (["--run=all"], 6), (["--run=1"], 1), (["--run=3"], 3)]:
        report = json.loads(run([allocprof, *leaks, "--json", "-i", data, *words], expect=0).stdout)
        assert report["selected"]["live"] == live
        assert report["selected"]["live_bytes"] == live * KEPT_BYTES
    text = run([allocprof, "report", "-i", data], expect=0).stdout.decode()
    assert "3 runs: " in text and "the figures are sums of all runs" in text
    lines, result = folded(run, allocprof, data, "--cost=live", "--process=sleeper")
    assert sum(lines.values()) == 6 and b"sums of all 3 runs" in result.stderr
    lines, result = folded(run, allocprof, data, "--cost=live", "--process=sleeper", "--run=2")
    assert sum(lines.values()) == 2 and result.stderr == b""
    for words, number in [([], 1), (["--run=3"], 3)]:
        graph = json.loads(run([allocprof, "graph", "--json", "-i", data, *words,
                                "--process=sleeper", "--through=keep"], expect=0).stdout)
        assert graph["title"].endswith(f", run {number} of 3")
        assert graph["live"] == number
    difference = run([allocprof, "diff", "--cost=live", "--process=sleeper", data, data], expect=0)
    assert difference.stdout.decode().count("; 3 runs, 1 to 3") == 2


@pytest.mark.covering(1)
@pytest.mark.engines("uprobe", "preload")
@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM], ids=["int", "term"])
def test_signal_ends_a_series(runner, allocprof, target, tmp_path, command, stop):
    """It comes in the third run, which is known to wait; two are kept."""
    script = Numbered(tmp_path, f"[ $n -lt 3 ] && exec {target('every_function')} > /dev/null\n"
                                f"exec {target('sleeper')}")
    argv = argv_of(allocprof, command, tmp_path / "data", "-r", "5", "--warmup", "0")
    obedient = Obedient(runner, [*argv, "/bin/sh", script.path],
                        stderr=open(tmp_path / "stderr", "wb"))
    assert script.begun() == 3
    obedient.ask("alloc 10")
    obedient.process.send_signal(stop)
    # Those of every_function come first.
    assert shell_status(obedient.process.wait(TIMEOUT_SECONDS)) == 3
    assert script.begun() == 3
    check_kept(command, tmp_path / "data", 2, 5)
    if command == "record":
        assert "2 of 5 runs: " in (tmp_path / "stderr").read_text()


def check_kept(command, path, kept, wanted):
    if command == "stat":
        report = json.loads(path.read_text())
        assert (len(report["runs"]), report["wanted_runs"]) == (kept, wanted)
    else:
        runs = Runs(path)
        assert (runs.numbers, runs.meta["wanted_runs"]) == (list(range(1, kept + 1)), str(wanted))


@pytest.mark.engines("uprobe", "preload")
@pytest.mark.fast("record")
@pytest.mark.parametrize("command", COMMANDS)
def test_signal_in_the_first_run(runner, allocprof, target, tmp_path, command):
    """Where no run was over nothing is kept, and what was there stays."""
    (tmp_path / "data").write_text("old")
    argv = argv_of(allocprof, command, tmp_path / "data", "-r", "5", "--warmup", "0")
    obedient = Obedient(runner, [*argv, target("sleeper")],
                        stderr=open(tmp_path / "stderr", "wb"))
    obedient.process.send_signal(signal.SIGINT)
    assert shell_status(obedient.process.wait(TIMEOUT_SECONDS)) == 128 + signal.SIGINT
    assert "interrupted before a run that counts was over" in (tmp_path / "stderr").read_text()
    assert (tmp_path / "data").read_text() == "old"


@pytest.mark.engines("uprobe", "preload")
@pytest.mark.fast("stat")
@pytest.mark.parametrize("command", COMMANDS)
def test_run_that_cannot_start(run, allocprof, tmp_path, command):
    """The second run removes the program."""
    script = Numbered(tmp_path, '[ $n = 2 ] && rm "$0"; exit 0')
    result = run([*argv_of(allocprof, command, tmp_path / "data", "-r", "5", "--warmup", "0"),
                  script.path], expect=127)
    check_kept(command, tmp_path / "data", 2, 5)
    lines = result.stderr.decode().splitlines()
    assert len([line for line in lines if "there is no such file" in line]) == 1, lines
    assert len(lines) == (2 if command == "record" else 1), lines


@pytest.mark.engines("uprobe", "preload")
@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_failing_runs_count(run, allocprof, tmp_path, command):
    """Status is that of the first that failed; the warm-up run is none."""
    script = Numbered(tmp_path, "case $n in 3) exit 5;; 4) exit 7;; esac")
    run([*argv_of(allocprof, command, tmp_path / "data", "-r", "3"), "/bin/sh", script.path],
        expect=5)
    assert script.begun() == 4
    if command == "record":
        runs = Runs(tmp_path / "data")
        assert runs.of_each("exit_status") == ["0", "5", "7"]
        assert runs.meta["exit_status"] == "5" and runs.meta["warmup_runs"] == "1"


@pytest.mark.slow
@pytest.mark.parametrize("build_ids", [True, False], ids=["build_ids", "no_build_ids"])
@pytest.mark.parametrize("way", ["renamed", "overwritten"])
def test_program_replaced_between_runs(run, allocprof, target, tmp_path, way, build_ids):
    """The same code at the same path, but the function has another name from run 3 on."""
    remove = [] if build_ids else ["--remove-section=.note.gnu.build-id"]
    program = tmp_path / "program"
    for path, of in ((tmp_path / "first", "which_first"), (tmp_path / "second", "which_second")):
        subprocess.run(["objcopy", *remove, target(of), path], check=True)
    shutil.copy(tmp_path / "first", program)
    second = shlex.quote(str(tmp_path / "second"))
    replace = f"cat {second} > {program}" if way == "overwritten" else \
        f"cp {second} {program}.new; mv {program}.new {program}"
    script = Numbered(tmp_path, f"[ $n = 3 ] && {{ {replace}; }}; {program} make")
    run([allocprof, "record", "-r", "4", "--warmup", "0", "-o", tmp_path / "data", "--",
         "/bin/sh", script.path], expect=0)
    runs = Runs(tmp_path / "data")
    assert [{name for name in runs.callers(number) if name.endswith("_makes")}
            for number in runs.numbers] == \
        [{"first_makes"}, {"first_makes"}, {"second_makes"}, {"second_makes"}]
    modules = runs.sql("SELECT build_id FROM modules WHERE path = ?", str(program))
    assert len(modules) == 2 and (len(set(modules)) == 2) == build_ids


@pytest.mark.engines("uprobe", "preload")
@pytest.mark.slow
def test_runs_differ(run, allocprof, target, tmp_path):
    script = Numbered(tmp_path, f"exec {target('request_server_before')} $((n * n))")
    result = run([allocprof, "record", "-r", "3", "--warmup", "0", "-o", tmp_path / "data", "--",
                  "/bin/sh", script.path], expect=0)
    runs = Runs(tmp_path / "data")
    low, median, high = (runs.events[number] for number in runs.numbers)
    servers = [runs.callers(number)["use"] for number in runs.numbers]
    assert servers == [3, 12, 27]
    text = f"3 runs: {low} to {high} events, median {median}, spread {high - low}"
    assert text in result.stderr.decode()
    assert text in run([allocprof, "report", "-i", tmp_path / "data"], expect=0).stdout.decode()


@pytest.mark.engines("uprobe", "preload")
@pytest.mark.slow
def test_names_later(run, allocprof, target, tmp_path):
    """symbolize keeps the runs apart."""
    words = ["-r", "2", target("which_first"), "make"]
    data = tmp_path / "data"
    run([allocprof, "record", "--no-symbols", "-o", data, *words], expect=0)
    assert not any(name.endswith("_makes") for name in Runs(data).callers(1))
    run([allocprof, "symbolize", "-i", data], expect=0)
    runs = Runs(data)
    assert [runs.callers(number)["first_makes"] for number in (1, 2)] == [1, 1]


@pytest.mark.engines("uprobe", "preload")
@pytest.mark.slow
def test_input_is_read_again(run, allocprof, target, tmp_path):
    text = tmp_path / "input"
    text.write_text("keep 7\nalloc 5\n")
    command = " ".join(shlex.quote(str(word)) for word in (
        allocprof, "record", "--live", "-r", "3", "-o", tmp_path / "data", target("sleeper")))
    result = run(["sh", "-c", f"{command} < {text}"], expect=0)
    assert result.stdout == b"ready\ndone\ndone\n" * 4
    runs = Runs(tmp_path / "data")
    assert [runs.functions_of(number)["malloc"] for number in runs.numbers] == [12] * 3
    assert runs.sql("SELECT p.run, sum(m.live) FROM memory m JOIN processes p ON p.id = m.process "
                    "GROUP BY 1 ORDER BY 1") == [(1, 7), (2, 7), (3, 7)]


@pytest.mark.engines("uprobe", "preload")
def test_one_directory_and_no_leftovers(run, allocprof, target, tmp_path):
    run([allocprof, "record", "-r", "2", "-o", tmp_path / "data", target("nothing")], expect=0)
    assert [path.name for path in pathlib.Path(tmp_path).iterdir()] == ["data"]
