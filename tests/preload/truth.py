# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads what libtruth (tests/preload/truth.c) has written."""

import collections
import dataclasses
import functools
import os


@dataclasses.dataclass
class Sum:
    calls: int = 0
    bytes: int = 0

    def add(self, calls, size):
        self.calls += calls
        self.bytes += size


@functools.lru_cache(None)
def real(path):
    return os.path.realpath(path) if path.startswith("/") else path


def frame_of(word, modules):
    index, address = word.split("+")
    return (real(modules[int(index)]) if index != "-" else None, int(address, 16))


def read(path):
    """{(function, frames): Sum}; frames are (path, ELF virtual address), the allocator's caller
    first."""
    stacks = collections.defaultdict(Sum)
    # A file's name is any bytes.
    with open(path, encoding="utf-8", errors="surrogateescape") as lines:
        for line in lines:
            function, size, _, frames, *modules = line.rstrip("\n").split("\t")
            # The dynamic linker's name of it is no file's.
            modules = ["[vdso]" if name == "linux-vdso.so.1" else name for name in modules]
            frames = tuple(frame_of(word, modules) for word in frames.split())
            stacks[function, frames].add(1, int(size))
    return dict(stacks)
