# SPDX-License-Identifier: GPL-3.0-or-later
"""What the kernel keeps for millions of live blocks: as much as is told, and as --max-live allows."""

import collections
import dataclasses
import json
import os
import pathlib
import re
import shutil
import subprocess
import time

import pytest

from conftest import unavailable
from support import Recording, shell_status, wait_until

BOUND = 500_000
# Millions of calls, each with a trap or two, and their blocks read at the end.
PATIENCE_SECONDS = 600
# Of sums of what entries take: the maps themselves, and what rounds arrays up to pages.
OF_KERNEL = 0.01
# What the kernel counts for an entry of the tables: 48 of its own, key, block, and a link.
ENTRY_BYTES = 48 + 16 + 40 + 8


def maps_bytes(pid):
    """By map's name, what the kernel says that the maps that a process holds take."""
    maps = {}
    for path in pathlib.Path(f"/proc/{pid}/fdinfo").iterdir():
        info = dict(line.split(":\t", 1) for line in path.read_text().splitlines() if ":\t" in line)
        if "map_id" in info:
            maps[int(info["map_id"])] = int(info["memlock"])
    shown = json.loads(subprocess.run([shutil.which("bpftool") or "/usr/sbin/bpftool", "-j", "map",
                                       "show"], check=True, stdout=subprocess.PIPE).stdout)
    taken = collections.Counter()
    for one in shown:
        taken[one.get("name")] += maps.get(one["id"], 0)
    return taken


def objects():
    """How many pieces of each size the kernel's allocator has handed out."""
    handed_out = collections.Counter()
    for line in pathlib.Path("/proc/slabinfo").read_text().splitlines():
        words = line.split()
        if words[0].startswith("kmalloc-"):
            handed_out[int(words[3])] += int(words[1])
    return handed_out


def settled_objects():
    """When maps that were closed before are gone, which the kernel frees when it has time."""
    def settled():
        before = objects()
        time.sleep(1)
        after = objects()
        return all(before[size] - after[size] < BOUND * OF_KERNEL / 10 for size in before) and after

    return wait_until(settled, "the kernel has freed what it was to free")


@dataclasses.dataclass
class Taken:
    """By the kernel, while all blocks are live."""
    maps: collections.Counter  # bytes by name, as the maps' own sums have it
    entry_bytes: int  # that the kernel's allocator really takes for one

    def bytes(self, blocks):
        return (self.maps["live_table"] + self.maps["record_chunk"] +
                self.maps["histogram_chunk"] + self.maps["index_table"] +
                blocks * (self.entry_bytes - ENTRY_BYTES))


@pytest.fixture
def record_many(runner, allocprof, target, tmp_path):
    """record_many(made, followed, options): the recording of many_live, which makes so many blocks, of which so many
    are followed, what was on stderr, and what the kernel had taken when all of them were live."""
    release = tuple(int(word) for word in re.findall(r"\d+", os.uname().release)[:2])
    if release < (6, 4):
        unavailable("before Linux 6.4 the kernel does not say what maps take, only what they might")

    def record(made, followed, *options):
        before = settled_objects()
        data = tmp_path / "data"
        process = runner.start([allocprof, "record", "--live", *options, "-o", data, "--",
                                target("many_live"), made, 24, "wait"], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert process.stdout.readline() == b"done\n"
        after = objects()
        (entry_bytes,) = [size for size in after if after[size] - before[size] > 0.9 * followed]
        assert after[entry_bytes] - before[entry_bytes] == pytest.approx(followed, rel=OF_KERNEL)
        taken = Taken(maps_bytes(process.pid), entry_bytes)
        _, stderr = process.communicate(timeout=PATIENCE_SECONDS)
        assert shell_status(process.returncode) == 0
        return Recording(data), stderr.decode(), taken

    return record


def test_millions(record_many):
    made = 2_500_000
    recording, stderr, taken = record_many(made, made)
    ledger = recording.ledger
    assert ledger["lost"] == ledger["untracked"] == 0
    assert recording.sql("SELECT sum(allocations), sum(live), sum(live_bytes) FROM memory "
                         "WHERE caller = 'main'") == [(made, made, made * 24)]
    told = int(recording.meta["kernel_bytes"])
    assert told == pytest.approx(taken.bytes(made), rel=OF_KERNEL), taken
    printed = re.search(r"^allocprof: the kernel kept (\d+) MiB for 2,500,000 live blocks, and "
                        r"\S+ MiB for \d+ stacks of processes$", stderr, re.MULTILINE)
    assert printed, stderr
    # "about 165 bytes for each block that is live", with as many left in its tables as of ten million
    assert int(printed[1]) * 2**20 / made == pytest.approx(165, rel=0.06)
    print(f"{printed[0]}; the kernel says {taken.bytes(made):,}: {taken}")


def test_bounded(record_many):
    """Half is followed, the others are counted, and it is half of the memory, too."""
    made = 2 * BOUND
    recording, _, taken = record_many(made, BOUND, "--max-live", BOUND)
    ledger = recording.ledger
    assert ledger["lost"] == 0
    assert ledger["allocations"] == BOUND
    assert ledger["untracked_live_full"] == ledger["untracked"] == made - BOUND
    assert recording.functions["malloc"] == (made, made * 24)
    told = int(recording.meta["kernel_bytes"])
    assert told == pytest.approx(taken.bytes(BOUND), rel=OF_KERNEL), taken
    # That is what --max-live stands for.
    assert told - taken.maps["record_chunk"] < 160 * BOUND
    print(f"told {told:,}, the kernel says {taken.bytes(BOUND):,}: {taken}")
