# SPDX-License-Identifier: GPL-3.0-or-later
"""What targets run under: nothing, an empty program, allocprof and the tools in use elsewhere."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import sqlite3
import subprocess

TRACEFS = pathlib.Path("/sys/kernel/tracing")

# A stack that begins in one of these is whole, or in what calls one of CALLED_BY_OUTERMOST: in a
# stripped program _start has no name, nor has its like in the dynamic linker.
OUTERMOST = {"_start", "_dl_start_user", "clone3", "__clone3", "__GI___clone3", "clone", "__clone"}
CALLED_BY_OUTERMOST = ("__libc_start_main", "_dl_init")

# Enough to tell how many stacks are whole; unwinding one takes perf a millisecond.
PERF_SAMPLES_UNWOUND = 300


class Failure(Exception):
    """A tool that did not do its work; the text goes into the table."""


class Tool:
    name = ""
    program = ""  # in PATH
    floor = "floor-record"  # what its cost is held against: an empty program on the same calls
    ours = False

    def __init__(self):
        self.missing = ""  # why it cannot run here
        self.version = ""
        if self.program and not shutil.which(self.program):
            self.missing = f"{self.program} is not installed"

    def prepare(self, libc):
        """Before the first run; @libc is the path that the targets use."""

    def clean_up(self):
        """After the last run, also where prepare() failed."""

    def argv(self, command, directory):
        """The command line that runs @command and leaves its files in @directory."""
        raise NotImplementedError

    def results(self, directory, stderr):
        """Of a run that has ended: events in its result, and those that it says it lost, if so."""
        return {}

    def stacks(self, directory):
        """Outermost two frames, outermost first, and events of each stack, or of some of them."""
        return []

    def share_complete(self, directory):
        """Of the events in the result, those whose stack is whole; None where it has no stacks."""
        stacks = list(self.stacks(directory))
        whole = sum(events for frames, events in stacks if is_whole(frames))
        return whole / sum(events for _, events in stacks) if stacks else None

    def hits(self, counts):
        """How often its probes are hit."""
        return counts["hits_but_free"] if self.floor == "floor-record" else counts["hits"]

    def expected(self, counts):
        """What @events of its results should be."""
        return self.hits(counts)


class Bare(Tool):
    name = "bare"
    ours = True

    def argv(self, command, directory):
        return command


class Floor(Tool):
    ours = True

    def __init__(self, command, build):
        self.command = command
        self.name = self.floor = f"floor-{command}"
        self.path = build / "bench" / "floor"
        super().__init__()

    def argv(self, command, directory):
        return [str(self.path), self.command, *command]


class Stat(Tool):
    name = "stat"
    floor = "floor-stat"
    ours = True
    options = []

    def __init__(self, build):
        super().__init__()
        self.path = build / "cli" / "allocprof"
        self.version = first_line([self.path, "--version"])

    def argv(self, command, directory):
        return [str(self.path), "stat", *self.options, "--json", "-o", f"{directory}/stat.json", "--",
                *command]

    def counts(self, directory):
        """What a target does, by which all tools are judged."""
        stat = json.loads((directory / "stat.json").read_text())
        hits = {name: entry["calls"] + entry["internal"]
                for name, entry in stat["functions"].items()}
        total = sum(hits.values())
        return {"hits": total, "hits_but_free": total - hits.get("free", 0),
                "allocations": stat["allocations"] + stat["reallocations"],
                "allocators": [entry["path"] for entry in stat["allocators"]],
                "lost": stat["lost"]["total"]}

    def results(self, directory, stderr):
        counts = self.counts(directory)
        return {"events": counts["hits"], "lost": counts["lost"]}


def open_data(directory):
    return contextlib.closing(sqlite3.connect(f"file:{directory}/allocprof.data?mode=ro", uri=True))


class Record(Tool):
    name = "record"
    ours = True
    options = []

    def __init__(self, build):
        super().__init__()
        self.path = build / "cli" / "allocprof"

    def argv(self, command, directory):
        return [str(self.path), "record", *self.options, "-o", f"{directory}/allocprof.data", "--",
                *command]

    def ledger(self, directory):
        with open_data(directory) as data:
            return dict(data.execute("SELECT name, value FROM ledger"))

    def results(self, directory, stderr):
        ledger = self.ledger(directory)
        return {"events": ledger["attributed"], "lost": ledger["lost"]}

    def expected(self, counts):
        return counts["allocations"]

    def share_complete(self, directory):
        ledger = self.ledger(directory)
        return ledger["complete"] / max(ledger["events"], 1)


class Live(Record):
    name = "live"
    floor = "floor-live"
    options = ["--live"]


class LiveStat(Stat):
    name = "live-stat"
    floor = "floor-live"
    options = ["--live"]


class RecordSample(Record):
    """What is sampled has its stack walked; all others pay for the probe alone."""

    name = "record-sample"
    options = ["--sample", "512K"]

    def results(self, directory, stderr):
        ledger = self.ledger(directory)
        return {"events": ledger["sampled"] + ledger["not_sampled"], "lost": ledger["lost"]}

    def share_complete(self, directory):
        ledger = self.ledger(directory)
        return ledger["complete"] / max(ledger["attributed"], 1)


class LiveSample(RecordSample):
    name = "live-sample"
    floor = "floor-live"
    options = ["--live", "--sample", "512K"]


def by_preload(base):
    """The same command with the engine that counts inside of the process. Its floor stays that of uprobes."""

    class Preload(base):
        name = f"preload-{base.name}"
        options = [*base.options, "--engine=preload"]

    return Preload


class Perf(Tool):
    """Its probes are made as perf probe makes them, at the entries of libc's functions."""

    program = "perf"

    def __init__(self):
        super().__init__()
        self.group = f"bench_{self.name.replace('-', '_')}_{os.getpid()}"
        self.names = []
        if not self.missing:
            self.version = first_line(["perf", "--version"])

    def prepare(self, libc):
        offsets = symbol_offsets(libc)
        lines = [f"p:{self.group}/{name} {libc}:{offset:#x}" for name, offset in offsets.items()]
        self.names = list(offsets)
        write_probes(lines)

    def clean_up(self):
        write_probes([f"-:{self.group}/{name}" for name in self.names])
        self.names = []

    def probes(self):
        return ",".join(f"{self.group}:{name}" for name in self.names)


class PerfStat(Perf):
    name = "perf-stat"

    def argv(self, command, directory):
        return ["perf", "stat", "-x", ",", "-o", f"{directory}/stat.csv", "-e", self.probes(), "--",
                *command]

    def results(self, directory, stderr):
        lines = (directory / "stat.csv").read_text().splitlines()
        fields = [line.split(",") for line in lines if self.group in line]
        return {"events": sum(int(words[0]) for words in fields)}


class PerfRecord(Perf):
    name = "perf-record"

    def argv(self, command, directory):
        return ["perf", "record", "--call-graph", "dwarf,16384", "-m", "50000", "-o",
                f"{directory}/perf.data", "-e", self.probes(), "--", *command]

    def results(self, directory, stderr):
        found = re.search(r"\((?:~)?(\d+) samples\)", stderr)
        if not found:
            raise Failure(f"perf did not tell its samples: {stderr[-200:]}")
        return {"events": int(found[1])}

    def stacks(self, directory):
        # From the middle: the first samples are the loader's.
        argv = ["perf", "script", "-i", f"{directory}/perf.data", "-F", "comm,ip,sym",
                "--time", "50%-100%"]
        script = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                  text=True)
        samples = 0
        frames = []
        for line in script.stdout:
            if line[0] == "\t":
                _, _, name = line.strip().partition(" ")
                frames = [name.split(" ")[0], *frames[:1]]
            elif line.strip():
                frames = []
            else:
                yield frames, 1
                samples += 1
            if samples == PERF_SAMPLES_UNWOUND:
                break
        script.kill()
        script.wait()
        script.stdout.close()


class Bpftrace(Tool):
    name = "bpftrace"
    program = "bpftrace"

    def __init__(self):
        super().__init__()
        self.script = ""
        if not self.missing:
            self.version = first_line(["bpftrace", "--version"])

    def prepare(self, libc):
        probes = ",".join(f"uprobe:{libc}:{name}" for name in symbol_offsets(libc))
        # Without the filter it takes every process, also with -c.
        self.script = probes + " /pid == cpid/ { @[ustack] = count(); }"

    def argv(self, command, directory):
        return ["bpftrace", "-o", f"{directory}/stacks.txt", "-e", self.script, "-c",
                " ".join(command)]

    def all_frames(self, directory):
        """Frames, innermost first, and events of each stack."""
        frames = []
        for line in (directory / "stacks.txt").read_text().splitlines():
            if line.startswith("@["):
                frames = []
            if "]: " in line:
                yield frames, int(line.rpartition("]: ")[2])
            elif line.startswith(" "):
                frames.append(line.strip().split("+")[0])

    def stacks(self, directory):
        return ((frames[:-3:-1], events) for frames, events in self.all_frames(directory))

    def results(self, directory, stderr):
        stacks = list(self.all_frames(directory))
        events = sum(events for _, events in stacks)
        outermost = {frames[-1] for frames, _ in stacks if frames}
        if not all(name.startswith("0x") for name in outermost):
            return {"events": events}
        depth = sum(len(frames) * events for frames, events in stacks) / max(events, 1)
        return {"events": events, "note": f"in hex, {depth:.1f} frames"}


class Heaptrack(Tool):
    name = "heaptrack"
    program = "heaptrack"
    floor = "floor-live"  # it follows blocks to their ends
    options = []

    def __init__(self):
        super().__init__()
        if not self.missing:
            self.version = first_line(["heaptrack", "--version"])

    def argv(self, command, directory):
        return ["heaptrack", *self.options, "-o", f"{directory}/heaptrack", *command]

    def results(self, directory, stderr):
        found = re.search(r"^\s*allocations:\s+(\d+)", stderr, re.M)
        return {"events": int(found[1])} if found else {}

    def expected(self, counts):
        return counts["allocations"]

    def stacks(self, directory):
        file, = directory.glob("heaptrack*")
        output = directory / "folded"
        subprocess.run(["heaptrack_print", "-F", output, "-f", file], check=True,
                       stdout=subprocess.DEVNULL)
        lines = output.read_text().splitlines()
        output.unlink()
        for line in lines:
            stack, _, events = line.rpartition(" ")
            yield [frame.split(" ")[0] for frame in stack.split(";")[:2]], int(events)


class HeaptrackRaw(Heaptrack):
    name = "heaptrack-raw"
    options = ["--raw"]

    def stacks(self, directory):
        return []


def is_whole(frames):
    """By the outermost two, outermost first."""
    return bool(frames) and (frames[0] in OUTERMOST or
                             len(frames) > 1 and frames[1].startswith(CALLED_BY_OUTERMOST))


def first_line(argv):
    output = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return (output.stdout.strip().splitlines() or [""])[0]


ALLOCATING = ("malloc", "calloc", "realloc", "reallocarray", "posix_memalign", "aligned_alloc",
              "memalign", "valloc", "pvalloc")


def symbol_offsets(path):
    """File offsets of the functions that allocate, each address once."""
    segments = []
    for line in run_tool(["readelf", "-lW", path]):
        words = line.split()
        if words and words[0] == "LOAD":
            segments.append([int(word, 16) for word in (words[1], words[2], words[4])])
    offsets = {}
    for line in run_tool(["nm", "-D", path]):
        words = line.split()
        name = words[-1].split("@")[0] if words else ""
        if len(words) != 3 or name not in ALLOCATING:
            continue
        address = int(words[0], 16)
        for offset, start, size in segments:
            if start <= address < start + size and address - start + offset not in \
                    offsets.values():
                offsets[name] = address - start + offset
    return offsets


def run_tool(argv):
    return subprocess.run(argv, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()


def write_probes(lines):
    """One by one, so that one that fails does not keep the rest."""
    failed = None
    for line in lines:
        try:
            # Not by open(), whose append seeks to an end that this file has not.
            fd = os.open(TRACEFS / "uprobe_events", os.O_WRONLY | os.O_APPEND)
            try:
                os.write(fd, line.encode() + b"\n")
            finally:
                os.close(fd)
        except OSError as error:
            failed = Failure(f"'{line}' to uprobe_events: {error.strerror}")
    if failed:
        raise failed


PRELOAD = (Stat, Record, RecordSample, LiveStat, Live, LiveSample)


def all_tools(build):
    return [Bare(), Floor("stat", build), Floor("record", build), Floor("live", build),
            Stat(build), Record(build), RecordSample(build), LiveStat(build), Live(build),
            LiveSample(build), *(by_preload(base)(build) for base in PRELOAD), PerfStat(), Bpftrace(), Heaptrack(), HeaptrackRaw(), PerfRecord()]
