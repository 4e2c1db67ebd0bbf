# SPDX-License-Identifier: GPL-3.0-or-later
"""What `record` says of itself on stderr: the line at its end, and the one on a terminal meanwhile."""

import os
import re

import pytest

from support import REMARKS, Obedient, Recording
from terminal import Terminal


def ending(recording, path):
    """The line that a recording in @path ends with."""
    calls = recording.ledger["attributed"]
    file = "" if path is None else f" {path}"
    return (f"allocprof: recorded {calls:,} calls, in {path or 'allocprof.data'}; "
            f"next: allocprof report{file}\n")


@pytest.mark.fast("default")
@pytest.mark.parametrize("options, path", [
    ([], None), (["-o", "other.data"], "other.data"),
], ids=["default", "other"])
def test_one_line_ends_a_recording(run, allocprof, target, tmp_path, options, path):
    """Also where no terminal is."""
    result = run([allocprof, "record", *options, "--", target("every_function")], cwd=tmp_path,
                 expect=3)
    bare = run([target("every_function")], expect=3)
    ours = ending(Recording(tmp_path / (path or "allocprof.data")), path)
    assert REMARKS.sub(b"", result.stderr).decode() == bare.stderr.decode() + ours
    # What it names can be typed.
    words = ours.split("; next: ")[1].split()
    report = run([allocprof, *words[1:]], cwd=tmp_path, expect=0)
    assert b"malloc" in report.stdout


def test_names_of_files_are_quoted(run, allocprof, target, tmp_path):
    result = run([allocprof, "record", "-o", "it's one", "--", target("nothing")], cwd=tmp_path,
                 expect=0)
    assert result.stderr.decode().endswith("; next: allocprof report 'it'\\''s one'\n")


@pytest.mark.fast("--live-")
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


PROGRESS = re.compile(r"(\d+\.\d+ s)(?: of \d+\.\d+ s)?: ([\d,]+) calls, 0 lost(, .* live)?")


def progress_of(screen):
    """The lines of progress that were there, as PROGRESS has them."""
    return [found for found in map(PROGRESS.fullmatch, screen.shown) if found]


def calls_of(found):
    return int(found[2].replace(",", ""))


def without_progress(screen):
    """What stands there in the end, of which nothing may be progress."""
    lines = screen.lines()
    assert not any(PROGRESS.match(line) or "collecting" in line for line in lines), lines
    return lines


@pytest.mark.fast("live")
@pytest.mark.parametrize("command, ends", [
    (["record"], ["process ", "process ", "recorded "]),
    (["record", "--live"], ["process ", "process ", "allocations:", "not freed:", "temporary:", "recorded "]),
    (["stat", "-o", "stat.out"], ["process ", "process "]),
], ids=["record", "live", "stat"])
def test_progress(runner, allocprof, target, tmp_path, command, ends):
    """It is there while a process is measured, keeps up with its calls, fits, and leaves no trace."""
    obedient = Obedient(runner, [target("sleeper")])
    with Terminal(runner, [allocprof, *command, "-p", obedient.pid], columns=44,
                  cwd=tmp_path) as terminal:
        terminal.wait_for(progress_of, "progress")
        obedient.ask("keep 1234")
        terminal.wait_for(lambda screen: calls_of(progress_of(screen)[-1]) >= 1234,
                          "the calls that were made")
        terminal.type(b"\x03")
        assert terminal.end()[1] == 0
    obedient.exit()
    screen = terminal.screen()
    found = progress_of(screen)
    assert calls_of(found[0]) == 0 and calls_of(found[-1]) == 1234
    assert (found[-1][3] == ", 57.8 KiB live") == ("--live" in command)
    lines = without_progress(screen)
    assert len(lines) == len(ends) and \
        all(line.startswith(f"allocprof: {end}") for line, end in zip(lines, ends)), lines


def test_progress_of_a_command(runner, allocprof, tmp_path):
    """A command that has the terminal for input only, as most have, does not write to it."""
    os.mkfifo(tmp_path / "go")
    script = "exec >output 2>&1; echo begun; read line <go; echo ended; exit 3"
    with Terminal(runner, [allocprof, "record", "sh", "-c", script], cwd=tmp_path) as terminal:
        terminal.wait_for(progress_of, "progress")
        (tmp_path / "go").write_text("\n")
        assert terminal.end()[1] == 3
    assert (tmp_path / "output").read_text() == "begun\nended\n"
    assert without_progress(terminal.screen()) == \
        [ending(Recording(tmp_path / "allocprof.data"), None).rstrip("\n")]


# Progress begins after two seconds.
TALKS = "while :; do echo hello; sleep 0.2; done"


@pytest.mark.fast("command")
@pytest.mark.parametrize("script", [
    f"({TALKS}) & $ALLOCPROF record --duration 2500ms -p $!",
    f"$ALLOCPROF record --duration 2500ms sh -c '{TALKS}'",
    # Not by standard output or error.
    "(exec 7>/dev/tty >/dev/null 2>&1; sleep 1000) & $ALLOCPROF record --duration 2500ms -p $!",
    # As sudo may: on a terminal of our own, which is shown on that where the target writes.
    f"({TALKS}) & script -qec \"$ALLOCPROF record --duration 2500ms -p $!\" typescript",
    # One of several processes.
    f"$ALLOCPROF record --duration 2500ms sh -c 'exec 6>&2 >/dev/null 2>&1; (({TALKS}) >&6); true'",
    # In the background.
    "set -m; sleep 1000 >/dev/null 2>&1 & p=$!; $ALLOCPROF record --duration 2500ms -p $p & wait $!;"
    " kill $p",
    "sleep 1000 >/dev/null 2>&1 & $ALLOCPROF record -q --duration 2500ms -p $!",
    "sleep 1000 >/dev/null 2>&1 & TERM=dumb $ALLOCPROF record --duration 2500ms -p $!",
], ids=["process", "command", "tty", "script", "child", "background", "quiet", "dumb"])
def test_no_progress(runner, allocprof, tmp_path, script):
    """No progress line is printed while the target writes to the terminal, in the background, with -q or on a dumb terminal."""
    script = f"trap 'kill $(jobs -p) 2>/dev/null' EXIT; {script}"
    with Terminal(runner, ["sh", "-c", script], env={"ALLOCPROF": allocprof},
                  cwd=tmp_path) as terminal:
        output, _ = terminal.end()
    assert (tmp_path / "allocprof.data").exists(), output
    assert re.fullmatch(rb"(hello\n|allocprof: .*\n)*", output), output
