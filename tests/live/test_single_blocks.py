# SPDX-License-Identifier: GPL-3.0-or-later
"""report --blocks: single blocks and what became of them, against a replay of the same event log."""

import collections
import json
import re
import sqlite3

import pytest

KEYS = ("id", "address", "size", "weight", "fate", "temporary")


@pytest.fixture
def listed(run, allocprof):
    """listed(data, options): what report --blocks says as JSON."""
    def read(data, *options):
        return json.loads(run([allocprof, "report", "--blocks", "--json", *options, data], expect=0).stdout)
    return read


class Log:
    """The blocks of an event log: by what each has in KEYS, and when it was allocated, its ends and who ended it."""

    def __init__(self, lines, start_ns):
        self.start_ns, self.alive, self.ended, self.spaces, self.names = start_ns, {}, [], {}, {}
        for line in lines:
            self.add(json.loads(line))
        self.all = self.ended + [{**block, "fate": "alive"} for block in self.alive.values()]

    def end(self, number, event, fate, **more):
        block = self.alive.pop(number)
        self.ended.append({**block, "fate": fate, "ended_at_ns": max(block["allocated_at_ns"], event["time_ns"] - self.start_ns),
                           "temporary": event.get("temporary", False), **more})

    def add(self, event):
        kind = event["kind"]
        if kind in ("start", "fork", "exec"):
            self.spaces[event["process"]] = event["space"]
            for number in [number for number, block in self.alive.items()
                           if event["ended_space"] and self.spaces[block["in"]] == event["ended_space"]]:
                self.end(number, event, "discarded")
        if kind in ("alloc", "realloc"):
            self.names[event["thread"]] = event["thread_name"]
        by = {"thread": event.get("thread"), "thread_name": self.names.get(event.get("thread"))}
        if kind in ("free", "unseen"):
            self.end(event["id"], event, {"free": "freed"}.get(kind, kind), ended_by=by)
        elif kind == "realloc":
            self.end(event["id"], event, "reallocated", ended_by={
                **by, "stack": event["stack"], "address": event["address"], "size": event["size"]})
        if kind in ("alloc", "realloc"):
            self.alive[event["id"]] = {
                "id": event["id"], "address": event["address"], "size": event["size"], "weight": event.get("weight", 1),
                "thread": event["thread"], "thread_name": event["thread_name"], "pid": event["pid"], "function": event["function"],
                "stack": event["stack"], "allocated_at_ns": event["time_ns"] - self.start_ns, "in": event["process"],
                "temporary": False, "ended_at_ns": None, "ended_by": None}


@pytest.fixture
def logged(run, allocprof):
    def read(data):
        lines = run([allocprof, "export", "--format=events", "--backtrace=none", data], expect=0).stdout.decode().splitlines()
        meta = dict(sqlite3.connect(data).execute("SELECT key, value FROM meta"))
        return Log(lines, int(meta["events_start_ns"])).all
    return read


def comparable(block, stack_of=lambda stack: stack):
    """A block without what the log cannot say, and with the stack as reports print it."""
    found = {key: value for key, value in block.items() if key not in ("in", "process", "type")}
    found["stack"] = stack_of(found["stack"])
    if found["ended_by"] and "stack" in found["ended_by"]:
        found["ended_by"] = {**found["ended_by"], "stack": stack_of(found["ended_by"]["stack"])}
    return json.dumps(found, sort_keys=True)


def stack_numbers(run, allocprof, data, report):
    """{stack of the data file: the number under which reports print it}: the smallest one of those that print alike."""
    printed = {stack["stack"] for stack in report["stacks"]}
    answers = {}
    for stack, in sqlite3.connect(data).execute("SELECT DISTINCT stack FROM counts"):
        if stack not in printed:
            found = json.loads(run([allocprof, "report", "--json", f"--stack={stack}", data], expect=0).stdout)
            answers[stack] = min((found["stack"] for found in found["stacks"]), default=stack)
    return answers


@pytest.mark.engines("uprobe", "preload")
@pytest.mark.fast("uprobe-live_random", "preload-live_random")
@pytest.mark.parametrize("command, options", [
    (("live_random", 3, 4, 400), ()),
    (("live_random", 3, 4, 400), ("--sample=512",)),
    (("live_shapes", "exec"), ()),
    (("live_shapes", "vfork_exec"), ()),
    (("live_shapes", "fork_free"), ()),
], ids=["live_random", "sample", "exec", "vfork_exec", "fork_free"])
def test_blocks_of_the_log(run, allocprof, recorded_log, listed, logged, command, options):
    """Each block of the log is listed once, with its end and who ended it, and the sums are those of the whole report."""
    data = recorded_log(*command, options=options)
    report = listed(data)
    ours, theirs = logged(data), report["blocks"]
    numbers = stack_numbers(run, allocprof, data, report)
    assert collections.Counter(comparable(block, lambda stack: numbers.get(stack, stack)) for block in ours) == \
        collections.Counter(comparable(block) for block in theirs)
    assert len(theirs) > 1
    sums, whole = report["single_blocks"], report["all"]
    assert sums["selected"] == sums["logged"] == sum(block["weight"] for block in ours) == whole["allocations"]
    assert sums["bytes"] == sum(block["weight"] * block["size"] for block in ours) == whole["bytes"]
    assert sums["unknown"] == 0
    live = [block for block in theirs if block["fate"] == "alive"]
    assert (sum(block["weight"] for block in live), sum(block["weight"] * block["size"] for block in live)) == \
        (whole["live"], whole["live_bytes"])
    sizes = [block["size"] for block in theirs]
    assert sizes == sorted(sizes, reverse=True)


SELECTED = {
    "size > 100 AND size <= 4096": lambda block: 100 < block["size"] <= 4096,
    "alive": lambda block: block["fate"] == "alive",
    "freed AND lifetime < 0.001": lambda block: block["fate"] != "alive" and
    block["ended_at_ns"] - block["allocated_at_ns"] < 1_000_000,
    "size < 64 OR lifetime BETWEEN 0.0001 AND 0.001": lambda block: block["size"] < 64 or block["fate"] != "alive" and
    100_000 <= block["ended_at_ns"] - block["allocated_at_ns"] <= 1_000_000,
    "function = 'calloc'": lambda block: block["function"] == "calloc",
    "allocated_at >= 0.01 AND function <> 'malloc'": lambda block: block["allocated_at_ns"] >= 10_000_000 and block["function"] != "malloc",
    "through('nowhere')": lambda block: False,
}


def test_selections(recorded_log, listed):
    """An expression is decided by each block's own size and times; options are what they are short for."""
    data = recorded_log("live_random", 5, 4, 400)
    everything = listed(data)["blocks"]
    for expression, holds in SELECTED.items():
        found = listed(data, f"--where={expression}")
        assert found["blocks"] == [block for block in everything if holds(block)], expression
        assert found["single_blocks"]["selected"] == len(found["blocks"])
    assert listed(data, "--min-size=1K")["blocks"] == [block for block in everything if block["size"] >= 1024]
    assert listed(data, "--top=5")["blocks"] == everything[:5]
    by_birth = sorted(everything, key=lambda block: (block["allocated_at_ns"], block["id"]))
    assert listed(data, "--sort=oldest", "--top=7")["blocks"] == by_birth[:7]
    longest = [float("inf") if block["fate"] == "alive" else block["ended_at_ns"] - block["allocated_at_ns"]
               for block in listed(data, "--sort=lifetime")["blocks"]]
    assert longest == sorted(longest, reverse=True)


def test_address(run, allocprof, recorded_log, listed):
    """The history of one address has what was at it, also where it is in the middle of a block, in the order of time."""
    data = recorded_log("live_random", 5, 4, 400)
    everything = listed(data, "--sort=oldest")["blocks"]
    address, _ = collections.Counter(block["address"] for block in everything if block["size"] > 8).most_common(1)[0]
    at = int(address, 16) + 3

    def has(block):
        first = int(block["address"], 16)
        return first <= at < first + block["size"]
    wanted = [block for block in everything if has(block)]
    assert len(wanted) > 1
    assert listed(data, f"--address={at:#x}")["blocks"] == wanted
    text = run([allocprof, "report", f"--address={at:#x}", "--top=0", data], expect=0).stdout.decode()
    shown = re.findall(r"^ *(0x[0-9a-f]+) +([\d,]+) +\S+ \S+ +\S+ \S+ +(\d+)", text, re.M)
    assert [(address, int(size.replace(",", "")), int(stack)) for address, size, stack in shown] == \
        [(block["address"], block["size"], block["stack"]) for block in wanted]
    words = {"alive": "alive at the end", "freed": "freed by ", "reallocated": "reallocated by "}
    lines = [line.strip() for line in text.splitlines() if line.strip().startswith(tuple(words.values()))]
    assert len(lines) == len(wanted)
    assert all(line.startswith(words[block["fate"]]) for line, block in zip(lines, wanted))
    assert f"in {len(wanted)} of {len(everything):,} in the event log" in text


def test_other_logs(run, allocprof, recorded_log, target, tmp_path):
    """A log of another recording, one that was cut off, and none."""
    data = recorded_log("live_random", 5, 4, 400)
    log = data.with_suffix(".events")
    whole = log.read_bytes()
    log.write_bytes(whole[:len(whole) // 2])
    cut = run([allocprof, "report", "--blocks", data], expect=0)
    assert "the recording was cut off" in cut.stderr.decode()
    other = tmp_path / "other"
    run([allocprof, "record", "--events", "-o", other, "--", target("nothing")], expect=0)
    log.write_bytes(other.with_suffix(".events").read_bytes())
    said = run([allocprof, "report", "--blocks", data], expect=2).stderr.decode()
    assert "is of another recording than" in said
    log.unlink()
    assert "no such file" in run([allocprof, "report", "--blocks", data], expect=2).stderr.decode()
    plain = tmp_path / "plain"
    run([allocprof, "record", "--live", "-o", plain, "--", target("nothing")], expect=0)
    said = run([allocprof, "report", "--blocks", plain], expect=2).stderr.decode()
    assert "record with --events" in said


@pytest.mark.parametrize("words, sentence", [
    (["--blocks", "--tree"], "print single blocks; leave out --tree"),
    (["--blocks", "--sort=peak"], "--sort of single blocks is bytes, oldest or lifetime"),
    (["--address=there"], "is no address"),
    (["--address=-1"], "is no address"),
], ids=["tree", "sort", "word", "negative"])
def test_refused(run, allocprof, words, sentence):
    assert sentence in run([allocprof, "report", *words, "none"], expect=64).stderr.decode()
