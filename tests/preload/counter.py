# SPDX-License-Identifier: GPL-3.0-or-later
"""Creates and reads the file that libcounter.so counts into. The layout is counter.c's."""

import dataclasses
import mmap
import pathlib
import struct

MAGIC = 0x31746E756F437061
FUNCTIONS = (
    "malloc", "calloc", "realloc", "reallocarray", "posix_memalign",
    "aligned_alloc", "memalign", "valloc", "pvalloc", "free",
)
HEADER = struct.Struct("=QQ")
SLOT = struct.Struct("=6Q")


@dataclasses.dataclass(frozen=True)
class Slot:
    calls: int = 0
    bytes: int = 0
    fresh: int = 0
    fresh_bytes: int = 0
    released: int = 0
    null: int = 0

    def __add__(self, other):
        return Slot(*(a + b for a, b in zip(dataclasses.astuple(self), dataclasses.astuple(other))))

    def __sub__(self, other):
        return Slot(*(a - b for a, b in zip(dataclasses.astuple(self), dataclasses.astuple(other))))


@dataclasses.dataclass(frozen=True)
class Counts:
    """What the application asked of its allocator, and the sums that follow from it."""

    programs: int
    functions: dict

    def __getitem__(self, name):
        return self.functions[name]

    def __sub__(self, other):
        return Counts(self.programs - other.programs,
                      {name: self[name] - other[name] for name in FUNCTIONS})

    @property
    def reallocs(self):
        return self["realloc"] + self["reallocarray"]

    @property
    def allocations(self):
        """Requests for a new block."""
        plain = sum(self[name].calls for name in FUNCTIONS
                    if name not in ("realloc", "reallocarray", "free"))
        return plain + self.reallocs.fresh

    @property
    def reallocations(self):
        """Requests to change a block that exists."""
        return self.reallocs.calls - self.reallocs.fresh - self.reallocs.released

    @property
    def deallocations(self):
        return self["free"].calls - self["free"].null + self.reallocs.released

    @property
    def bytes(self):
        return sum(slot.bytes for slot in self.functions.values())


class Counter:
    """One counter file. Processes started with env() count into it until it is deleted."""

    def __init__(self, path, library):
        self.path = pathlib.Path(path).resolve()
        self.library = pathlib.Path(library).resolve()
        # ld.so splits LD_PRELOAD at spaces and colons.
        if any(c in str(self.library) for c in " :"):
            raise ValueError(f"LD_PRELOAD cannot name {self.library}")
        size = max(HEADER.size + SLOT.size * len(FUNCTIONS), mmap.PAGESIZE)
        self.path.write_bytes(HEADER.pack(MAGIC, 0).ljust(size, b"\0"))

    def env(self):
        return {"LD_PRELOAD": str(self.library), "ALLOCPROF_COUNTER": str(self.path)}

    def read(self):
        data = self.path.read_bytes()
        magic, programs = HEADER.unpack_from(data)
        if magic != MAGIC:
            raise ValueError(f"{self.path} was overwritten")
        slots = {name: Slot(*SLOT.unpack_from(data, HEADER.size + i * SLOT.size))
                 for i, name in enumerate(FUNCTIONS)}
        return Counts(programs, slots)
