# SPDX-License-Identifier: GPL-3.0-or-later
"""What is live at the end of a program, by stack, as heaptrack and valgrind's memcheck have it."""

import collections
import os
import re
import subprocess
import xml.etree.ElementTree

import support

PAGE = 4096
# Fewer than any of them keeps.
MOST_FRAMES = 50
# Where valgrind's malloc and operator new are, and heaptrack's dlopen.
THEIR_LIBRARIES = re.compile(r"/(vgpreload_|libheaptrack_)[^/]*$")
# Of what leads to others memcheck tells both: "72 (24 direct, 48 indirect) bytes in 1 blocks".
DIRECT = re.compile(r"\(([0-9,]+) direct, ")
# Python's loop, in whose place its functions are; others call its cold part by the next symbol.
LOOPS = {"_PyEval_EvalFrameDefault", "interpreter_update_config"}
# memcheck's kinds of blocks, by the columns of the table reach.
KINDS = {
    "Leak_DefinitelyLost": "lost",
    "Leak_IndirectlyLost": "indirectly_lost",
    "Leak_PossiblyLost": "possibly_lost",
    "Leak_StillReachable": "reachable",
}


class Live:
    """Blocks and bytes by stack, of which each frame is (file, address of the call within its page):
    where a file is mapped differs from run to run, and not by parts of pages."""

    def __init__(self):
        self.stacks = collections.defaultdict(lambda: [0, 0])
        self.names = {}
        # The same for each kind in KINDS, where that is known.
        self.by_kind = {kind: collections.defaultdict(lambda: [0, 0]) for kind in KINDS.values()}

    def add(self, frames, blocks, size, kind=None):
        stacks = self.by_kind[kind] if kind else self.stacks
        if blocks:
            frames = [frame for frame in frames if not self.is_left_out(frame)]
            # One call of the loop has several functions of Python.
            frames = [frame for before, frame in zip([None, *frames], frames) if (before, frame) != (support.LOOP, support.LOOP)]
            sums = stacks[tuple(frames[:MOST_FRAMES])]
            sums[0] += blocks
            sums[1] += size

    def is_left_out(self, frame):
        """memcheck's operator new stands for the C++ library's, and it has threads begin by another system call."""
        return (THEIR_LIBRARIES.search(frame[0] or "") or self.names.get(frame) in ("clone", "clone3")
                or (self.names.get(frame, "").startswith("operator new") and "/libstdc++" in frame[0]))

    def place(self, path, address, name=None):
        if name in LOOPS:
            return support.LOOP
        found = (os.path.realpath(path) if path else None, address % PAGE)
        if name:
            self.names[found] = name
        return found

    def total(self):
        return total_of(self.stacks)

    def top(self, n):
        """The stacks that have most bytes, and what they have."""
        return sorted(self.stacks.items(), key=lambda item: -item[1][1])[:n]

    def differences(self, others, name, theirs, kind=None):
        """Sentences on the stacks of which @others, which is @theirs, has other sums; only of blocks of @kind."""
        ours = self.by_kind[kind] if kind else self.stacks
        stacks = others.by_kind[kind] if kind else others.stacks
        wrong = [stack for stack in {**ours, **stacks} if ours.get(stack) != stacks.get(stack)]
        names = {**others.names, **self.names}
        return [f"{name} has {ours.get(stack)} {kind or ''}, {theirs} {stacks.get(stack)}: " +
                " < ".join(names.get(place) or f"[{os.path.basename(place[0] or '-')}]"
                           for place in stack[:12])
                for stack in wrong]


def total_of(stacks):
    return tuple(sum(sums[n] for sums in stacks.values()) for n in (0, 1))


def of_recording(recording, blocks="live", size="live_bytes"):
    """@blocks and @size are columns of the view memory. Awaiting functions of Swift are not in the machine's stack, which is
    all that others have."""
    live = Live()
    modules = {0: None, **dict(recording.sql("SELECT id, path FROM modules"))}
    names = dict(recording.sql("SELECT frame, name FROM frame_names WHERE inlined = 0"))
    places = {frame: support.LOOP if modules[module] == "[Python]" else live.place(modules[module], offset - (not interrupted), names[frame])
              for frame, module, offset, interrupted in
              recording.sql("SELECT id, module, offset, interrupted FROM frames WHERE NOT tail_call AND interrupted < 2")}
    stacks = collections.defaultdict(list)
    for stack, frame in recording.sql("SELECT stack, frame FROM stack_frames ORDER BY stack, depth"):
        if frame in places:
            stacks[stack].append(places[frame])
    for stack, *sums in recording.sql(
            f"SELECT stack, sum({blocks}), sum({size}) FROM memory GROUP BY stack"):
        live.add(stacks[stack], *sums)
    for kind in KINDS.values():
        for stack, *sums in recording.sql(
                f"SELECT c.stack, sum(r.{kind}), sum(r.{kind}_bytes) FROM reach r JOIN counts c ON c.id = r.count "
                "GROUP BY c.stack"):
            live.add(stacks[stack], *sums, kind)
    return live


def of_memcheck(path):
    """Of its XML."""
    live = Live()
    for error in xml.etree.ElementTree.parse(path).getroot().iter("error"):
        frames = []
        for frame in error.find("stack"):
            file = frame.findtext("obj")
            if file is None:  # what is behind the outermost frame
                break
            frames.append(live.place(file, int(frame.findtext("ip"), 16), frame.findtext("fn")))
        what = error.find("xwhat")
        direct = DIRECT.search(what.findtext("text"))
        size = int(direct[1].replace(",", "") if direct else what.findtext("leakedbytes"))
        for kind in None, KINDS[error.findtext("kind")]:
            live.add(frames, int(what.findtext("leakedblocks")), size, kind)
    return live


def of_heaptrack(path):
    """Of its data file, each line of which is a letter and numbers in hexadecimal: strings, places,
    stacks by their parents, kinds of blocks, and then what came and went."""
    live = Live()
    strings, places, stacks, kinds = [None], [None], [()], []
    counts = collections.Counter()
    text = subprocess.run(["zstd", "-dc", path], check=True, stdout=subprocess.PIPE).stdout
    for line in text.decode(errors="replace").splitlines():
        letter, _, rest = line.partition(" ")
        if letter == "s":
            strings.append(rest.split(" ", 1)[1])
        elif letter == "i":
            address, module, *lines = (int(word, 16) for word in rest.split())
            # The first of them is inlined into the next.
            names = lines[0::3]
            places.append(live.place(strings[module], address, strings[names[-1]] if names else None))
        elif letter == "t":
            place, parent = (int(word, 16) for word in rest.split())
            stacks.append((places[place], *stacks[parent]))
        elif letter == "a":
            kinds.append(tuple(int(word, 16) for word in rest.split()))
        elif letter in ("+", "-"):
            counts[int(rest, 16)] += 1 if letter == "+" else -1
    for kind, blocks in counts.items():
        size, stack = kinds[kind]
        live.add(stacks[stack], blocks, blocks * size)
    return live
