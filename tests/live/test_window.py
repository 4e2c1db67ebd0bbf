# SPDX-License-Identifier: GPL-3.0-or-later
"""The measured window: what --within, --start-on, --stop-on and --delay count is what the target counts
itself, as stats_alloc does (tests/targets/window.cpp)."""

import re

import pytest

from support import Recording, figures, read_report

WAYS = ["return", "recurse", "throw", "jump", "threads"]
MEASURED = "service::measured"


def own_figures(result):
    """What the target printed of itself."""
    return figures(result.stdout.decode().strip())


def stat(run, allocprof, tmp_path, options, argv, status=0):
    output = tmp_path / "stat.json"
    result = run([allocprof, "stat", "--json", "-o", output, *options, "--", *argv], expect=status)
    return read_report(output), result


def record(run, allocprof, tmp_path, options, argv, status=0):
    data = tmp_path / "window.data"
    result = run([allocprof, "record", "-o", data, *options, "--", *argv], expect=status)
    return Recording(data), result


def assert_stat(report, own, way=None):
    got = {"calls": report["total_allocations"], "frees": report["deallocations"]}
    expected = {"calls": own["calls"], "frees": own["frees"]}
    # How large an exception is is the C++ library's business.
    if way != "throw":
        got["bytes"], expected["bytes"] = report["total_allocated_bytes"], own["bytes"]
    assert got == expected
    assert report["window_opened"] and not report["undecided"] and report["complete"], report


@pytest.mark.parametrize("way", WAYS)
def test_stat_within(run, allocprof, target, tmp_path, way):
    report, result = stat(run, allocprof, tmp_path, ["--within", MEASURED],
                          [target("window"), way])
    assert_stat(report, own_figures(result), way)


@pytest.mark.parametrize("way", WAYS)
def test_record_within(run, allocprof, target, tmp_path, way):
    recording, result = record(run, allocprof, tmp_path, ["--within", MEASURED],
                               [target("window"), way])
    own = own_figures(result)
    assert recording.ledger["events"] == own["calls"]
    assert not recording.unbalanced()
    assert (recording.ledger["lost"], recording.ledger["undecided"]) == (0, 0)
    if way != "throw":
        assert sum(size for _, size in recording.functions.values()) == own["bytes"]
    assert recording.meta["window_within"] == MEASURED
    assert recording.meta["window_opened"] == "1"
    assert all(MEASURED in text for text in recording.texts()), recording.texts()


@pytest.mark.parametrize("command", ["stat", "record"])
@pytest.mark.parametrize("way", WAYS)
def test_live_within(run, allocprof, target, tmp_path, command, way):
    """What is inside is followed until it ends: here it all does, the exceptions outside."""
    options = ["--live", "--within", MEASURED]
    if command == "stat":
        report, result = stat(run, allocprof, tmp_path, options, [target("window"), way])
        assert report["total_allocations"] == own_figures(result)["calls"]
        assert (report["live"], report["untracked"]["total"], report["undecided"]) == (0, 0, 0)
        assert report["deallocations"] == report["total_allocations"]
        return
    recording, result = record(run, allocprof, tmp_path, options, [target("window"), way])
    ledger = recording.ledger
    assert ledger["events"] == own_figures(result)["calls"]
    assert (ledger["allocations"], ledger["frees"]) == (ledger["events"], ledger["events"])
    assert (ledger["frees_unknown"], ledger["undecided"]) == (0, 0)


@pytest.mark.parametrize("name", ["service::measured(way, int)", "_ZN7service8measuredE3wayi"])
def test_names(run, allocprof, target, tmp_path, name):
    report, result = stat(run, allocprof, tmp_path, ["--within", name],
                          [target("window"), "recurse"])
    assert_stat(report, own_figures(result))


BETWEEN = ["--start-on", "window_opens", "--stop-on", "window_closes"]


@pytest.mark.parametrize("inject", [[], ["--inject", "multi=0"]], ids=["multi", "single"])
def test_stat_between(run, allocprof, target, tmp_path, inject):
    report, result = stat(run, allocprof, tmp_path, [*BETWEEN, *inject],
                          [target("window"), "between"])
    assert_stat(report, own_figures(result))


@pytest.mark.parametrize("live", [[], ["--live"]], ids=["plain", "live"])
def test_record_between(run, allocprof, target, tmp_path, live):
    recording, result = record(run, allocprof, tmp_path, [*BETWEEN, *live],
                               [target("window"), "between"])
    assert recording.ledger["events"] == own_figures(result)["calls"]
    assert not recording.unbalanced()
    if live:
        assert recording.ledger["frees"] == recording.ledger["events"]


MARKS = {
    "part": {"calls": 4 + 2, "frees": 4},  # of two of the four passes an exception is thrown
    "plain": {"calls": 1, "frees": 1, "bytes": 300},
}


@pytest.mark.parametrize("name", MARKS)
def test_usdt(run, allocprof, target, tmp_path, name):
    """Regions that the program marks with include/allocprof.h."""
    report, _ = stat(run, allocprof, tmp_path,
                     ["--start-on", f"sdt:allocprof_begin:{name}",
                      "--stop-on", f"sdt:allocprof_end:{name}"], [target("window"), "marked"])
    assert_stat(report, MARKS[name], "throw" if name == "part" else None)


def test_forked_child_is_where_its_parent_was(run, allocprof, target, tmp_path):
    """The parent's window is open: the child's too; and that of a program it runs is not."""
    report, result = stat(run, allocprof, tmp_path, ["--start-on", "window_opens"],
                          [target("window"), "fork"])
    # One block each; what comes before window_opens() is not counted.
    assert (report["total_allocations"], report["total_allocated_bytes"]) == (2, 110)
    assert report["processes"] == 2
    script = f"{target('window')} between"
    report, result = stat(run, allocprof, tmp_path,
                          [*(o if o.startswith("--") else f"{o}@{target('window')}"
                             for o in BETWEEN)],
                          ["/bin/sh", "-c", f"{script}; {script}"])
    totals = [figures(line) for line in result.stdout.decode().splitlines()]
    assert report["total_allocations"] == sum(one["calls"] for one in totals)
    assert report["window_opened"]


def test_library_by_soname(run, allocprof, target, tmp_path):
    """A function of a library that the command starts with."""
    report, _ = stat(run, allocprof, tmp_path, ["--within", "strdup@libc.so.6"],
                     ["/bin/sh", "-c", "true"])
    assert report["complete"]


def never(result, report):
    assert b"nothing was measured" in result.stderr
    assert report["window_opened"] is False and not report["complete"]
    assert report["total_allocations"] == 0


@pytest.mark.parametrize("options, why", [
    (["--within", "never_called"], "the function of --within was not called"),
    (["--start-on", "never_called"], "the function of --start-on was not called"),
    (["--within", "f@libnothing.so.1"], "did not load the file"),
    (["--delay", "1h"], "before the delay was over"),
], ids=["within", "start-on", "file", "delay"])
def test_never_opened(run, allocprof, target, tmp_path, options, why):
    """No silent zero: it is said, and a command that ended well is no success."""
    argv = [target("window"), "return"]
    report, result = stat(run, allocprof, tmp_path, options, argv, status=125)
    never(result, report)
    assert why in report["window"]["why_not_opened"]
    recording, result = record(run, allocprof, tmp_path, options, argv, status=125)
    assert recording.meta["window_opened"] == "0"
    assert recording.ledger["events"] == 0
    folded = run([allocprof, "folded", "--strict", "-i", tmp_path / "window.data"])
    assert folded.status != 0 and b"nothing was measured" in folded.stderr


def test_opened_and_nothing_allocated(run, allocprof, target, tmp_path):
    """A function that ran and allocated nothing is a true zero."""
    report, _ = stat(run, allocprof, tmp_path, ["--within", "service::other(int)"],
                     [target("window"), "return"])
    assert report["window_opened"] and report["complete"]
    assert report["total_allocations"] == 0


def test_status_of_the_command_stays(run, allocprof, target, tmp_path):
    stat(run, allocprof, tmp_path, ["--within", "never_called"], [target("window"), "what"], 2)


@pytest.mark.parametrize("options, words", [
    (["--within", "service::other"], ["several functions", "service::other(int)",
                                      "service::other(char const*)"]),
    (["--within", "service::mesured"], ["no function", "service::measured"]),
    (["--start-on", "nothing_like_it_at_all"], ["no function", "inlined"]),
    (["--within", "main@/nowhere/at/all"], ["--within", "/nowhere/at/all", "No such file"]),
    (["--within", "nothing_like_it@libc.so.6"], ["no function", "libc.so.6"]),
    (["--start-on", "main", "--stop-on", "main"], ["the same function"]),
    (["--within", "@file"], ["SYMBOL@FILE"]),
    (["--start-on", "sdt:allocprof_begin:prat"], ["no USDT probe", "allocprof_begin:part"]),
    (["--within", "sdt:allocprof_begin:part"], ["takes a function"]),
], ids=["ambiguous", "misspelt", "missing", "no-file", "missing-in-library", "same", "empty",
        "usdt", "within-usdt"])
@pytest.mark.parametrize("command", ["stat", "record"])
def test_refused(run, allocprof, target, tmp_path, command, options, words):
    """The command does not run; one sentence says why."""
    result = run([allocprof, command, "-o", tmp_path / "out", *options, "--", target("window")],
                 expect=125)
    message = result.stderr.decode()
    assert len(message.splitlines()) == 1, message
    for word in words:
        assert word in message, message
    assert result.stdout == b""


def test_refused_together(run, allocprof, target):
    result = run([allocprof, "stat", "--delay", "1s", "--start-on", "main", "--",
                  target("window")], expect=64)
    assert b"one beginning" in result.stderr


def test_address(run, allocprof, target, tmp_path):
    """One of several functions is named by its address, as the sentence tells it."""
    refused = run([allocprof, "stat", "--within", "service::other", "--", target("window")])
    address = re.search(r"service::other\(int\) at (0x[0-9a-f]+)", refused.stderr.decode())[1]
    report, _ = stat(run, allocprof, tmp_path, ["--within", address],
                     [target("window"), "return"])
    assert report["window_opened"]


@pytest.mark.parametrize("inject", [[], ["--inject", "multi=0"]], ids=["multi", "single"])
def test_semaphore(run, allocprof, target, tmp_path, inject):
    """A probe that is passed only while somebody counts."""
    assert run([target("semaphore")], expect=0).stdout == b"0\n"
    report, result = stat(run, allocprof, tmp_path, ["--start-on", "sdt:app:request", *inject],
                          [target("semaphore")])
    assert result.stdout == b"1\n"
    assert (report["total_allocations"], report["total_allocated_bytes"]) == (2, 5)
    assert run([target("semaphore")], expect=0).stdout == b"0\n"


def test_stripped(run, allocprof, target, tmp_path):
    """Without symbols it is refused, and says so; with those of a debug file it works."""
    program = tmp_path / "window"
    run(["strip", "-o", program, target("window")], expect=0)
    result = run([allocprof, "stat", "--within", MEASURED, "--", program], expect=125)
    assert b"stripped" in result.stderr
    run(["objcopy", "--only-keep-debug", target("window"), tmp_path / "window.debug"], expect=0)
    run(["objcopy", "--strip-all", f"--add-gnu-debuglink={tmp_path / 'window.debug'}",
         target("window"), program], expect=0)
    report, result = stat(run, allocprof, tmp_path, ["--within", MEASURED], [program, "recurse"])
    assert_stat(report, own_figures(result))


@pytest.mark.parametrize("options", [
    ["--within", MEASURED], BETWEEN], ids=["within", "between"])
@pytest.mark.parametrize("command", [["stat"], ["stat", "--live"], ["record"], ["record", "--live"]],
                         ids=" ".join)
@pytest.mark.parametrize("way", [*WAYS, "between", "fork"])
def test_no_harm(run, allocprof, target, tmp_path, command, options, way):
    argv = [target("window"), way]
    bare = run(argv)
    ours = run([allocprof, *command, "-o", tmp_path / "out", *options, "--", *argv])
    assert ours.stdout == bare.stdout
    opened = (way in ("between", "fork")) == (options == BETWEEN) or way == "fork"
    assert ours.status == (bare.status or (0 if opened else 125)), ours
