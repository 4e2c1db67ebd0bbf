# SPDX-License-Identifier: GPL-3.0-or-later
"""Creates and reads the log that libevents.so (events.c) writes, and works out of it what allocprof is
to say of memory that stays.

The words, where the log has to decide:

- An allocation is a request that returned memory, a block of 0 bytes too. One that returned none has
  failed. A failed realloc leaves its block as it was.
- A block dies at the entry of free or realloc and is born at the return of what made it.
- realloc with a block and size 0 is a deallocation, with NULL an allocation. Any other that succeeds
  is one reallocation. For the blocks' own figures it is the end of the old block and the birth of
  the new one, which belongs to the realloc's stack.
- bytes_reallocated is growth less shrinkage; growth is part of bytes_allocated, shrinkage of
  bytes_deallocated.
- A block belongs to the address space that made it. A forked child's end of a block that its parent
  made is inherited, that of one that nobody made unknown. Neither is a deallocation, nor has it
  bytes. If it was by realloc, then that is a reallocation from 0 bytes.
- exec discards the blocks of the old image. They are neither live nor freed, and are no longer part
  of what the peak is the maximum of. A process that ends leaves its blocks live.
- A block is temporary if the thread that made it also ended it, before its next allocation. The new
  block of a realloc is an allocation in this sense, a failed request is none.
- The peak is the moment when all live blocks of the tree first had the most bytes.
"""

import collections
import dataclasses
import functools
import mmap
import operator
import os
import pathlib
import struct
import typing

from counter import FUNCTIONS

MAGIC = 0x31746E6576457061
WITHOUT_STACKS = 1
MAX_EVENTS = 1 << 26
MAX_WORDS = 1 << 31
MAX_MODULES = 1024
MODULE_SIZE = 1024
MODULE_SHIFT = 48

HEADER = struct.Struct("=5Q24x")
EVENT = struct.Struct("=IHHIIIIQQQQQ")
MODULES_AT = HEADER.size
EVENTS_AT = MODULES_AT + MAX_MODULES * MODULE_SIZE
WORDS_AT = EVENTS_AT + MAX_EVENTS * EVENT.size
SIZE = WORDS_AT + MAX_WORDS * 8

NOTHING, ENTER, RETURN, IMAGE, SPACE = range(5)
OVERFLOW = 1
READY = 2

REALLOCS = ("realloc", "reallocarray")


class Event(typing.NamedTuple):
    """One of the log; its place there is the order of time for the whole tree."""
    number: int
    kind: int
    process: int
    thread: int
    space: int
    ns: int = 0
    function: str = None
    pointer: int = 0
    bytes: int = 0
    overflow: bool = False
    stack: tuple = ()  # of (path, ELF virtual address), the allocator's caller first
    link: int = 0


class Log:
    """One log file. Processes started with env() write to it until it is deleted."""

    def __init__(self, path, library, stacks=True):
        self.path = pathlib.Path(path).resolve()
        self.library = pathlib.Path(library).resolve()
        # ld.so splits LD_PRELOAD at spaces and colons.
        if any(c in str(self.library) for c in " :"):
            raise ValueError(f"LD_PRELOAD cannot name {self.library}")
        with open(self.path, "wb") as file:
            file.write(HEADER.pack(MAGIC, 0 if stacks else WITHOUT_STACKS, 0, 0, 0))
            file.truncate(SIZE)

    def env(self):
        return {"LD_PRELOAD": str(self.library), "ALLOCPROF_COUNTER": str(self.path)}

    def position(self):
        """The number of the next event."""
        with open(self.path, "rb") as file:
            return HEADER.unpack(file.read(HEADER.size))[2]

    def read(self, first=0, end=None):
        """The events from number @first up to @end, in order."""
        with open(self.path, "rb") as file, \
                mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as data:
            return list(decode(data, first, end))


@functools.lru_cache(None)
def real(path):
    if path.startswith("linux-vdso.so"):
        # The dynamic linker's name of it is no file's.
        return "[vdso]"
    return os.path.realpath(path) if path.startswith("/") else path


def decode(data, first=0, end=None):
    """The events in the bytes of a log."""
    magic, _, n_events, _, _ = HEADER.unpack_from(data)
    if magic != MAGIC:
        raise ValueError("not a log of events")
    modules = {}
    stacks = {}

    def module(number):
        if number not in modules:
            at = MODULES_AT + (number - 1) * MODULE_SIZE
            state, path = struct.unpack_from(f"=I{MODULE_SIZE - 4}s", data, at)
            if state != READY:
                raise ValueError(f"no module {number} in the log")
            modules[number] = real(os.fsdecode(path.split(b"\0")[0]))
        return modules[number]

    def stack_at(word, n):
        packed = data[WORDS_AT + word * 8:WORDS_AT + (word + n) * 8]
        if packed not in stacks:
            stacks[packed] = tuple(
                (module(w >> MODULE_SHIFT) if w >> MODULE_SHIFT else None,
                 w & (1 << MODULE_SHIFT) - 1) for w, in struct.iter_unpack("=Q", packed))
        return stacks[packed]

    for number in range(first, n_events if end is None else min(end, n_events)):
        (kind, function, n, process, thread, space, flags, ns, pointer, size, word,
         link) = EVENT.unpack_from(data, EVENTS_AT + number * EVENT.size)
        if kind in (ENTER, RETURN):
            yield Event(number, kind, process, thread, space, ns, FUNCTIONS[function], pointer,
                        size, bool(flags & OVERFLOW), stack_at(word, n), link)
        elif kind == IMAGE:
            yield Event(number, kind, process, thread, space, ns, stack=((module(link), 0),))
        elif kind == SPACE:
            yield Event(number, kind, process, thread, space, ns, link=link)
        elif kind != NOTHING:
            raise ValueError(f"event {number} of kind {kind}")


class Process(typing.NamedTuple):
    """A process image: what a process is from its fork or exec to its exec or end."""
    pid: int
    image: int  # how many images of this library's have begun in it, this one too


class Key(typing.NamedTuple):
    """What figures are kept by."""
    process: Process
    thread: int
    stack: tuple
    function: str


@dataclasses.dataclass
class Sum:
    """Figures that can be added."""

    def __iadd__(self, other):
        for field in dataclasses.fields(self):
            name = field.name
            setattr(self, name, getattr(self, name) + getattr(other, name))
        return self

    def shown(self):
        """As a target states them: name=value of all that are not 0."""
        return " ".join(f"{name}={value}" for name, value in dataclasses.asdict(self).items()
                        if value)


# No process can be given so much; such requests are calls without bytes.
IMPOSSIBLE_BYTES = 1 << 47


@dataclasses.dataclass
class Calls(Sum):
    """What was asked for."""
    calls: int = 0
    bytes: int = 0


@dataclasses.dataclass
class Blocks(Sum):
    """What became of the blocks that were made under one key, wherever they ended."""
    allocations: int = 0
    bytes: int = 0
    frees: int = 0
    freed_bytes: int = 0
    temporary: int = 0
    temporary_bytes: int = 0
    failed: int = 0
    discarded: int = 0
    discarded_bytes: int = 0
    peak: int = 0
    peak_bytes: int = 0

    @property
    def live(self):
        return self.allocations - self.frees - self.discarded

    @property
    def live_bytes(self):
        return self.bytes - self.freed_bytes - self.discarded_bytes


@dataclasses.dataclass
class Totals(Sum):
    """What calls did, as stats_alloc and SwiftNIO's tests name it. These are by who calls: a free is
    with the process that called it."""
    calls: int = 0
    allocations: int = 0
    deallocations: int = 0
    reallocations: int = 0
    failed: int = 0
    bytes_allocated: int = 0
    bytes_deallocated: int = 0
    bytes_reallocated: int = 0
    total_allocated_bytes: int = 0
    inherited: int = 0
    unknown: int = 0

    @property
    def total_allocations(self):
        return self.allocations + self.reallocations

    @property
    def remaining_allocations(self):
        return self.allocations - self.deallocations


def total(sums, kind):
    """All of @sums in one."""
    return functools.reduce(operator.iadd, sums, kind())


class Life(typing.NamedTuple):
    """Of one block, from the allocator's return to the entry of what ended it."""
    key: Key
    bytes: int
    born_ns: int
    died_ns: int  # None where it is live
    is_discarded: bool = False


@dataclasses.dataclass
class Figures:
    """All that a log comes to."""
    counts: dict  # {Key: Calls}
    blocks: dict  # {Key: Blocks}
    totals: dict  # {Process: Totals}
    lives: list  # of Life, in the order of their ends
    peak_at: int  # the number of the event by which the peak is reached, None if nothing ever lived
    unfinished: int  # calls that did not return

    @property
    def all_blocks(self):
        return total(self.blocks.values(), Blocks)

    @property
    def all_calls(self):
        return total(self.counts.values(), Calls)

    @property
    def all_totals(self):
        return total(self.totals.values(), Totals)

    def stated(self):
        """The figures that targets state, those that are 0 left out."""
        blocks, totals = self.all_blocks, self.all_totals
        named = {name: getattr(totals, name) for name in (
            "allocations", "deallocations", "reallocations", "failed", "bytes_allocated",
            "bytes_deallocated", "bytes_reallocated", "inherited", "unknown")}
        named.update({name: getattr(blocks, name) for name in (
            "live", "live_bytes", "temporary", "temporary_bytes", "discarded", "discarded_bytes",
            "peak", "peak_bytes")})
        return {name: value for name, value in named.items() if value}

    def by(self, key_of):
        """(calls, blocks), each a dictionary by @key_of(key)."""
        calls, blocks = collections.defaultdict(Calls), collections.defaultdict(Blocks)
        for key, value in self.counts.items():
            calls[key_of(key)] += value
        for key, value in self.blocks.items():
            blocks[key_of(key)] += value
        return dict(calls), dict(blocks)


class Block(typing.NamedTuple):
    key: Key  # None where it is not to be counted
    bytes: int
    thread: int
    number: int  # how many the thread had made, with this one
    born_ns: int

    def life(self, died_ns, is_discarded=False):
        return Life(self.key, self.bytes, self.born_ns, died_ns, is_discarded)


class Replay:
    """Goes through the events once. @selected says which calls are to be counted: a block is where
    the call that made it is, and so is its end, wherever that comes."""

    def __init__(self, selected):
        self.selected = selected
        self.counts = collections.defaultdict(Calls)
        self.blocks = collections.defaultdict(Blocks)
        self.totals = collections.defaultdict(Totals)
        self.lives = []
        self.enters = {}  # {number of the event: Event}, not returned yet
        self.ended = {}  # {number of a realloc's event: its old block}
        self.spaces = collections.defaultdict(dict)  # {space: {pointer: Block}}
        self.ever = collections.defaultdict(set)  # {space: pointers}
        self.parents = {}
        self.owners = {}  # {space: the process that was the first in it}
        self.images = collections.defaultdict(int)
        self.made = collections.defaultdict(int)  # allocations by thread
        self.live_bytes = 0
        self.peak_bytes = 0
        self.peak_at = None

    def process(self, event):
        return Process(event.process, self.images[event.process])

    def handle(self, event):
        if event.kind == ENTER:
            self.enter(event)
        elif event.kind == RETURN:
            self.leave(event)
        elif event.kind == SPACE:
            self.parents[event.space] = event.link
        else:
            self.images[event.process] += 1
            for space, owner in self.owners.items():
                if owner == event.process:
                    self.discard(space, event)
        self.owners.setdefault(event.space, event.process)

    def discard(self, space, event):
        # A thread was within realloc when another called exec.
        for number in [n for n in self.ended if self.enters[n].space == space]:
            self.restore(self.enters.pop(number), self.ended.pop(number))
        for block in self.spaces.pop(space, {}).values():
            if block.key:
                sums = self.blocks[block.key]
                sums.discarded += 1
                sums.discarded_bytes += block.bytes
                self.lives.append(block.life(event.ns, is_discarded=True))
                self.live_bytes -= block.bytes

    def enter(self, event):
        if self.selected(event):
            key = Key(self.process(event), event.thread, event.stack, event.function)
            self.counts[key] += Calls(1, event.bytes if event.bytes < IMPOSSIBLE_BYTES else 0)
            self.totals[key.process].calls += 1
        if event.function == "free":
            if event.pointer:
                self.end(event)
            return
        self.enters[event.number] = event
        if event.function in REALLOCS and event.pointer and not event.overflow:
            if not event.bytes:
                self.end(event)
            else:
                self.ended[event.number] = self.take(event)

    def take(self, event):
        """Ends a block for now; None where it is not one of this space."""
        block = self.spaces[event.space].pop(event.pointer, None)
        if block and block.key:
            self.live_bytes -= block.bytes
        return block

    def restore(self, event, block):
        if block:
            self.spaces[event.space][event.pointer] = block
            if block.key:
                self.live_bytes += block.bytes

    def is_inherited(self, event):
        space = self.parents.get(event.space)
        while space:
            if event.pointer in self.ever[space]:
                return True
            space = self.parents.get(space)
        return False

    def end(self, event):
        """A deallocation by free or realloc."""
        block = self.take(event)
        totals = self.totals[self.process(event)]
        if not block:
            self.end_foreign(event)
        elif block.key:
            totals.deallocations += 1
            totals.bytes_deallocated += block.bytes
            self.freed(event, block)

    def end_foreign(self, event):
        if self.selected(event):
            totals = self.totals[self.process(event)]
            if self.is_inherited(event):
                totals.inherited += 1
            else:
                totals.unknown += 1

    def freed(self, event, block):
        sums = self.blocks[block.key]
        sums.frees += 1
        sums.freed_bytes += block.bytes
        self.lives.append(block.life(event.ns))
        if event.thread == block.thread and self.made[event.thread] == block.number:
            sums.temporary += 1
            sums.temporary_bytes += block.bytes

    def leave(self, event):
        enter = self.enters.pop(event.link, None)
        # Entered before the part of the log that was read.
        if not enter:
            return
        selected = self.selected(enter)
        # As it was entered: the block is the caller's.
        key = Key(self.process(enter), enter.thread, enter.stack, enter.function)
        old = self.ended.pop(enter.number, None)
        totals = self.totals[key.process]
        on_block = enter.function in REALLOCS and enter.pointer
        if on_block and not enter.bytes and not enter.overflow:
            if event.pointer:
                raise ValueError(f"{enter} returned {event.pointer:#x}: not glibc's realloc")
            return
        if not event.pointer:
            self.restore(enter, old)
            if selected:
                totals.failed += 1
                self.blocks[key].failed += 1
            return
        if on_block:
            if old and old.key:
                self.freed(enter, old)
            elif not old:
                self.end_foreign(enter)
            if selected:
                growth = enter.bytes - (old.bytes if old else 0)
                totals.reallocations += 1
                totals.bytes_reallocated += growth
                totals.bytes_allocated += max(growth, 0)
                totals.bytes_deallocated += max(-growth, 0)
        elif selected:
            totals.allocations += 1
            totals.bytes_allocated += enter.bytes
        self.made[enter.thread] += 1
        block = Block(key if selected else None, enter.bytes, enter.thread,
                      self.made[enter.thread], event.ns)
        self.spaces[event.space][event.pointer] = block
        self.ever[event.space].add(event.pointer)
        if not selected:
            return
        totals.total_allocated_bytes += enter.bytes
        sums = self.blocks[key]
        sums.allocations += 1
        sums.bytes += enter.bytes
        self.live_bytes += enter.bytes
        if self.live_bytes > self.peak_bytes or self.peak_at is None:
            self.peak_bytes = self.live_bytes
            self.peak_at = event.number

    def finish(self):
        """The calls that never returned; a realloc among them leaves its block as it was."""
        for number, block in self.ended.items():
            self.restore(self.enters[number], block)
        self.ended.clear()
        self.lives.extend(block.life(None) for blocks in self.spaces.values()
                          for block in blocks.values() if block.key)
        return len(self.enters)


def analyse(events, selected=lambda event: True):
    """The Figures of @events, in which what is freed but was allocated before is unknown. @selected
    says of an ENTER whether it is to be counted."""
    events = list(events)
    replay = Replay(selected)
    for event in events:
        replay.handle(event)
    unfinished = replay.finish()
    at_peak = Replay(selected)
    for event in events:
        if replay.peak_at is None or event.number > replay.peak_at:
            break
        at_peak.handle(event)
    for blocks in at_peak.spaces.values():
        for block in blocks.values():
            if block.key:
                replay.blocks[block.key].peak += 1
                replay.blocks[block.key].peak_bytes += block.bytes
    return Figures(dict(replay.counts), dict(replay.blocks), dict(replay.totals), replay.lives,
                   replay.peak_at, unfinished)


def called_by(path):
    """For analyse(): the calls that the code of a file makes itself."""
    path = os.path.realpath(path)
    return lambda event: bool(event.stack) and event.stack[0][0] == path
