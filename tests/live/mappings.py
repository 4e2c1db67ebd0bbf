# SPDX-License-Identifier: GPL-3.0-or-later
"""What processes take from the kernel and give back to it, worked out from strace's log of the system calls."""

import collections
import re

PAGE = 4096
CALLS = ["mmap", "mremap", "brk", "munmap"]
# Also what makes processes and begins programs.
TRACED = ",".join([*CALLS, "execve", "clone", "clone3", "fork", "vfork"])

LINE = re.compile(r"(\d+) +(.*)")
CALL = re.compile(r"(\w+)\((.*)\) += (-?\d+|0x[0-9a-f]+|\?)(?: .*)?")


MAKES = re.compile(r"(clone3?|v?fork)\(")


def pages(size):
    return -(-size // PAGE) * PAGE


class Space:
    """What is mapped where: for each page that a call has mapped, whether it is anonymous."""

    def __init__(self, other=None):
        self.ranges = list(other.ranges) if other else []  # (start, end, is anonymous), sorted
        self.brk = other.brk if other else None
        self.heap = other.heap if other else None

    def unmap(self, start, end):
        """Returns the parts that were mapped there."""
        kept, taken = [], []
        for a, b, kind in self.ranges:
            kept += [(a, min(b, start), kind), (max(a, end), b, kind)]
            taken.append((max(a, start), min(b, end), kind))
        self.ranges = [part for part in kept if part[0] < part[1]]
        return [part for part in taken if part[0] < part[1]]

    def map(self, start, end, is_anonymous):
        self.unmap(start, end)
        self.ranges.append((start, end, is_anonymous))


def anonymous_bytes(parts):
    return sum(end - start for start, end, is_anonymous in parts if is_anonymous)


class Process:
    def __init__(self, space):
        self.space = space
        self.calls = collections.Counter()
        self.bytes = collections.Counter()

    def count(self, name, size):
        self.calls[name] += 1
        # What no process can have adds nothing (docs/semantics.md).
        self.bytes[name] += size if size < 1 << 47 else 0


def number(text):
    text = text.strip()
    if text == "NULL":
        return 0
    return int(text, 16 if text.startswith("0x") else 10)


class Log:
    """A log of strace -f; by process id, how often each function of CALLS was called and for how many bytes."""

    def __init__(self, path):
        self.processes = {}  # by thread id: threads share their process
        self.unfinished = unfinished = {}
        self.begun = {}  # by thread id: the parts that a call of it unmaps, which has not returned
        for line in path.read_text().splitlines():
            found = LINE.fullmatch(line)
            if not found:
                continue
            thread, text = int(found[1]), found[2]
            if text.endswith("<unfinished ...>"):
                unfinished[thread] = text.removesuffix("<unfinished ...>")
                self.begin(thread, unfinished[thread])
                continue
            resumed = re.match(r"<\.\.\. \w+ resumed>", text)
            if resumed:
                text = unfinished.pop(thread, "") + text[resumed.end():]
            call = CALL.fullmatch(text.strip())
            if call and call[3] != "?":
                self.add(thread, call[1], call[2], call[3])

    def begin(self, thread, text):
        """A call whose end is logged later, when another thread may have mapped again what this one unmapped:
        strace logs each call's beginning before the kernel carries it out, but ends in any order."""
        call = re.match(r"(munmap|mremap)\((.*)", text)
        if call:
            arguments = call[2].strip(" ,)").split(", ")
            self.begun[thread] = self.unmapped(self.process(thread).space, arguments)

    def process(self, thread):
        if thread not in self.processes:
            # The first one, or one whose parent has not returned from making it.
            parents = [(parent, text) for parent, text in self.unfinished.items() if MAKES.match(text)]
            if parents:
                parent, text = parents[0]
                self.make(self.process(parent), text, thread)
            else:
                self.processes[thread] = Process(Space())
        return self.processes[thread]

    def add(self, thread, name, arguments, result):
        process = self.process(thread)
        if MAKES.match(name + "("):
            if int(result) > 0:
                self.make(process, f"{name}({arguments}", int(result))
            return
        if name == "execve":
            if result == "0":
                process.space = Space()
            return
        if name not in CALLS:
            return  # of a return probe of somebody who looks at all processes
        arguments = arguments.split(", ")
        if name in ("munmap", "mremap"):
            parts = self.begun.pop(thread, None)
            if parts is None:
                parts = self.unmapped(process.space, arguments)
            getattr(self, name)(process, process.space, arguments, number(result), parts)
        else:
            getattr(self, name)(process, process.space, arguments, number(result))

    def unmapped(self, space, arguments):
        """Takes what a call of munmap or mremap unmaps out of @space: [(start, end, is anonymous)]."""
        start = number(arguments[0])
        return space.unmap(start, start + pages(number(arguments[1])))

    def make(self, parent, text, child):
        if child in self.processes:
            return
        if "CLONE_THREAD" in text:
            self.processes[child] = parent
            return
        shares = text.startswith("vfork") or "CLONE_VM" in text
        self.processes[child] = Process(parent.space if shares else Space(parent.space))

    def mmap(self, process, space, arguments, result):
        size = pages(number(arguments[1]))
        is_anonymous = "MAP_ANONYMOUS" in arguments[3]
        if result > 0:
            space.map(result, result + size, is_anonymous)
        if is_anonymous:
            process.count("mmap", size)

    def munmap(self, process, space, arguments, result, parts):
        size = anonymous_bytes(parts)
        if result:
            space.ranges += parts
        if size:
            process.count("munmap", 0 if result else size)

    def mremap(self, process, space, arguments, result, parts):
        start, before, after = (number(text) for text in arguments[:3])
        before, after = pages(before), pages(after)
        is_anonymous = any(is_anonymous and a <= start < b for a, b, is_anonymous in parts)
        if is_anonymous:
            process.count("mremap", max(after - before, 0))
        if result > 0:
            space.map(result, result + after, is_anonymous)
        else:
            space.ranges += parts

    def brk(self, process, space, arguments, result):
        asked = number(arguments[0])
        before = space.brk
        space.brk = result
        if before is None:
            space.heap = result
            return
        before, now, asked = pages(before), pages(result), pages(asked)
        if now > before:
            space.map(before, now, True)
            process.count("brk", now - before)
        elif now < before:
            space.unmap(now, before)
            process.count("brk", 0)
        elif asked > now:
            process.count("brk", asked - now)

    def totals(self):
        """By process id, {function: (calls, bytes)}; threads are with their process."""
        totals, seen = {}, set()
        for pid, process in self.processes.items():
            if id(process) not in seen:
                seen.add(id(process))
                totals[pid] = {name: (process.calls[name], process.bytes[name]) for name in CALLS
                               if process.calls[name]}
        return {pid: calls for pid, calls in totals.items() if calls}
