# SPDX-License-Identifier: GPL-3.0-or-later
"""Live memory as allocprof has it and as the log of events has it, of the same run."""

import collections
import os
import re
import shutil
import signal
import sqlite3
import urllib.parse

import events
from events import Blocks, Calls
from support import EVENTS_LIBRARY, by_address, libc_path, preload_exec, read_report, stack_addresses, stated_cases

# What `record --live` and `stat --live` promise of the peak, which they may see between two drains.
PEAK_BOUND = 0.01
DEPTH = 512
# A deeper stack is cut there; in a recording its first frame is the library's.
MOST_FRAMES = DEPTH - 1
INSIDE = "/inside.so"
# Where sums in the data file stop.
MOST_BYTES = 2**63 - 1
MOST_SHOWN = 6

# Of the data file's table blocks, in the order of Blocks' fields, without the peak.
EXACT = ("allocations", "bytes", "frees", "freed_bytes", "temporary", "temporary_bytes", "failed",
         "discarded", "discarded_bytes")


class Memory:
    """What one side says: calls and blocks by (process id, image of that, function, stack)."""

    def __init__(self):
        self.calls = collections.defaultdict(Calls)
        self.blocks = collections.defaultdict(Blocks)
        self.names = {}  # of frames, where they are known
        self.incomplete = {}  # numbers of incomplete stacks by reason

    def show(self, key):
        pid, image, function, frames = key
        lines = [f"{function} in image {image} of process {pid}:"]
        lines += [f"    {os.path.basename(path or '-')}+{address:#x} "
                  f"{self.names.get((path, address), '')}".rstrip() for path, address in frames]
        if len(lines) > 30:
            lines[20:-8] = [f"    ... {len(lines) - 28} more"]
        return "\n".join(lines)

    @property
    def all_blocks(self):
        return events.total(self.blocks.values(), Blocks)


FIRST_NAMES = {name: names[0] for names in by_address(libc_path()) for name in names}


def numbered(processes):
    """{process: (pid, n)}: of the images of one pid that allocated, in their order, the n-th."""
    seen = collections.Counter()
    numbers = {}
    for process, pid in processes:
        numbers[process] = (pid, seen[pid])
        seen[pid] += 1
    return numbers


# A recording from inside tells functions apart that are one for a probe, and hands reallocarray's calls on to the
# log's library as realloc's.
INSIDE_NAMES = {**FIRST_NAMES, "reallocarray": "realloc"}


def memory_of_log(found, names=FIRST_NAMES):
    """Of events.Figures."""
    memory = Memory()
    # free is not recorded unless asked for, so that an image that only frees may be missing there.
    processes = sorted({key.process for key in found.counts if key.function != "free"})
    numbers = numbered((process, process.pid) for process in processes)
    for of_side, of_log in ((memory.calls, found.counts), (memory.blocks, found.blocks)):
        for key, sums in of_log.items():
            number = numbers.get(key.process, (key.process.pid, None))
            # A recording from inside leaves its library's frames out; the log sees them.
            frames = tuple(frame for frame in key.stack if INSIDE not in (frame[0] or ""))
            of_side[(*number, names[key.function], cut(frames))] += sums
    for sums in memory.calls.values():
        sums.bytes = min(sums.bytes, MOST_BYTES)
    return memory


def cut(frames):
    return frames[:MOST_FRAMES]


def without_library(frames):
    """Between the caller and the C library's function there is a stub of libevents.so."""
    n = 0
    while n < len(frames) and frames[n][0] == str(EVENTS_LIBRARY):
        n += 1
    return cut(frames[n:])


def memory_of_data(path, names=None):
    """Of a data file. @names: those of functions that are one."""
    memory = Memory()
    database = sqlite3.connect(f"file:{urllib.parse.quote(str(path))}?mode=ro", uri=True)
    stacks, memory.names = stack_addresses(database)
    pids = dict(database.execute("SELECT id, pid FROM processes"))
    numbers = numbered(database.execute(
        "SELECT id, pid FROM processes WHERE id IN (SELECT process FROM counts "
        "WHERE function <> 'free') ORDER BY id"))
    keys = {}
    for count, process, stack, function, calls, size in database.execute(
            "SELECT id, process, stack, function, calls, bytes FROM counts"):
        name = names.get(function, function) if names else function
        keys[count] = (*numbers.get(process, (pids[process], None)), name, without_library(stacks[stack]))
        memory.calls[keys[count]] += Calls(calls, size)
    columns = [*EXACT, "peak", "peak_bytes"]
    for count, *values in database.execute(f"SELECT count, {', '.join(columns)} FROM blocks"):
        memory.blocks[keys[count]] += Blocks(**dict(zip(columns, values)))
    ledger = dict(database.execute("SELECT name, value FROM ledger"))
    memory.incomplete = {name: value for name, value in ledger.items() if name.startswith("incomplete_") and value}
    return memory, ledger


def differing(what, expected, found, shown, fields):
    """Sentences on what is not the same by key."""
    wrong = []
    for key in {**expected, **found}:
        ours, theirs = (sums[key] if key in sums else None for sums in (expected, found))
        lines = [f"{name}: the log has {getattr(ours, name, 0)}, allocprof "
                 f"{getattr(theirs, name, 0)}" for name in fields
                 if getattr(ours, name, 0) != getattr(theirs, name, 0)]
        if lines:
            wrong.append(f"{what}, {'; '.join(lines)}\n{shown.show(key)}")
    return [f"{len(wrong)} differ in {what}", *wrong[:MOST_SHOWN]] if wrong else []


def peak_differences(expected, found):
    """Sentences on a peak that is not within the bound, or whose parts are not its sum."""
    peak, got = expected.all_blocks.peak_bytes, found.all_blocks.peak_bytes
    if not peak * (1 - PEAK_BOUND) <= got <= peak:
        return [f"peak: the log has {peak} bytes, allocprof {got}"]
    return []


def differences(expected, found, peak=True):
    """Sentences on all that allocprof says otherwise than the log; @peak is False where it depends
    on the order of events on different threads, which the two may see differently."""
    # Which functions were asked for is the recording's business: free is not by default.
    functions = {key[2] for key in found.calls}
    calls = {key: sums for key, sums in expected.calls.items() if key[2] in functions}
    missing = {key[2] for key in expected.calls} - functions - {"free"}
    wrong = [*(f"{name} is not in the recording" for name in sorted(missing)),
            *differing("calls", calls, found.calls, found, ("calls", "bytes")),
            *differing("blocks", expected.blocks, found.blocks, found, EXACT),
            *(peak_differences(expected, found) if peak else [])]
    # An incomplete stack is not wrong by itself: the log's may end at the same frame.
    return [*wrong, f"of allocprof's stacks: {found.incomplete or 'all complete'}"] if wrong else []


# A child that shares memory with its parent is a part of it for the engine preload (docs/inside.md).
SHARING = {"clone_vm", "vfork_exec"}


def of_all_processes(memory):
    """The same without processes."""
    merged = Memory()
    merged.names = memory.names
    for of_merged, sums in ((merged.calls, memory.calls), (merged.blocks, memory.blocks)):
        for (_, _, function, frames), one in sums.items():
            of_merged[0, 0, function, frames] += one
    return merged


def shared_differences(expected, found, **_):
    """Sentences on what differs where a child shares memory: whose it is, and so what is temporary, is not asked."""
    expected, found = of_all_processes(expected), of_all_processes(found)
    fields = [name for name in EXACT if not name.startswith(("temporary", "discarded"))]
    calls = {key: sums for key, sums in expected.calls.items() if key[2] != "free"}
    return [*differing("calls", calls, found.calls, found, ("calls", "bytes")),
            *differing("blocks", expected.blocks, found.blocks, found, fields)]


# The members of `stat --live --json` for what events.Totals and events.Blocks have.
STAT_TOTALS = {name: name for name in (
    "allocations", "deallocations", "reallocations", "failed", "bytes_allocated",
    "bytes_deallocated", "bytes_reallocated", "total_allocations", "remaining_allocations",
    "total_allocated_bytes", "inherited", "unknown")}
STAT_BLOCKS = {name: name for name in (
    "live", "live_bytes", "temporary", "temporary_bytes", "discarded", "discarded_bytes")}
STAT_PEAK = "peak_bytes"


def stat_differences(report, found, peak=True):
    """Sentences on all that a report of `stat --live` says otherwise than the log."""
    wrong = []

    def expect(what, expected, got):
        if expected != got:
            wrong.append(f"{what}: the log has {expected}, allocprof {got}")

    totals, blocks = found.all_totals, found.all_blocks
    for ours, theirs in STAT_TOTALS.items():
        expect(theirs, getattr(totals, ours), report.get(theirs))
    for ours, theirs in STAT_BLOCKS.items():
        expect(theirs, getattr(blocks, ours), report.get(theirs))
    expect("lost", 0, report["lost"]["total"])
    got = report.get(STAT_PEAK)
    if peak and (got is None or
                 not blocks.peak_bytes * (1 - PEAK_BOUND) <= got <= blocks.peak_bytes):
        wrong.append(f"peak: the log has {blocks.peak_bytes} bytes, allocprof {got}")
    return wrong


class Both:
    """Runs commands under the log and allocprof."""

    def __init__(self, run, log, allocprof, target, directory, engine=None):
        self.names = INSIDE_NAMES if engine == "preload" else None
        self.run = run
        self.log = log
        self.allocprof = allocprof
        self.target = target
        self.directory = directory

    def _run(self, words, argv, wrap, **options):
        made = self.log()
        argv = [str(word) for word in argv]
        # The static launcher tells allocprof nothing of what it will run.
        named = {shutil.which(name) for word in argv for name in re.split(r"[\s;|()&]+", word)}
        expected = [word for name in sorted(named - {None}) for word in ("--expect", name)]
        self.run(wrap([self.allocprof, *words, *expected, "--",
                       preload_exec(), str(made.path), str(made.library), *argv]),
                 **options)
        found = events.analyse(made.read())
        assert found.counts, "the library was not loaded"
        return found

    def record(self, argv, live=True, wrap=list, words=(), **options):
        """The log's memory and the recording's."""
        data = self.directory / "data"
        found = self._run(["record", "-o", str(data), "--max-depth", str(DEPTH),
                           *(["--live"] if live else []), *words], argv, wrap, **options)
        memory, ledger = memory_of_data(data, self.names)
        assert ledger["lost"] == 0, ledger
        return memory_of_log(found, self.names or FIRST_NAMES), memory, found

    def stat(self, argv, live=True, wrap=list, **options):
        """The log's figures and the report."""
        output = self.directory / "out.json"
        found = self._run(["stat", "--json", "-o", str(output), *(["--live"] if live else [])], argv, wrap, **options)
        return found, read_report(output)


def assert_none(wrong):
    assert not wrong, "\n".join(wrong)


CASES = [(name, case) for name in ("live_shapes", "return_hazards") for case in stated_cases(name)]
# Whose peak is a matter of which thread was first.
MANY_AT_ONCE = {"fork", "threads"}


def status_of(case):
    return 128 + signal.SIGKILL if case == "kill" else 0
