# SPDX-License-Identifier: GPL-3.0-or-later
"""Blocks as both engines follow them, against each other, in two runs; test_live.py has both against the log of events."""

import contextlib
import sqlite3
import subprocess

import pytest

from support import read_report, stack_addresses

JQ = ["jq", "-n", "[range(3000) | {a: ., b: tostring}] | group_by(.a % 7) | length"]


COLUMNS = ("allocations, failed, blocks.bytes, frees, freed_bytes, discarded, discarded_bytes, temporary, temporary_bytes, "
           "peak, peak_bytes")


def read(path):
    """What became of the blocks, by function and stack, and the ledger."""
    rows = {}
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as data:
        stacks, _ = stack_addresses(data)
        for function, stack, *figures in data.execute(
                f"SELECT function, stack, calls, {COLUMNS} FROM counts JOIN blocks ON count = id"):
            rows[function, tuple(place if place[0] else None for place in stacks[stack])] = figures
        ledger = dict(data.execute("SELECT name, value FROM ledger"))
        meta = dict(data.execute("SELECT key, value FROM meta"))
        samples = list(data.execute("SELECT * FROM timeline ORDER BY 1, 2"))
        sizes = list(data.execute("SELECT sum(n) FROM (SELECT sum(blocks) n FROM size_histogram)"))
        lived = dict(data.execute("SELECT died IS NULL, sum(blocks) FROM lifetimes GROUP BY 1"))
    return rows, ledger, meta, samples, sizes, lived


@pytest.mark.parametrize("options", [[], ["--max-live=1000", "--max-records=100"]], ids=["all", "limits"])
def test_equal(run, allocprof, tmp_path, options):
    """Each row, the ledger, the histograms and the ends of the time line; a limit cuts off the same."""
    got = []
    for engine in "uprobe", "preload":
        data = tmp_path / engine
        run([allocprof, "record", "-q", "--live", f"--engine={engine}", *options, "-o", data, "--", *JQ])
        got.append(read(data))
    (rows, ledger, meta, samples, *others), (rows_, ledger_, meta_, samples_, *others_) = got
    assert rows and rows == rows_ and ledger == ledger_ and others == others_
    assert meta["peak_bytes"] == meta_["peak_bytes"] and int(meta_["kernel_bytes"]) > 0
    # Time and resident memory are not the same.
    assert samples[0][2:6] == samples_[0][2:6] and samples[-1][2:6] == samples_[-1][2:6]
    assert len(samples_) > 2
    assert ("limits" in str(tmp_path)) == (ledger["lost"] > 0)


def test_stat_equal(run, allocprof, tmp_path):
    reports = []
    for engine in "uprobe", "preload":
        run([allocprof, "stat", "--live", "--json", f"--engine={engine}", "-o", tmp_path / engine, "--", *JQ])
        reports.append(read_report(tmp_path / engine))
    uprobe, preload = reports
    names = [name for name in uprobe if name.startswith(("live", "peak", "temporary", "bytes_", "total_", "remaining"))]
    assert len(names) > 8
    assert {name: uprobe[name] for name in names} == {name: preload[name] for name in names}


def test_interval(run, allocprof, tmp_path):
    """The time line has no more samples than are asked for."""
    data = tmp_path / "data"
    run([allocprof, "record", "-q", "--live", "--engine=preload", "--interval=20ms", "-o", data, "--",
         "sh", "-c", "sleep 1"])
    times = [sample[1] for sample in read(data)[3]]
    assert 4 < len(times) <= times[-1] // 15_000_000 + 3


PEAK = """#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static void *work(void *unused) { void *volatile p = malloc(50000000); free(p); return NULL; }
int main(int argc, char **argv)
{
	void *volatile p = malloc(100000000);
	pthread_t thread;
	free(p);
	if (argc < 2) { pthread_create(&thread, NULL, work, NULL); pthread_join(thread, NULL); return 0; }
	if (!fork()) { work(NULL); exit(0); }
	wait(NULL);
}"""


@pytest.mark.parametrize("how", ["thread", "fork"])
def test_peak_of_others(run, allocprof, tmp_path, how):
    """What the first thread has freed counts as free for a second one, and for a child."""
    (tmp_path / "peak.c").write_text(PEAK)
    subprocess.run(["gcc", "-O1", "-fno-builtin", "-pthread", "-o", tmp_path / "peak", tmp_path / "peak.c"],
                   check=True)
    run([allocprof, "stat", "--live", "--json", "--engine=preload", "-o", tmp_path / "out", "--", tmp_path / "peak",
         *(["fork"] if how == "fork" else [])])
    assert 100_000_000 <= read_report(tmp_path / "out")["peak_bytes"] < 101_000_000


@pytest.mark.parametrize("live", [[], ["--live"]], ids=["plain", "live"])
def test_sample_of_every_byte(run, allocprof, tmp_path, live):
    """Each call is chosen, and stands for itself."""
    got = []
    for engine in "uprobe", "preload":
        data = tmp_path / engine
        run([allocprof, "record", "-q", "--sample=1", f"--engine={engine}", *live, "-o", data, "--", *JQ])
        got.append((*read(data)[:2], samples(data)))
    assert got[0] == got[1] and got[0][1]["not_sampled"] == 0 < got[0][1]["sampled"]


def samples(path):
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as data:
        return list(data.execute("SELECT what, sum(samples), sum(variance), sum(bytes_variance) FROM samples GROUP BY 1"))


@pytest.mark.parametrize("live", [[], ["--live"]], ids=["plain", "live"])
def test_sample(run, allocprof, target, tmp_path, live):
    """Each call is chosen or not; estimates are near the truth: 10 of their standard deviations."""
    data = tmp_path / "data"
    run([allocprof, "record", "-q", "--sample=1000", "--engine=preload", *live, "-o", data, "--",
         target("threads"), "4", "50000"])
    exact = tmp_path / "exact"
    run([allocprof, "record", "-q", "--engine=preload", *live, "-o", exact, "--", target("threads"), "4", "50000"])
    with contextlib.closing(sqlite3.connect(f"file:{data}?mode=ro", uri=True)) as sampled, \
            contextlib.closing(sqlite3.connect(f"file:{exact}?mode=ro", uri=True)) as all_calls:
        ledger = dict(sampled.execute("SELECT name, value FROM ledger"))
        ((calls, size),) = all_calls.execute("SELECT sum(calls), sum(bytes) FROM counts")
        ((estimated, estimated_size),) = sampled.execute("SELECT sum(calls), sum(bytes) FROM counts")
        ((variance, bytes_variance),) = sampled.execute(
            "SELECT sum(variance), sum(bytes_variance) FROM samples WHERE what = 'calls'")
    assert ledger["sampled"] + ledger["not_sampled"] + ledger["lost"] == ledger["events"] == calls
    assert 0 < ledger["sampled"] < calls / 2 and ledger["lost"] == 0
    assert abs(estimated - calls) <= 10 * variance ** 0.5
    assert abs(estimated_size - size) <= 10 * bytes_variance ** 0.5
