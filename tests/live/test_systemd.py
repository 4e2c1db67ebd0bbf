# SPDX-License-Identifier: GPL-3.0-or-later
"""As a unit of systemd under SystemCallFilter=@system-service: the filter is set here by hand, so that no systemd has to
run."""

import os
import pathlib
import re
import sys

import pytest

import support
from support import Recording, read_report

FILTER = pathlib.Path(__file__).with_name("system_service.py")
EXAMPLE = support.SOURCE / "examples" / "systemd" / "record.conf"
ACTIONS = ["kill", "errno"]


def under_filter(action, *names):
    return [sys.executable, FILTER, action, ",".join(names)]


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("engine", ["auto", "preload"])
def test_filter_of_the_example(run, allocprof, target, tmp_path, action, engine):
    """What it says in the example is enough: the command is measured by preload, and completely."""
    names = re.search(r"^SystemCallFilter=(?!@system-service)(.+)$", EXAMPLE.read_text(), re.MULTILINE)[1].split()
    run([*under_filter(action, *names), allocprof, "record", f"--engine={engine}", "--live", "--no-symbols",
         "-o", tmp_path / "data", target("every_function")], expect=3)
    recording = Recording(tmp_path / "data")
    assert recording.meta["engine"] == "preload" and recording.ledger["lost"] == 0, recording.meta
    assert recording.ledger["frees"] > 0, recording.ledger


@pytest.mark.parametrize("engine", ["auto", "preload"])
def test_filter_without_seccomp(run, allocprof, tmp_path, engine):
    """The reason is the filter, and the remedy is named, once."""
    done = run([*under_filter("errno"), allocprof, "record", f"--engine={engine}", "-o", tmp_path / "data", "true"],
               expect=125)
    said = done.stderr.decode()
    assert "SystemCallFilter=@system-service seccomp" in said and "allocate memory" not in said, said
    assert said.count("cannot start the process") == 1, said
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("engine", ["auto", "preload"])
def test_filter_that_kills_workers(run, allocprof, target, tmp_path, engine):
    """The command is measured all the same; what the workers would have read is missing, and named."""
    done = run([*under_filter("kill"), allocprof, "record", f"--engine={engine}", "-o", tmp_path / "data",
                target("every_function")], expect=3)
    assert b"0.0 % of the calls have a complete stack" in done.stderr, done
    assert b"made a system call that is not allowed" in run([allocprof, "report", "-i", tmp_path / "data"]).stderr
    ledger = Recording(tmp_path / "data").ledger
    assert ledger["events"] > 0 and ledger["lost"] == 0, ledger


@pytest.mark.parametrize("action", ACTIONS)
def test_uprobes_under_a_filter(run, allocprof, target, tmp_path, action):
    """Without the calls that they need uprobes are refused by a sentence, and not by a signal."""
    if os.geteuid():
        support.unavailable("only root can set uprobes")
    stat = [allocprof, "stat", "--engine=uprobe", "--json", "-o", tmp_path / "json", target("every_function")]
    done = run([*under_filter(action, "seccomp"), *stat], expect=125)
    said = done.stderr.decode()
    assert "seccomp" in said and "perf_event_open(2)" in said, said
    run([*under_filter(action, "seccomp", "bpf", "perf_event_open", "fsopen", "fsconfig", "fsmount"), *stat], expect=3)
    assert read_report(tmp_path / "json")["lost"]["total"] == 0


def test_doctor(run, allocprof):
    """It outlives the filter that it describes."""
    done = run([*under_filter("kill", "seccomp"), allocprof, "doctor"])
    assert done.status == 2 and b"SystemCallFilter=@system-service @mount seccomp bpf perf_event_open" in done.stdout, done
