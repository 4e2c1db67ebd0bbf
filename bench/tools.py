# SPDX-License-Identifier: GPL-3.0-or-later
"""What targets run under: nothing, an empty program, allocprof and the tools in use elsewhere."""

import json
import os
import pathlib
import re
import shutil
import sqlite3
import subprocess

TRACEFS = pathlib.Path("/sys/kernel/tracing")

# A stack that begins in one of these is whole.
OUTERMOST = {"_start", "clone3", "__clone3", "clone", "__clone", "__GI___clone3"}

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
        """Of the run that has ended: events (that it has in its result), and where it says so lost."""
        return {}

    def share_complete(self, directory):
        """Of the events in the result, those whose stack is whole; None where it has no stacks."""
        return None

    def events(self, counts):
        """How many of the target's hits it is to see."""
        return counts["hits_but_free"] if self.floor == "floor-record" else counts["hits"]


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

    def __init__(self, build):
        super().__init__()
        self.path = build / "cli" / "allocprof"
        self.version = first_line([self.path, "--version"])

    def argv(self, command, directory):
        return [str(self.path), "stat", "--json", "-o", f"{directory}/stat.json", "--", *command]

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


class Record(Tool):
    name = "record"
    ours = True

    def __init__(self, build):
        super().__init__()
        self.path = build / "cli" / "allocprof"

    def argv(self, command, directory):
        return [str(self.path), "record", "-o", f"{directory}/allocprof.data", "--", *command]

    def ledger(self, directory):
        with sqlite3.connect(f"file:{directory}/allocprof.data?mode=ro", uri=True) as data:
            return dict(data.execute("SELECT name, value FROM ledger"))

    def results(self, directory, stderr):
        ledger = self.ledger(directory)
        return {"events": ledger["attributed"], "lost": ledger["lost"]}

    def share_complete(self, directory):
        ledger = self.ledger(directory)
        return ledger["complete"] / max(ledger["events"], 1)


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

    def share_complete(self, directory):
        # From the middle: the first samples are the loader's.
        argv = ["perf", "script", "-i", f"{directory}/perf.data", "-F", "ip,sym", "--time",
                "50%-100%"]
        script = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                  text=True)
        samples = complete = 0
        outermost = None
        for line in script.stdout:
            words = line.split()
            if words:
                outermost = words[1] if len(words) > 1 else None
                continue
            samples += 1
            complete += outermost in OUTERMOST
            if samples == PERF_SAMPLES_UNWOUND:
                break
        script.kill()
        script.wait()
        script.stdout.close()
        return complete / samples if samples else None


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
        self.script = probes + " { @[ustack] = count(); }"

    def argv(self, command, directory):
        return ["bpftrace", "-o", f"{directory}/stacks.txt", "-e", self.script, "-c",
                " ".join(command)]

    def stacks(self, directory):
        """Outermost frame and count of each."""
        outermost = ""
        for line in (directory / "stacks.txt").read_text().splitlines():
            if line.startswith("]: "):
                yield outermost, int(line[3:])
            elif line.startswith("@["):
                outermost = ""
                if "]: " in line:
                    yield outermost, int(line.rpartition("]: ")[2])
            elif line.strip():
                outermost = line.strip().split("+")[0]

    def results(self, directory, stderr):
        return {"events": sum(count for _, count in self.stacks(directory))}

    def share_complete(self, directory):
        stacks = list(self.stacks(directory))
        total = sum(count for _, count in stacks)
        return sum(count for name, count in stacks if name in OUTERMOST) / max(total, 1)


class Heaptrack(Tool):
    name = "heaptrack"
    program = "heaptrack"
    floor = "floor-stat"  # it takes the frees too
    options = []

    def __init__(self):
        super().__init__()
        if not self.missing:
            self.version = first_line(["heaptrack", "--version"])

    def argv(self, command, directory):
        return ["heaptrack", *self.options, "-o", f"{directory}/heaptrack", *command]

    def folded(self, directory):
        file, = directory.glob("heaptrack*")
        output = directory / "folded"
        subprocess.run(["heaptrack_print", "-F", output, "--flamegraph-cost-type", "allocations",
                        "-f", file], check=True, stdout=subprocess.DEVNULL)
        lines = output.read_text().splitlines()
        output.unlink()
        return [(stack.split(";")[0], int(count)) for stack, _, count in
                (line.rpartition(" ") for line in lines)]

    def share_complete(self, directory):
        stacks = self.folded(directory)
        total = sum(count for _, count in stacks)
        return sum(count for name, count in stacks if name in OUTERMOST) / max(total, 1)


class HeaptrackRaw(Heaptrack):
    name = "heaptrack-raw"
    options = ["--raw"]

    def share_complete(self, directory):
        return None


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
            with open(TRACEFS / "uprobe_events", "a") as events:
                events.write(line + "\n")
        except OSError as error:
            failed = Failure(f"'{line}' to uprobe_events: {error.strerror}")
    if failed:
        raise failed


def all_tools(build):
    return [Bare(), Floor("stat", build), Floor("record", build), Stat(build), Record(build),
            PerfStat(), Bpftrace(), Heaptrack(), HeaptrackRaw(), PerfRecord()]
