# SPDX-License-Identifier: GPL-3.0-or-later
"""What is live at the end of a program, by stack, as heaptrack and valgrind's memcheck have it."""

import collections
import os
import re
import subprocess
import xml.etree.ElementTree

PAGE = 4096
# Fewer than any of them keeps.
MOST_FRAMES = 50
# Where valgrind's malloc and operator new are, and heaptrack's dlopen.
THEIR_LIBRARIES = re.compile(r"/(vgpreload_|libheaptrack_)[^/]*$")
# Of what leads to others memcheck tells both: "72 (24 direct, 48 indirect) bytes in 1 blocks".
DIRECT = re.compile(r"\(([0-9,]+) direct, ")


class Live:
    """Blocks and bytes by stack, of which each frame is (file, address of the call within its page):
    where a file is mapped differs from run to run, and not by parts of pages."""

    def __init__(self):
        self.stacks = collections.defaultdict(lambda: [0, 0])
        self.names = {}
        self.lost = 0  # blocks that nothing points to any more, where that is known

    def add(self, frames, blocks, size):
        if blocks:
            frames = [frame for frame in frames if not THEIR_LIBRARIES.search(frame[0] or "")]
            sums = self.stacks[tuple(frames[:MOST_FRAMES])]
            sums[0] += blocks
            sums[1] += size

    def place(self, path, address, name=None):
        found = (os.path.realpath(path) if path else None, address % PAGE)
        if name:
            self.names[found] = name
        return found

    def total(self):
        return tuple(sum(sums[n] for sums in self.stacks.values()) for n in (0, 1))

    def top(self, n):
        """The stacks that have most bytes, and what they have."""
        return sorted(self.stacks.items(), key=lambda item: -item[1][1])[:n]

    def differences(self, others, name, theirs):
        """Sentences on the stacks of which @others, which is @theirs, has other sums."""
        wrong = [stack for stack in {**self.stacks, **others.stacks}
                 if self.stacks.get(stack) != others.stacks.get(stack)]
        names = {**others.names, **self.names}
        return [f"{name} has {self.stacks.get(stack)}, {theirs} {others.stacks.get(stack)}: " +
                " < ".join(names.get(place) or f"[{os.path.basename(place[0] or '-')}]"
                           for place in stack[:12])
                for stack in wrong]


def of_recording(recording, blocks="live", size="live_bytes"):
    """@blocks and @size are columns of the view memory."""
    live = Live()
    modules = {0: None, **dict(recording.sql("SELECT id, path FROM modules"))}
    names = dict(recording.sql("SELECT frame, name FROM frame_names WHERE inlined = 0"))
    places = {frame: live.place(modules[module], offset - (not interrupted), names[frame])
              for frame, module, offset, interrupted in
              recording.sql("SELECT id, module, offset, interrupted FROM frames WHERE NOT tail_call")}
    stacks = collections.defaultdict(list)
    for stack, frame in recording.sql("SELECT stack, frame FROM stack_frames ORDER BY stack, depth"):
        if frame in places:
            stacks[stack].append(places[frame])
    for stack, *sums in recording.sql(
            f"SELECT stack, sum({blocks}), sum({size}) FROM memory GROUP BY stack"):
        live.add(stacks[stack], *sums)
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
        live.add(frames, int(what.findtext("leakedblocks")), size)
        if error.findtext("kind") == "Leak_DefinitelyLost":
            live.lost += int(what.findtext("leakedblocks"))
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
