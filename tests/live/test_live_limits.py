# SPDX-License-Identifier: GPL-3.0-or-later
"""--live where something ends early or does not fit: what is missing is said, and nothing else is."""

import json
import signal
import sqlite3
import subprocess

import pytest

from support import (Obedient, TIMEOUT_SECONDS, shell_status, wait_until, wait_until_counting)

# Of a timeline without --interval: TIMELINE_SAMPLES, the end's and one that comes before the first are thinned out.
MOST_SAMPLES = 202


def ledger(path):
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as database:
        return dict(database.execute("SELECT name, value FROM ledger"))


def query(path, sql):
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as database:
        return database.execute(sql).fetchall()


def assert_adds_up(path):
    """Each call is in one of the ledger's entries, each block in the tables of blocks."""
    book = ledger(path)
    assert book["events"] == book["attributed"] + book["lost"]
    assert book["attributed"] == book["allocations"] + book["failed"] + book["released"] + \
        book["unfinished"] + book["untracked"]
    assert book["untracked"] == sum(value for name, value in book.items()
                                    if name.startswith("untracked_"))
    ((allocations, size, frees, discarded, failed),) = query(
        path, "SELECT " + ", ".join(f"coalesce(sum({name}), 0)" for name in (
            "allocations", "bytes", "frees", "discarded", "failed")) + " FROM blocks")
    assert (allocations, frees, discarded, failed) == tuple(
        book[name] for name in ("allocations", "frees", "discarded", "failed"))
    ((in_histogram,),) = query(path, "SELECT coalesce(sum(blocks), 0) FROM size_histogram")
    assert in_histogram == allocations
    ((in_epochs, bytes_in_epochs),) = query(
        path, "SELECT coalesce(sum(blocks), 0), coalesce(sum(bytes), 0) FROM lifetimes")
    if not book["lifetimes_missing"] and not book["frees_unseen"]:
        assert (in_epochs, bytes_in_epochs) == (allocations, size)
    ((live,),) = query(path, "SELECT coalesce(sum(blocks), 0) FROM lifetimes WHERE died IS NULL")
    assert live == allocations - frees - discarded
    return book


@pytest.mark.parametrize("words", [["live_random", "9", "4", "4000"], ["return_hazards", "jump"],
                                   ["live_shapes", "exec"], ["live_shapes", "fork_free"]],
                         ids=lambda words: words[-1])
@pytest.mark.parametrize("inject", [None, "sessions=0", "multi=0"])
def test_ledger_adds_up(run, allocprof, target, tmp_path, words, inject):
    data = tmp_path / "data"
    run([allocprof, "record", "--live", *(["--inject", inject] if inject else []), "-o", data,
         "--", target(words[0]), *words[1:]], expect=0)
    book = assert_adds_up(data)
    assert book["lost"] == book["untracked"] == 0


def test_max_live(run, allocprof, target, tmp_path):
    """What does not fit is counted, and of what does fit nothing is lost."""
    data = tmp_path / "data"
    run([allocprof, "record", "--live", "--max-live", "1000", "-o", data,
         "--", target("many_live"), "5000", "24"], expect=0)
    book = assert_adds_up(data)
    assert book["allocations"] == 1000
    assert book["untracked_live_full"] == book["untracked"] >= 4000
    # Whoever reads the recording later is told, too.
    report = run([allocprof, "report", "--json", "--strict", data], expect=1)
    assert json.loads(report.stdout)["complete"] is False and b"(live_full)" in report.stderr
    assert b"%s not followed: not complete" % f"{book['untracked']:,}".encode() in run([allocprof, "report", data], expect=0).stdout
    assert b"NOT COMPLETE" in run([allocprof, "diff", data, data], expect=None).stdout


def test_tables_grow(run, allocprof, target, tmp_path):
    data = tmp_path / "data"
    run([allocprof, "record", "--live", "-o", data, "--", target("many_live"), "400000", "24"],
        expect=0)
    book = assert_adds_up(data)
    assert book["untracked"] == book["lost"] == book["lifetimes_missing"] == 0
    assert book["allocations"] >= 400000


@pytest.mark.slow
def test_tables_grow_while_copies_are_made(runner, run, allocprof, target, tmp_path):
    """A copy is made by a process of its own, which reads the tables while the recorder adds to them. It is made in vain as long as
    the target allocates, and succeeds when that is done and waits."""
    data, copy = tmp_path / "data", tmp_path / "copy"
    record = runner.start([allocprof, "record", "--live", "-o", data, "--", target("many_live"), "400000", "24", "wait"],
                          stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_until(lambda: run([allocprof, "ctl", "-p", record.pid, "dump", "--no-hold", "-o", copy], expect=None).status == 0 and
               assert_adds_up(copy)["allocations"] >= 400000, "all blocks are in a copy")
    record.stdin.close()
    assert record.wait(TIMEOUT_SECONDS) == 0
    book = assert_adds_up(data)
    assert book["untracked"] == book["lost"] == book["lifetimes_missing"] == 0
    assert book["allocations"] >= 400000


def calls_and_stacks(data):
    """Of many_stacks, whose calls come by leaf."""
    ((calls, rows, stacks),) = query(data, "SELECT sum(calls), count(*), count(DISTINCT stack) FROM calls "
                                           "WHERE caller = 'leaf'")
    return calls, rows, stacks


def kernel_bytes(data):
    ((value,),) = query(data, "SELECT value FROM meta WHERE key = 'kernel_bytes'")
    return int(value)


@pytest.mark.slow
def test_processes_that_have_ended_leave_room(runner, run, allocprof, target, tmp_path):
    """Each of 32 processes, one after the other, calls by the same 8,192 stacks: the kernel keeps far fewer than
    all of these quarter of a million, and none is lost. Had it kept all, they alone were 46 MB. A process begins once
    allocprof has answered, so that a busy machine does not let it fall behind by many of them."""
    data = tmp_path / "data"
    loop = 'echo ready; while read line; do "$1" 8192 8192 >&2 || exit; echo done; done'
    record = Obedient(runner, [allocprof, "record", "--live", "-o", data, "--", "sh", "-c", loop, "sh",
                               target("many_stacks")], stderr=subprocess.DEVNULL)
    for _ in range(32):
        record.ask("run")
        run([allocprof, "ctl", "-p", record.pid, "status"], expect=0)
    record.exit()
    book = assert_adds_up(data)
    assert book["lost"] == book["untracked"] == book["histograms_missing"] == 0
    assert calls_and_stacks(data) == (32 * 8192, 32 * 8192, 8192)
    # Of each process and each stack its one block, of the right size and freed.
    ((blocks, freed, sizes),) = query(
        data, "SELECT sum(allocations), sum(frees), sum(bytes) FROM memory WHERE caller = 'leaf'")
    assert (blocks, freed, sizes) == (32 * 8192, 32 * 8192, 32 * 128 * sum(range(1, 65)))
    assert query(data, "SELECT sum(h.blocks) FROM size_histogram h JOIN calls c ON c.count = h.count "
                       "WHERE caller = 'leaf'") == [(32 * 8192,)]
    assert kernel_bytes(data) < 30e6


@pytest.mark.slow
def test_many_stacks_of_one_process(run, allocprof, target, tmp_path):
    """More than the kernel side has room for at first: tables of records grow."""
    data = tmp_path / "data"
    run([allocprof, "record", "--live", "-o", data, "--", target("many_stacks"), "100000", "100000"], expect=0)
    book = assert_adds_up(data)
    assert book["lost"] == book["untracked"] == book["histograms_missing"] == 0
    assert calls_and_stacks(data) == (100000, 100000, 100000)


def test_max_records(run, allocprof, target, tmp_path):
    """The message names the limit's option, and sampling."""
    data = tmp_path / "data"
    result = run([allocprof, "record", "--live", "--max-records", "500", "-o", data,
                  "--", target("many_stacks"), "1000", "1000"], expect=0)
    book = assert_adds_up(data)
    assert book["lost_counts_full"] == book["lost"] >= 500
    assert query(data, "SELECT value FROM meta WHERE key = 'max_records'") == [("500",)]
    assert b"(counts_full)" in result.stderr
    assert b"--max-records" in result.stderr and b"--sample" in result.stderr


@pytest.mark.parametrize("inject, reason", [("counts=2", "lost_counts_full"),
                                            ("scratch=0", "lost_no_scratch"),
                                            ("threads=1", "untracked_threads_full")])
def test_losses_are_told(run, allocprof, target, tmp_path, inject, reason):
    data = tmp_path / "data"
    result = run([allocprof, "record", "--live", "--inject", inject, "-o", data,
                  "--", target("threads"), "4", "500"], expect=0)
    assert ledger(data)[reason] > 0
    assert_adds_up(data)
    assert b"not complete" in result.stderr


def test_signal_stack_above(run, allocprof, target, tmp_path):
    """A handler's stack may lie above that of the call that it interrupts: both calls return."""
    data = tmp_path / "data"
    run([allocprof, "record", "--live", "-o", data, "--", target("signal_stack")], expect=0)
    book = assert_adds_up(data)
    assert book["lost"] == book["untracked"] == book["unfinished"] == 0
    assert query(data, "SELECT caller, sum(allocations), sum(bytes), sum(live) FROM memory "
                       "WHERE caller IN ('handle', 'work') GROUP BY caller ORDER BY caller") == [
        ("handle", 10, 330, 10), ("work", 10, 770, 0)]


def test_killed_target(run, allocprof, target, tmp_path):
    data = tmp_path / "data"
    run([allocprof, "record", "--live", "-o", data, "--", target("live_shapes"), "kill"],
        expect=128 + signal.SIGKILL)
    book = assert_adds_up(data)
    assert book["allocations"] - book["frees"] >= 4
    (ended,) = query(data, "SELECT count(*) FROM processes WHERE end_ns = 0")
    assert ended == (0,)


def test_interrupted_recording(runner, run, allocprof, target, tmp_path):
    """Ctrl-C on allocprof where a process is attached to."""
    data = tmp_path / "data"
    obedient = Obedient(runner, [target("sleeper")])
    process = runner.start([allocprof, "record", "--live", "-o", data, "-p", str(obedient.pid)])
    wait_until_counting(allocprof, process)
    obedient.ask("keep 5")
    obedient.ask("release 2")
    process.send_signal(signal.SIGINT)
    assert shell_status(process.wait(TIMEOUT_SECONDS)) == 0
    book = assert_adds_up(data)
    assert (book["allocations"], book["frees"]) == (5, 2)
    obedient.exit()


def test_attach_and_leave(runner, run, allocprof, target, tmp_path):
    """10 times, at a process whose threads allocate all the time, which notices nothing."""
    obedient = Obedient(runner, [target("pairs"), "4"])
    seen = 0
    for _ in range(10):
        data = tmp_path / "data"
        run([allocprof, "record", "--live", "--duration", "50ms", "-o", data,
             "-p", str(obedient.pid)], expect=0)
        book = assert_adds_up(data)
        assert book["lost"] == book["untracked"] == 0
        seen += book["allocations"]
    assert seen
    obedient.exit()


def test_timeline(runner, run, allocprof, target, tmp_path):
    """It is read when all blocks are there: how often the recorder came to it before is not known."""
    data, dump = tmp_path / "data", tmp_path / "dump"
    process = runner.start([allocprof, "record", "--live", "-o", data, "--", target("many_live"), "500000", "100",
                            "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"done\n"

    def has_all():
        run([allocprof, "ctl", "-p", process.pid, "dump", "-o", dump], expect=0)
        ((most,),) = query(dump, "SELECT max(rss_bytes) FROM timeline")
        return most >= 50000000

    wait_until(has_all, "its memory is in the timeline")
    process.stdin.close()
    assert process.wait(TIMEOUT_SECONDS) == 0
    samples = query(data, "SELECT time_ns, live, live_bytes, allocations, bytes, rss_bytes "
                          "FROM timeline ORDER BY time_ns")
    assert 3 <= len(samples) <= MOST_SAMPLES
    assert samples[0] == (0,) * 6
    assert samples[-1][1] >= 500000 and samples[-1][2] >= 50000000
    assert all(a[3] <= b[3] and a[4] <= b[4] for a, b in zip(samples, samples[1:]))
    assert max(sample[5] for sample in samples) >= 50000000
    # As fine as there was room for at the last reading, which on a busy machine is after the end.
    ((born,),) = query(data, "SELECT max(born) FROM lifetimes")
    meta = dict(query(data, "SELECT key, value FROM meta"))
    epochs = float(meta["elapsed_seconds"]) * 1e9 / int(meta["epoch_ns"])
    assert born <= epochs < 1025 and epochs > 60


def times_of(data):
    return [time for (time,) in query(data, "SELECT time_ns FROM timeline ORDER BY time_ns")]


def test_interval_longer_than_the_run(run, allocprof, target, tmp_path):
    """Its beginning and its end."""
    data = tmp_path / "data"
    run([allocprof, "record", "--live", "--interval", "1h", "-o", data, "--", target("many_live"), "5000", "100"],
        expect=0)
    samples = query(data, "SELECT time_ns, live FROM timeline ORDER BY time_ns")
    assert len(samples) == 2 and samples[0] == (0, 0)
    assert samples[1][0] > 0 and samples[1][1] >= 5000


def test_interval(runner, run, allocprof, target, tmp_path):
    """At most one sample in each interval, and as many as the run has, where without one some go again."""
    data, dump = tmp_path / "data", tmp_path / "dump"
    obedient = Obedient(runner, [allocprof, "record", "--live", "--interval", "2ms", "-o", data, "--",
                                 target("sleeper")])

    # The last sample of a copy, and of the recording, is that of its own moment.
    def more_than_without():
        run([allocprof, "ctl", "-p", obedient.pid, "dump", "-o", dump], expect=0)
        return len(times_of(dump)[:-1]) > MOST_SAMPLES

    wait_until(more_than_without, "there are more samples than there may be without an interval")
    obedient.exit()
    intervals = [time // 2000000 for time in times_of(data)[:-1]]
    assert len(intervals) > MOST_SAMPLES and len(intervals) == len(set(intervals))


def test_select_and_live(run, allocprof):
    result = run([allocprof, "record", "--live", "-e", "malloc", "--", "true"], expect=64)
    assert b"--live has to see every function" in result.stderr


@pytest.mark.parametrize("inject", [None, "multi=0"])
def test_own_allocator(run, allocprof, target, tmp_path, inject):
    """Of an allocator that is not a well-known one no return address is touched."""
    data = tmp_path / "data"
    run([allocprof, "record", "--live", *(["--inject", inject] if inject else []), "-o", data,
         "--", target("own_malloc")], expect=0)
    book = assert_adds_up(data)
    assert {name: book[name] for name in ("allocations", "reallocations", "frees", "lost",
                                          "untracked", "frees_unknown")} == {
        "allocations": 63, "reallocations": 10, "frees": 51, "lost": 0, "untracked": 0,
        "frees_unknown": 0}
    assert query(data, "SELECT sum(temporary), sum(bytes - freed_bytes) FROM blocks") == [(20, 2158)]


def test_stat_json(run, allocprof, target, tmp_path):
    output = tmp_path / "out.json"
    run([allocprof, "stat", "--live", "--json", "-o", output, "--", target("every_function")],
        expect=3)
    report = json.loads(output.read_text())
    assert report["basis"] == "allocations"
    assert report["complete"] is True
    assert report["live_bytes"] == report["bytes_allocated"] - report["bytes_deallocated"]
    assert report["bytes_reallocated"] is not None
    assert report["kernel_memory"]["bytes"] > 0


@pytest.mark.parametrize("how", ["exec", "exit"])
def test_memory_outlives_its_process(run, allocprof, target, tmp_path, how):
    """The memory of a process that exits is in use until those that share it exit or execute a program, as after vfork(2)."""
    report = tmp_path / "report"
    run([allocprof, "stat", "--live", "--json", "-o", report, "--", target("outlived"), how], expect=0)
    figures = json.loads(report.read_text())
    assert figures["complete"] and 1_000_000 <= figures["peak_bytes"] < 2_000_000
    data = tmp_path / "data"
    run([allocprof, "record", "--live", "-o", data, "--", target("outlived"), how], expect=0)
    book = assert_adds_up(data)
    assert book["discarded"] == 0
    assert query(data, """SELECT sum(blocks), sum(bytes), count(exited) = count(*) FROM lifetimes
        WHERE bytes >= 1000000""") == [(3, 3_000_000, 1)]
    ((peak,),) = query(data, "SELECT value FROM meta WHERE key = 'peak_bytes'")
    assert 1_000_000 <= int(peak) < 2_000_000
