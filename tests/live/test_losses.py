# SPDX-License-Identifier: GPL-3.0-or-later
"""Bounds so small that losses must happen: none goes unnoticed, each has its reason, and what happened
still equals the counter to the last call."""

import json
import pathlib
import subprocess

import pytest

import conftest
from support import Recording, folded, read_report, second_libc, stated

LIBRARIES = pathlib.Path("/usr/lib/x86_64-linux-gnu")


@pytest.fixture
def record(run, allocprof, counter, target, tmp_path):
    """record(words, --inject's value) -> the data file, the number of calls there were, stderr."""
    def record(words, inject, status=0):
        made = counter()
        result = run([allocprof, "record", "-o", tmp_path / "data", "--inject", inject,
                      "--expect", target("many_stacks"), "--",
                      target("preload_exec"), made.path, made.library, *words], expect=status)
        counts = made.read()
        calls = sum(slot.calls for name, slot in counts.functions.items() if name != "free")
        return Recording(tmp_path / "data"), calls, result.stderr.decode()
    return record


def assert_exact(recording, calls):
    assert recording.ledger["events"] == calls
    assert recording.unbalanced() == []


def assert_lost(run, allocprof, recording, reason, stderr):
    """The loss is in the ledger and told by record, by folded, and by folded's status if asked."""
    lost = recording.ledger[f"lost_{reason}"]
    assert lost > 0
    assert f"allocprof: not complete: {lost:,} call{'s' if lost > 1 else ''} lost ({reason}): " in stderr
    lines, result = folded(run, allocprof, recording.path)
    assert sum(lines.values()) == recording.ledger["attributed"]
    assert f"{lost:,} of them ({reason})" in result.stderr.decode()
    run([allocprof, "folded", "--strict", "-i", recording.path], expect=1)


def many_stacks(target, threads=4, calls=100000, stacks=3000):
    return [target("many_stacks"), "-t", threads, calls, stacks]


def test_ring_full(run, allocprof, record, target):
    """Nobody reads the ring buffer while stacks come that do not fit."""
    recording, calls, stderr = record([target("freeze"), *many_stacks(target)], "ring=4096")
    assert_exact(recording, calls)
    assert_lost(run, allocprof, recording, "ring_full", stderr)


def test_counts_full(run, allocprof, record, target):
    """One counter, and nobody who makes room: calls whose stack is known find none."""
    recording, calls, stderr = record([target("freeze"), *many_stacks(target)],
                                      "counts=1,ring=4096")
    assert_exact(recording, calls)
    assert_lost(run, allocprof, recording, "counts_full", stderr)


def test_no_scratch(run, allocprof, record, target):
    recording, calls, stderr = record(many_stacks(target), "scratch=0")
    assert_exact(recording, calls)
    assert recording.ledger["lost_no_scratch"] == calls
    assert_lost(run, allocprof, recording, "no_scratch", stderr)
    assert recording.texts() == {}


@pytest.mark.fast("counts=8,ring=4096,stacks=8")
@pytest.mark.parametrize("inject", [
    "counts=8", "stacks=8", "ring=4096", "ring=8192,counts=16", "counts=8,ring=4096",
    "counts=8,ring=4096,stacks=8", "counts=1,stacks=1", "tail_calls=1"])
def test_under_load(record, target, inject):
    """Four threads against a reader that must make room all the time. Whether any call is lost depends
    on who is faster, what happened does not."""
    recording, calls, stderr = record(many_stacks(target), inject)
    assert_exact(recording, calls)
    assert ("not complete" in stderr) == (recording.ledger["lost"] > 0)
    if "ring" not in inject:
        # A full map has the ring buffer behind it, and a forgotten stack is sent again.
        assert recording.ledger["lost"] == 0
        assert len(recording.sql("SELECT DISTINCT stack FROM uninlined WHERE called_by = 'leaf'")) == 3000


def test_process_tree_without_room(run, allocprof, record, target):
    """Of 100 children and what they execute the ring buffer has no room for all: processes are missing, and their
    calls are counted as lost."""
    recording, calls, stderr = record([target("freeze"), target("launcher"), 100, target("every_function")],
                                      "ring=4096", status=3)
    ((processes,),) = recording.sql("SELECT count(*) FROM processes")
    assert 1 < processes < 200
    assert_exact(recording, calls)
    assert_lost(run, allocprof, recording, "ring_full", stderr)
    # What one of them maps later nobody looks at.
    (unnoticed, _, _), = recording.gaps["processes_unnoticed"]
    assert unnoticed >= 200 - processes
    sentence = f"{unnoticed:,} beginnings or ends of processes went unnoticed, and with them perhaps an allocator"
    assert f"allocprof: not complete: {sentence}\n" in stderr
    assert sentence in folded(run, allocprof, recording.path)[1].stderr.decode()


@pytest.mark.parametrize("programs", ["", ",preemption=1"], ids=["one_program", "three_programs"])
def test_processes(run, allocprof, target, tmp_path, programs):
    """A set with room for the command alone: its children's calls are missing, and it is said."""
    output = tmp_path / "stat.json"
    result = run([allocprof, "stat", "--json", "-o", output, "--inject", f"processes=1{programs}", "--",
                  target("launcher"), 3, target("threads")], expect=0)
    report = read_report(output)
    assert report["processes_unfollowed"] == 3
    assert report["complete"] is False
    assert report["functions"]["malloc"]["calls"] == 0
    assert b"not complete: 3 processes could not be followed\n" in result.stderr
    text = run([allocprof, "stat", "--inject", f"processes=1{programs}", "--", target("launcher"), 3,
                target("threads")], expect=0).stderr.decode()
    assert "not complete: 3 processes could not be followed" in text


def test_processes_of_a_recording(run, allocprof, target, tmp_path):
    data = tmp_path / "data"
    result = run([allocprof, "record", "-o", data, "--inject", "processes=1", "--",
                  target("launcher"), 3, target("threads")], expect=0)
    assert b"not complete: 3 processes could not be followed\n" in result.stderr
    assert Recording(data).gaps["processes_unfollowed"] == [(3, "", "")]
    assert b"3 processes could not be followed" in folded(run, allocprof, data)[1].stderr
    run([allocprof, "folded", "--strict", "-i", data], expect=1)


@pytest.mark.fast("1")
@pytest.mark.parametrize("notes", [1, 16384])
def test_tail_calls_without_note(run, allocprof, target, tmp_path, notes):
    """One thread holds the only note, the next 100 realloc(NULL) find none: they are counted as the
    malloc that they lead to, once each. No counter here: its malloc would be in the way."""
    command = [target("stuck_tail_call")]
    if run(command).status == 77:
        conftest.unavailable("malloc and realloc of this libc share a page")
    argv = [allocprof, "stat", "--inject", f"tail_calls={notes}"]
    told = run([*argv, "--json", "-o", tmp_path / "stat.json", "--", *command], expect=0).stderr
    report, counts = read_report(tmp_path / "stat.json"), stated("stuck_tail_call")
    relabelled = 100 if notes == 1 else 0
    functions = report["functions"]
    assert report["relabelled"] == relabelled
    assert functions["realloc"]["calls"] == counts["realloc"].calls - relabelled
    assert functions["malloc"]["calls"] == relabelled
    assert functions["calloc"]["calls"] == counts["calloc"].calls
    assert report["allocations"] == counts["realloc"].fresh + counts["calloc"].calls
    assert functions["realloc"]["bytes"] + functions["malloc"]["bytes"] == counts["realloc"].bytes
    assert report["lost"]["total"] == 0
    note = "100 calls are counted under the function that they led to"
    assert (note in told.decode()) == bool(relabelled)
    assert (note in run([*argv, "--", *command], expect=0).stderr.decode()) == bool(relabelled)


def test_no_place_for_another_file(run, allocprof, tmp_path):
    """Programs that contain their allocator, and for which no places are left, are named, and nothing counts for them."""
    programs = [tmp_path / name for name in ("shared", "static", "another")]
    for program in programs:
        kind = ["-static"] if program != programs[0] else []
        subprocess.run(["gcc", "-O0", *kind, "-x", "c", "-o", program, "-"], input=f"""
#include <stdlib.h>
char name[] = "{program.name}";
int main(void) {{ for (int i = 0; i < 1000; i++) free(malloc(10)); return 0; }}
""", text=True, check=True)
    output = tmp_path / "stat.json"
    said = run([allocprof, "stat", "--json", "--inject", "sites=16", "-o", output, "--", "sh", "-c",
                "; ".join(map(str, programs))], expect=0).stderr.decode()
    report = read_report(output)
    assert gaps(report) == {str(program) for program in programs[1:]} and not report["complete"]
    assert "all 16 slots for probed functions are in use" in " ".join(said.split())
    assert 1000 <= report["functions"]["malloc"]["calls"] < 2000


def gaps(report):
    return {entry["path"] for entry in report["allocators"] if entry["gap"]}


def assert_unprobed(run, allocprof, tmp_path, command, path, status):
    """An allocator that was found late is named wherever the numbers are, and completeness is not
    claimed."""
    output, data = tmp_path / "stat.json", tmp_path / "data"
    result = run([allocprof, "stat", "--json", "-o", output, "--", *command], expect=status)
    report = json.loads(output.read_text())
    assert gaps(report) == {path}
    assert report["complete"] is False
    assert f"not complete: allocator {path} was " in result.stderr.decode()
    # In lines of 80 columns.
    text = " ".join(run([allocprof, "stat", "--", *command], expect=status).stderr.decode().split())
    assert f"not complete: allocator {path} was " in text

    result = run([allocprof, "record", "-o", data, "--", *command], expect=status)
    assert f"not complete: allocator {path} was " in result.stderr.decode()
    assert path in [unprobed for _, unprobed, _ in Recording(data).gaps["allocator_unprobed"]]
    assert path in folded(run, allocprof, data)[1].stderr.decode()
    run([allocprof, "folded", "--strict", "-i", data], expect=1)


@pytest.mark.slow
def test_second_libc(run, allocprof, target, tmp_path):
    directory = tmp_path / "libc"
    (name, value), = second_libc(directory).items()
    command = ["sh", "-c", f"{name}={value} {target('every_function')}"]
    assert_unprobed(run, allocprof, tmp_path, command, str(directory / "libc.so.6"), 3)


@pytest.mark.slow
@pytest.mark.parametrize("library", ["libjemalloc.so.2", "libmimalloc.so.*",
                                     "libtcmalloc_minimal.so.4"])
def test_preloaded_allocator(run, allocprof, target, tmp_path, library):
    path = next(iter(LIBRARIES.glob(library)), None)
    if not path:
        conftest.unavailable(f"{LIBRARIES / library} is not installed")
    command = ["sh", "-c", f"LD_PRELOAD={path} {target('threads')}"]
    run(command, expect=0)
    assert_unprobed(run, allocprof, tmp_path, command, str(path.resolve()), 0)


@pytest.mark.engines("uprobe", "preload")
@pytest.mark.slow
def test_complete_otherwise(run, allocprof, target, tmp_path):
    """What these tests look for is not there in normal use."""
    output, data = tmp_path / "stat.json", tmp_path / "data"
    command = [target("launcher"), 3, target("threads")]
    assert run([allocprof, "stat", "--json", "-o", output, "--", *command], expect=0).stderr == b""
    report = read_report(output)
    assert report["complete"] is True and report["relabelled"] == 0
    assert report["processes"] == 4 and gaps(report) == set()
    assert run([allocprof, "record", "-q", "-o", data, "--", *command], expect=0).stderr == b""
    recording = Recording(data)
    assert not recording.gaps
    assert recording.ledger["lost"] == 0


def test_counters_that_cannot_be_read(run, allocprof, target, tmp_path):
    """A counter that the kernel does not hand over is no zero: the run is not complete, and says so."""
    words = [target("many_stacks"), 1000, 10]
    run([allocprof, "stat", "--json", "-o", tmp_path / "report", "--inject", "unread=1", "--", *words])
    report = read_report(tmp_path / "report")
    assert report["counters_unread"] == 1
    assert not report["complete"]
    result = run([allocprof, "stat", "--inject", "unread=1", "--", *words])
    assert b"1 of the kernel's counters could not be read" in b" ".join(result.stderr.split())


@pytest.mark.fast("live")
@pytest.mark.parametrize("live", [[], ["--live"]], ids=["plain", "live"])
def test_recorded_counters_that_cannot_be_read(run, allocprof, target, tmp_path, live):
    """Stacks do not depend on the counters; that nothing is missing does."""
    data = tmp_path / "data"
    run([allocprof, "record", *live, "--inject", "unread=1000000", "-o", data, "--", target("many_stacks"), 1000, 10])
    recording = Recording(data)
    assert recording.gaps["counters_unread"][0][0] > 0
    assert recording.ledger["lost"] == 0
    assert recording.functions["malloc"][0] >= 1000
    for command in (["report", "--strict"], ["folded", "--strict"]):
        result = run([allocprof, *command, data], expect=1)
        assert b"could not be read" in result.stderr
    assert not json.loads(run([allocprof, "report", "--json", data]).stdout)["complete"]


@pytest.mark.fast("stat", "record-live")
@pytest.mark.parametrize("command", [["stat"], ["stat", "--live"], ["record"], ["record", "--live"]],
                         ids=["stat", "stat-live", "record", "record-live"])
def test_end_that_cannot_be_read(run, allocprof, target, tmp_path, command):
    """What was counted last is not taken for nothing: there is no result then, and the reason is told."""
    result = run([allocprof, *command, "-o", tmp_path / "out", "--inject", "last_read=0", "--", target("nothing")],
                 expect=125)
    assert b"cannot collect the counts: Input/output error" in result.stderr
    assert not (tmp_path / "out").exists() or not (tmp_path / "out").stat().st_size


@pytest.mark.parametrize("processes", [1, 2])
def test_forks_without_room(run, allocprof, target, tmp_path, processes):
    """A process that the set has no room for shares nothing with its parent, and takes nothing of it along when it
    ends: what its parent allocates afterwards is the peak."""
    output = tmp_path / "stat.json"
    run([allocprof, "stat", "--live", "--json", "-o", output, "--inject", f"processes={processes}", "--",
         target("last_threads"), 5], expect=0)
    report = read_report(output)
    assert report["processes_unfollowed"] == (5 if processes == 1 else 0)
    assert report["complete"] is (processes > 1)
    assert report["functions"]["malloc"]["calls"] == (1 if processes == 1 else 16)
    assert report["peak_bytes"] == 100000


@pytest.mark.engines("uprobe", why="preload does not see a process end with its last thread, and its blocks stay in the peak")
@pytest.mark.slow
def test_last_threads_that_end_at_a_time(run, allocprof, target, tmp_path):
    """One of them ends the process: its blocks go once. Were they taken off twice, less than 0 bytes would be live
    afterwards, and the peak too low."""
    output = tmp_path / "stat.json"
    run([allocprof, "stat", "--live", "--json", "-o", output, "--", target("last_threads"), 1000], expect=0)
    report = read_report(output)
    assert report["complete"] is True and report["processes"] == 1001
    assert report["functions"]["malloc"]["calls"] == 3001
    assert report["peak_bytes"] == 100000
