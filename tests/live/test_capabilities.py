# SPDX-License-Identifier: GPL-3.0-or-later
"""What each command can do with which capabilities: docs/privileges.md has the table that this file holds it to."""

import json
import os
import pathlib
import shutil
import signal

import pytest

import support
from support import Recording, stated, unavailable, wait_until

USER = 65531
NEEDED = ("bpf", "perfmon", "sys_ptrace")
EXIT_STATUS = 3  # every_function's


@pytest.fixture
def place(allocprof, public_directory):
    """A directory for all users, with the tool and programs, and out, which is the user's."""
    for name in ("cli", "src/inside", "out", "runtime"):
        (public_directory / name).mkdir(parents=True)
    shutil.copy(allocprof, public_directory / "cli")
    shutil.copy(support.BUILD / "src" / "inside" / "liballocprof-inside.so", public_directory / "src" / "inside")
    for name in ("every_function", "sleeper"):
        shutil.copy(support.target(name), public_directory)
    for name in ("out", "runtime"):
        os.chown(public_directory / name, USER, USER)
        (public_directory / name).chmod(0o700)
    return public_directory


def as_user(capabilities=(), user=USER):
    """Words that make a command one of the user's, with these capabilities and no others."""
    if not shutil.which("setpriv"):
        unavailable("setpriv is not installed")
    sets = ",".join(["-all", *("+" + name for name in capabilities)])
    return ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", f"--inh-caps={sets}",
            f"--ambient-caps={sets}", f"--bounding-set={sets}"]


@pytest.fixture
def tool(run, place):
    """tool(capabilities, words): runs allocprof as the user."""
    def ran(capabilities, words, env=None, **how):
        return run([*as_user(capabilities), place / "cli" / "allocprof", *words], {
            "XDG_RUNTIME_DIR": str(place / "runtime"), "HOME": str(place / "out"), **(env or {})},
            cwd=place / "out", **how)
    ran.out = place / "out"
    ran.program = place / "every_function"
    return ran


def without(name):
    return tuple(other for other in NEEDED if other != name)


def expected_calls():
    """What every_function states; names of one address, such as aligned_alloc and memalign in older C libraries, are the
    first one's."""
    slots, expected = stated("every_function"), {}
    for names in support.by_address(support.libc_path()):
        calls = sum(slots[name].calls for name in names if name in slots)
        if calls:
            size = sum(slots[name].bytes for name in names if name in slots)
            expected[names[0]] = calls, min(size, support.MOST_BYTES)
    return expected


FAILED_REQUESTS = 14  # every_function's, by its first comment


def requests(succeeded=False):
    """The number of allocations and reallocations that the program states: each call that is no realloc to nothing."""
    slots = stated("every_function")
    calls = sum(slot.calls - slot.released for name, slot in slots.items() if name != "free")
    return calls - (FAILED_REQUESTS if succeeded else 0)


def holds_stat(out):
    report = json.loads((out / "x.json").read_text())
    assert report["engine"] == "uprobe" and report["complete"] and report["lost"]["total"] == 0, report
    calls = {name: (entry["calls"], entry["bytes"]) for name, entry in report["functions"].items() if entry["calls"]}
    assert calls == expected_calls()


def holds_record(out):
    recording = Recording(out / "x.data")
    assert "engine" not in recording.meta and not recording.unbalanced() and recording.ledger["lost"] == 0
    assert recording.ledger["complete"] == recording.ledger["events"]
    expected = expected_calls()
    # Without --live frees are not recorded, and by name all functions stand where one has been called.
    expected.pop("free")
    recorded = {name: recording.functions[name] for name in expected}
    assert recorded == expected


COMMANDS = {
    "stat": (["stat", "--json", "-o", "x.json"], holds_stat),
    "stat_live": (["stat", "--live", "--json", "-o", "x.json"], holds_stat),
    # Without the right to read tracefs, for a kernel that preempts programs at tracepoints.
    "stat_preempted": (["stat", "--inject", "preemption=1", "--json", "-o", "x.json"], holds_stat),
    "record": (["record", "-o", "x.data"], holds_record),
    "record_live": (["record", "--live", "-o", "x.data"], holds_record),
    "record_events": (["record", "--events", "-o", "x.data"], holds_record),
    "record_no_follow": (["record", "--no-follow", "-o", "x.data"], holds_record),
}


@pytest.mark.fast("stat", "record_live", "record_events")
@pytest.mark.parametrize("command", COMMANDS)
def test_exactly_those(tool, command):
    """Another user with the capabilities of the table, and no other one."""
    words, holds = COMMANDS[command]
    tool(NEEDED, [*words, "--", tool.program], expect=EXIT_STATUS)
    holds(tool.out)


@pytest.mark.covering(1)
@pytest.mark.fast("stat-bpf", "record_live-perfmon", "record_events-sys_ptrace")
@pytest.mark.parametrize("missing", NEEDED)
@pytest.mark.parametrize("command", COMMANDS)
def test_one_less(tool, command, missing):
    """It is named, in one sentence, where uprobes are asked for; else a library counts, to the same numbers."""
    words, holds = COMMANDS[command]
    name = f"CAP_{missing.upper()}"
    refused = tool(without(missing), [*words, "--", tool.program], {"ALLOCPROF_ENGINE": "uprobe"}, expect=125)
    line, = refused.stderr.decode().splitlines()
    assert f"recording needs {name}, which this user lacks" in line
    assert not list(tool.out.iterdir())
    fallen = tool(without(missing), [*words, "--", tool.program], expect=EXIT_STATUS)
    assert b"uprobes" not in fallen.stderr, fallen
    if words[0] == "stat":
        report = json.loads((tool.out / "x.json").read_text())
        assert report["engine"] == "preload" and report["complete"]
        assert report["total_allocations"] == requests(succeeded="--live" in words)
    else:
        assert Recording(tool.out / "x.data").meta["engine"] == "preload"


def attach(runner, tool, place, capabilities, target_user=USER):
    """A recording of a process of @target_user that is under way, its process and the target."""
    target = support.Obedient(runner, [*as_user((), target_user), place / "sleeper"])
    env = {"XDG_RUNTIME_DIR": str(place / "runtime"), "HOME": str(place / "out")}
    process = runner.start([*as_user(capabilities), place / "cli" / "allocprof", "stat", "--json", "-o", "x.json", "-p",
                            target.pid], env, cwd=place / "out", stderr=-1)

    def is_counting():
        assert process.poll() is None, process.stderr.read()
        # What asks has no capability.
        answer = tool((), ["ctl", "-p", process.pid, "status"])
        return not answer.status and answer.stdout.startswith(b"counting")

    wait_until(is_counting, "the recording counts")
    return process, target


@pytest.mark.fast("same")
@pytest.mark.parametrize("owner", [USER, USER + 1, 0], ids=["same", "other", "root"])
def test_process(runner, tool, place, owner):
    """With CAP_SYS_PTRACE a process of any user; ctl needs none."""
    process, target = attach(runner, tool, place, NEEDED, owner)
    target.ask("alloc 1234")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=support.TIMEOUT_SECONDS)
    assert process.returncode == 0
    report = json.loads((tool.out / "x.json").read_text())
    assert report["functions"]["malloc"]["calls"] == 1234 and report["complete"] and report["lost"]["total"] == 0
    target.exit()


@pytest.mark.parametrize("missing", NEEDED)
def test_process_with_one_less(runner, tool, place, missing):
    target = support.Obedient(runner, [*as_user(), place / "sleeper"])
    for words in (["stat"], ["record"], ["record", "--live"], ["record", "--events"]):
        line, = tool(without(missing), [*words, "-o", "x", "-p", target.pid], expect=125).stderr.decode().splitlines()
        assert f"recording needs CAP_{missing.upper()}, which this user lacks" in line
    assert not list(tool.out.iterdir())
    target.exit()


@pytest.mark.parametrize("capabilities", [NEEDED, without("bpf"), ()], ids=["all", "without-bpf", "none"])
def test_check(tool, capabilities):
    """By either engine, with the same numbers; it says nothing of engines."""
    # The shell has some of its own.
    limits = {"min": requests(), "max": requests() + 200}
    (tool.out / "budget.json").write_text(json.dumps({"tests": {"t": {
        "command": ["sh", "-c", f"{tool.program}; exit 0"], "total_allocations": limits, "runs": 1, "warmup": 0}}}))
    os.chown(tool.out / "budget.json", USER, USER)
    done = tool(capabilities, ["check", "--budget", "budget.json"], expect=0)
    assert b"within      t: total_allocations" in done.stdout + done.stderr, done


@pytest.mark.parametrize("missing", [None, *NEEDED])
def test_doctor(tool, missing):
    """It names what is missing, and that a command can be measured all the same."""
    done = tool(without(missing), ["doctor", tool.program], expect=2 if missing else 0)
    said = done.stdout.decode()
    if missing:
        assert f"privileges             no   CAP_{missing.upper()}" in said
        assert f"Recording by uprobes does not work here: recording needs CAP_{missing.upper()}," in said
        assert "measured by the engine preload" in said
    else:
        assert "Recording works here." in said and "measured by the engine uprobe" in said


def test_reading_needs_none(tool):
    """All that a recording is read with."""
    tool(NEEDED, ["record", "--live", "--events", "-o", "a.data", "--", tool.program], expect=EXIT_STATUS)
    for words in (["report"], ["folded"], ["query", "SELECT count(*) FROM calls"], ["html", "-o", "a.html"],
                  ["flamegraph", "-o", "a.svg"], ["graph", "-o", "graph.svg"], ["export", "-o", "a.pb.gz"],
                  ["export", "--format=events", "-o", "a.events"], ["symbolize"], ["archive"]):
        done = tool((), [words[0], "-i", "a.data", *words[1:]], expect=0)
        assert b"CAP_" not in done.stderr, done
    tool((), ["diff", "a.data", "a.data"], expect=0)
    tool((), ["ctl", "list"])


def test_file_that_may_not_be_read(runner, tool, place):
    """What is in it is not known, so it is listed, and what is in the others is measured."""
    directory = place / "libraries"
    env = {**support.second_libc(directory), "LD_PRELOAD": "libtcmalloc_minimal.so.4"}
    target = support.Obedient(runner, [*as_user(), place / "sleeper"], env=env)
    (directory / "libc.so.6").chmod(0)
    measured = tool((*NEEDED, "checkpoint_restore"),
                    ["stat", "--json", "--duration", "50ms", "-o", "x", "-p", target.pid], expect=0)
    figures = support.read_report(tool.out / "x")
    gaps = {pathlib.Path(file["path"]).name: file["gap"] for file in figures["allocators"]}
    assert [gap for name, gap in gaps.items() if name.startswith("libtcmalloc_minimal.so.4")] == [None], measured
    assert "may not be read" in gaps["libc.so.6"], gaps
    assert not figures["complete"]
    target.exit()


def test_files_that_are_gone(runner, tool, place):
    """Without CAP_CHECKPOINT_RESTORE a library that was replaced since it was mapped cannot be opened any more; the
    process is refused in a sentence, and with it, it is measured."""
    directory = place / "libraries"
    env = support.second_libc(directory)
    target = support.Obedient(runner, [*as_user(), place / "sleeper"], env=env)
    (directory / "libc.so.6").unlink()
    refused = tool(NEEDED, ["stat", "-o", "x", "-p", target.pid], expect=125).stderr.decode().splitlines()
    line, = refused
    assert f"{directory}/libc.so.6 (deleted), which process {target.pid} has mapped, cannot be opened" in line
    measured = tool((*NEEDED, "checkpoint_restore"), ["stat", "--duration", "50ms", "-o", "x", "-p", target.pid], expect=0)
    assert b"allocprof: not" not in measured.stderr, measured
    target.exit()
