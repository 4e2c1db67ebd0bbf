# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares the live mappings of a recording with /proc/PID/maps, page by page, and with whose pages the target mapper
says they are."""

import collections

Mapping = collections.namedtuple("Mapping", "pid address bytes kind given_back frames end")
QUERY = ("SELECT c.pid, m.address, m.bytes, m.kind, m.given_back, c.frames, c.end FROM mappings m "
         "JOIN calls c ON c.count = m.count")
CALLERS = {"map_region", "map_private", "map_shared", "map_stack", "map_executable", "grow", "duplicate"}


def union(ranges):
    """The same pages in as few ranges as there can be."""
    joined = []
    for begin, end in sorted(ranges):
        if joined and joined[-1][1] >= begin:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        elif begin < end:
            joined.append((begin, end))
    return joined


def without(ranges, others):
    left, others = [], union(others)
    for begin, end in union(ranges):
        for other_begin, other_end in others:
            if other_begin < end and other_end > begin:
                left.append((begin, other_begin))
                begin = max(begin, other_end)
        left.append((begin, end))
    return [(begin, end) for begin, end in left if begin < end]


def size(ranges):
    return sum(end - begin for begin, end in ranges)


def range_of(mapping):
    begin = mapping.address % 2**64
    return begin, begin + mapping.bytes


def anonymous(lines):
    """The anonymous memory in lines of /proc/PID/maps, but for what the kernel maps itself: the first stack, and the
    .bss of the program and of its dynamic linker, which follow their files' mappings."""
    ranges, program, is_first, of_kernel = [], "", True, 0
    for line in lines:
        addresses, _, _, device, inode, *path = line.split(maxsplit=5)
        begin, end = (int(address, 16) for address in addresses.split("-"))
        path = path[0].strip() if path else ""
        if device != "00:00" and inode != "0" and not path.startswith("/dev/zero"):
            program = program or path
            # The program's segments come first, and it may have mapped its file again.
            is_first = is_first and path == program
            if is_first or "/ld-linux" in path:
                of_kernel = end
            continue
        is_first = False
        if begin == of_kernel and path in ("", "[heap]"):
            continue
        if path in ("", "[heap]") or path.startswith(("[anon", "/dev/zero", "/SYSV00000000", "/anon_hugepage")):
            ranges.append((begin, end))
    return union(ranges)


class Said:
    """What mapper has printed: by process, its pages by function, and its maps."""

    def __init__(self, text):
        self.own = collections.defaultdict(lambda: collections.defaultdict(list))
        self.maps = collections.defaultdict(list)
        for line in text.splitlines():
            kind, pid, rest = line.split(" ", 2)
            if kind == "own":
                begin, end, function = rest.split()
                self.own[int(pid)][function].append((int(begin, 16), int(end, 16)))
            else:
                self.maps[int(pid)].append(rest)


def differences(said, recorded, inherits=()):
    """What is not equal, as text; @inherits has processes that also have what a fork copied. Pages whose call has a
    stack that could not be walked are anybody's."""
    found = []
    for pid, lines in said.maps.items():
        mine = [mapping for mapping in recorded if mapping.pid == pid]
        live = [range_of(mapping) for mapping in mine]
        if size(live) != size(union(live)):
            found.append(f"{pid}: pages are there twice")
        if without(live, anonymous(lines)):
            found.append(f"{pid}: live, but not mapped: {without(live, anonymous(lines))}")
        if pid not in inherits and without(anonymous(lines), live):
            found.append(f"{pid}: mapped, but not live: {without(anonymous(lines), live)}")
        by_function = collections.defaultdict(list)
        unknown = []
        for mapping in mine:
            functions = CALLERS.intersection(mapping.frames.split(";"))
            for function in functions:
                by_function[function].append(range_of(mapping))
            if not functions and mapping.end != "complete":
                unknown.append(range_of(mapping))
        for function in CALLERS:
            stated = said.own[pid][function]
            if without(stated, by_function[function] + unknown) or without(by_function[function], stated):
                found.append(f"{pid}: {function} has {union(by_function[function])} instead of {union(stated)}")
    return found
