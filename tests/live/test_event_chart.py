# SPDX-License-Identifier: GPL-3.0-or-later
"""flamegraph --chart: calls in the order in which they were made, against the event log of the same recording."""

import json
import re
import xml.etree.ElementTree

import pytest

SVG = "{http://www.w3.org/2000/svg}"
# With allocations as the cost each call of fewer than 4,096 has a column of its own, and with this width a box.
WIDTH = 100_000


@pytest.fixture
def drawn(run, allocprof):
    """drawn(data, options): the boxes of the chart by row from the root's child on, from left to right: (name, cost)."""
    def draw(data, *options):
        text = run([allocprof, "flamegraph", "--chart", f"--width={WIDTH}", *options, data], expect=0).stdout
        rows = {}
        for group in xml.etree.ElementTree.fromstring(text).iter(f"{SVG}g"):
            box, lines = group.find(f"{SVG}rect"), group.find(f"{SVG}title").text.split("\n")
            cost = next(filter(None, (re.search(r"([\d,]+) (?:allocations?|blocks?|bytes?)\)?$", line) for line in lines[1:])))[1]
            rows.setdefault(float(box.get("y")), []).append((float(box.get("x")), lines[0], int(cost.replace(",", ""))))
        return [[(name, cost) for _, name, cost in sorted(row)] for _, row in sorted(rows.items())][1:]
    return draw


@pytest.fixture
def calls(run, allocprof):
    """calls(data): the calls of the log in their order: ([names from the process on], event)."""
    def read(data):
        lines = run([allocprof, "export", "--format=events", data], expect=0).stdout.decode().splitlines()
        events = [json.loads(line) for line in lines]
        comms = {event["process"]: event["comm"] for event in events if event["kind"] in ("start", "fork", "exec")}
        made = [event for event in events if event["kind"] in ("alloc", "realloc")]
        # The stack of an early call may have been known only later.
        stacks = {event["site"]: event["backtrace"] for event in made if event.get("backtrace")}
        return [([comms[event["process"]], *reversed(stacks[event["site"]]), event["function"]], event)
                for event in sorted(made, key=lambda one: one["time_ns"])]
    return read


def merged(paths, n_labels):
    """The rows of a chart of [(names, cost)], which are in order: what goes on with nothing between is one box. The first
    @n_labels names are one box each."""
    rows, whole = [], {}
    for at, (names, cost) in enumerate(paths):
        before = paths[at - 1][0] if at else []
        same = 0
        while same < min(len(names), len(before)) and names[same] == before[same]:
            same += 1
        for depth, name in enumerate(names):
            while len(rows) <= depth:
                rows.append([])
            if depth < n_labels:
                whole[name] = whole.get(name, 0) + cost
            elif depth < same:
                rows[depth][-1][1] += cost
            else:
                rows[depth].append([name, cost])
    for depth in range(n_labels):
        rows[depth] = list(whole.items())
    return [[tuple(box) for box in row] for row in rows]


@pytest.mark.engines("uprobe", "preload")
@pytest.mark.parametrize("options", [(), ("--sample=512",)], ids=["all", "sampled"])
def test_order_of_the_log(recorded_log, drawn, calls, options):
    """Each row has the frames of the calls in the order of the log; what goes on is one box."""
    data = recorded_log("live_random", 3, 1, 600, options=options)
    made = calls(data)
    assert 100 < len(made) < 4096
    assert drawn(data, "--cost=allocations") == merged([(names, event.get("weight", 1)) for names, event in made], 1)


def test_selected_calls(recorded_log, drawn, calls):
    """Blocks that are not selected are not there."""
    data = recorded_log("live_random", 3, 1, 600)
    made = calls(data)
    sizes = sorted(event["size"] for _, event in made)
    least = sizes[len(sizes) // 2]
    chosen = [(names, 1) for names, event in made if event["size"] >= least]
    assert 0 < len(chosen) < len(made)
    assert drawn(data, "--cost=allocations", f"--where=size >= {least}") == merged(chosen, 1)


@pytest.mark.parametrize("cost", ["bytes", "allocations", "live", "live-bytes", "temporary"])
def test_sums_are_reports(run, allocprof, recorded_log, drawn, cost):
    data = recorded_log("live_random", 3, 4, 400)
    selected = json.loads(run([allocprof, "report", "--json", data], expect=0).stdout)["selected"]
    assert drawn(data, f"--cost={cost}")[0] == [("live_random", selected[cost.replace("-", "_")])]
    assert selected[cost.replace("-", "_")] > 0


@pytest.mark.parametrize("words, sentence", [
    (["--cost=peak"], "--chart is of single calls, of which none has 'peak'"),
    (["--base=none"], "--chart is of one recording"),
], ids=["cost", "base"])
def test_refused(run, allocprof, words, sentence):
    assert sentence in run([allocprof, "flamegraph", "--chart", *words, "none"], expect=64).stderr.decode()


def test_without_a_log(run, allocprof, target, tmp_path):
    data = tmp_path / "data"
    run([allocprof, "record", "-o", data, "--", target("nothing")], expect=0)
    assert "record with --events" in run([allocprof, "flamegraph", "--chart", data], expect=2).stderr.decode()
