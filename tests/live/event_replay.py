# SPDX-License-Identifier: GPL-3.0-or-later
"""Works out of the lines of `export --format=events` what the data file says of calls and blocks."""

import collections
import json

FIELDS = ("calls", "bytes", "failed", "allocations", "allocated_bytes", "frees", "freed_bytes", "discarded",
          "discarded_bytes", "temporary", "temporary_bytes")
# The same of a data file, by process, name of the thread, stack and function.
QUERY = """SELECT c.process, t.name, c.stack, c.function, sum(c.calls), sum(c.bytes), sum(b.failed), sum(b.allocations),
    sum(b.bytes), sum(b.frees), sum(b.freed_bytes), sum(b.discarded), sum(b.discarded_bytes), sum(b.temporary),
    sum(b.temporary_bytes)
  FROM counts c JOIN threads t ON t.id = c.thread JOIN blocks b ON b.count = c.id GROUP BY 1, 2, 3, 4"""
MOST_BYTES = 2**63 - 1


class Replay:
    """@lines: of JSON. Of blocks only what is alive is kept. With sampling an event counts as often as its weight says."""

    def __init__(self, lines):
        self.kinds = collections.Counter()
        self.sites = {}  # number -> sums
        self.keys = {}  # number -> (process, thread's name, stack, function)
        self.live = {}  # id of a block -> (site, size, address, weight, process)
        self.spaces = {}  # process -> address space
        for line in lines:
            self.add(json.loads(line))

    def sums(self, site):
        return self.sites.setdefault(site, collections.Counter())

    def call(self, event):
        weight = event.get("weight", 1)
        self.sums(event["site"]).update(calls=weight, bytes=weight * event["size"] if event["size"] < 1 << 47 else 0)

    def end(self, site, size, weight, temporary):
        self.sums(site).update(frees=weight, freed_bytes=weight * size)
        if temporary:
            self.sums(site).update(temporary=weight, temporary_bytes=weight * size)

    def begin(self, event):
        self.call(event)
        self.keys[event["site"]] = (event["process"], event["thread_name"], event["stack"], event["function"])
        weight = event.get("weight", 1)
        self.sums(event["site"]).update(allocations=weight, allocated_bytes=weight * event["size"])
        assert event["id"] not in self.live, f"the block {event['id']} begins twice"
        self.live[event["id"]] = event["site"], event["size"], event["address"], weight, event["process"]

    def take(self, block, *known):
        assert self.live.pop(block)[:4] == known, f"the block {block} is not what it was"

    def add(self, event):
        kind = event["kind"]
        self.kinds[kind] += 1
        if kind in ("start", "fork", "exec"):
            self.spaces[event["process"]] = event["space"]
        if kind == "exec" and event["ended_space"]:
            self.discard(event["ended_space"])
        elif kind == "alloc":
            self.begin(event)
        elif kind == "realloc":
            weight = event.get("previous_weight", 1)
            self.take(event["id"], event["previous_site"], event["previous_size"], event["previous_address"], weight)
            self.end(event["previous_site"], event["previous_size"], weight, event.get("temporary"))
            self.begin(event)
        elif kind in ("free", "unseen"):
            weight = event.get("weight", 1)
            self.take(event["id"], event["site"], event["size"], event["address"], weight)
            self.end(event["site"], event["size"], weight, event.get("temporary"))
        elif kind in ("failed", "released", "untracked", "unfinished"):
            self.call(event)
            self.keys[event["site"]] = (event["process"], event["thread_name"], event["stack"], event["function"])
            if kind == "failed":
                self.sums(event["site"])["failed"] += event.get("weight", 1)

    def discard(self, space):
        for block, (site, size, _, weight, process) in list(self.live.items()):
            if self.spaces[process] == space:
                self.sums(site).update(discarded=weight, discarded_bytes=weight * size)
                del self.live[block]

    def table(self):
        """{(process, thread's name, stack, function): sums in the order of FIELDS}"""
        table = collections.defaultdict(collections.Counter)
        for site, sums in self.sites.items():
            table[self.keys[site]].update(sums)
        return {key: tuple(min(sums[field], MOST_BYTES) for field in FIELDS) for key, sums in table.items()}


def differences(replay, rows):
    """Sentences on what a Replay has that is not in @rows, the result of QUERY, or the reverse."""
    ours = replay.table()
    theirs = {tuple(row[:4]): tuple(row[4:]) for row in rows}
    return [f"{key}: the log has {dict(zip(FIELDS, ours.get(key, ())))}, the data file "
            f"{dict(zip(FIELDS, theirs.get(key, ())))}" for key in {**ours, **theirs} if ours.get(key) != theirs.get(key)]
