# SPDX-License-Identifier: GPL-3.0-or-later
"""What a recording calls the places in a program, what addr2line calls them, and what the program's
source says that it does."""

import collections
import dataclasses
import os
import re
import subprocess

from support import Recording

THUNK = re.compile(r"^((?:non-)?virtual thunk to )")
# By which a bracket is meant, and not the beginning of arguments.
OPERATOR = re.compile(r"\boperator ?(\(\)|<=>|->\*?|<<=?|>>=?|<=?|>=?)")
PLACEHOLDERS = str.maketrans("()<>-", "\1\2\3\4\5")
BACK = str.maketrans("\1\2\3\4\5", "()<>-")


def without_brackets(text, opening, closing):
    """Without what is between outermost brackets, and without these."""
    kept = []
    depth = 0
    for letter in text:
        if letter == opening:
            depth += 1
        elif letter == closing:
            depth -= 1
        elif not depth:
            kept.append(letter)
    return "".join(kept)


def plain(name):
    """A demangled name without parameters, template arguments, return type, and what the compiler
    or the ABI adds: that much all demanglers agree on."""
    name = re.sub(r" \[clone [^]]*\]|\[abi:[^]]*\]", "", name)
    name = re.sub(r"(\.(cold|part|isra|constprop|llvm|lto_priv)(\.\d+)?)+$", "", name)
    name = re.sub(r"::h[0-9a-f]{16}$", "", name)
    name = re.sub(r"\[[0-9a-f]+\]", "", name)
    thunk = THUNK.match(name)
    name = name[thunk.end():] if thunk else name
    name = name.replace("(anonymous namespace)", "\6").replace("{{closure}}", "{closure}")
    name = re.sub(r"\{closure[^}]*\}", "{closure}", name)
    name = OPERATOR.sub(lambda found: found[0].translate(PLACEHOLDERS), name)
    # <Type as Trait>::method, <Type>::method
    if name.startswith("<"):
        name = "T" + name
    name = without_brackets(without_brackets(name, "(", ")"), "<", ">")
    name = name.replace("::::", "::").removesuffix("::")
    name = re.sub(r"( const| volatile| &+)*$", "", name.strip())
    operator = re.search(r"\S*\boperator\b.*$", name)
    name = operator[0] if operator else name.split(" ")[-1]
    return (thunk[1] if thunk else "") + name.translate(BACK).replace("\6", "(anonymous namespace)")


def leaf(name):
    """The last of a name's parts: local functions have no others in DWARF."""
    name = THUNK.sub("", plain(name))
    start = name.find("operator")
    return name[start:] if start >= 0 else name.split("::")[-1]


@dataclasses.dataclass(frozen=True)
class Line:
    """A function that a place belongs to, and where in it."""
    name: str
    place: str  # "file.c:7", "" where it is not known


def demangled(names):
    """By c++filt, which knows C++'s and Rust's."""
    names = list(names)
    output = subprocess.run(["c++filt"], input="\n".join(names), stdout=subprocess.PIPE, check=True,
                            text=True).stdout
    return dict(zip(names, output.split("\n")))


def lines_of(tool, path, addresses):
    output = subprocess.run([tool, "-a", "-f", "-i", "-e", path, *[f"{a:#x}" for a in addresses]],
                            stdout=subprocess.PIPE, text=True).stdout
    found = {}
    for line in output.splitlines():
        if re.fullmatch(r"0x[0-9a-f]{16}", line):
            lines = found[int(line, 16)] = []
            name = None
        elif name is None:
            name = line.split(" inlined at ")[0]
        else:
            # eu-addr2line tells the column too.
            place = re.match(r"(.*?:[0-9?]+)(:\d+)?( \(discriminator \d+\))?$", line)[1]
            place = os.path.basename(place)
            lines.append(Line(name, "" if place.endswith((":?", ":0")) else place))
            name = None
    readable = demangled({line.name for lines in found.values() for line in lines})
    return {address: [Line(readable[line.name], line.place) for line in lines]
            for address, lines in found.items()}


def addr2line(path, addresses):
    """Lines by address, the innermost of each first. addr2line calls the innermost, where DWARF has
    no linker's name for it, by the name of the symbol; there eu-addr2line knows better. That one
    knows nothing where the compiler made no .debug_aranges, as LLVM's do not."""
    binutils, elfutils = (lines_of(tool, path, addresses) for tool in ("addr2line", "eu-addr2line"))
    return {address: other if places(other) == places(lines) else lines
            for (address, lines), other in zip(binutils.items(), elfutils.values())}


def places(lines):
    return [line.place for line in lines]


@dataclasses.dataclass(frozen=True)
class Frame:
    path: str
    address: int  # of the call
    lines: tuple  # innermost first; empty without a name


@dataclasses.dataclass(frozen=True)
class Stack:
    function: str
    calls: int
    bytes: int
    end: str
    frames: tuple  # innermost first

    def names(self):
        """Outermost first."""
        return [line.name for frame in reversed(self.frames) for line in reversed(frame.lines)]

    def text(self):
        return ";".join(line.name if line else f"[{os.path.basename(frame.path)}]"
                        for frame in reversed(self.frames)
                        for line in reversed(frame.lines or (None,)))


class Named(Recording):
    """A data file with the lines of all frames."""

    def stacks(self, column="name"):
        lines = collections.defaultdict(list)
        for frame, name, file, line in self.sql(
                f"SELECT l.frame, u.{column}, coalesce(f.path, ''), l.line FROM lines l "
                "JOIN functions u ON u.id = l.function LEFT JOIN files f ON f.id = l.file "
                "ORDER BY l.frame, l.depth"):
            lines[frame].append(Line(name, f"{os.path.basename(file)}:{line}" if line else ""))
        frames = {frame: Frame(path, offset - (not interrupted), tuple(lines[frame]))
                  for frame, path, offset, interrupted in self.sql(
                      "SELECT f.id, coalesce(m.path, ''), f.offset, f.interrupted FROM frames f "
                      "LEFT JOIN modules m ON m.id = f.module WHERE NOT f.tail_call")}
        of_stack = collections.defaultdict(list)
        for stack, frame in self.sql("SELECT stack, frame FROM stack_frames ORDER BY stack, depth"):
            if frame in frames:
                of_stack[stack].append(frames[frame])
        ends = dict(self.sql("SELECT id, end FROM stacks"))
        return [Stack(function, calls, size, ends[stack], tuple(of_stack[stack]))
                for function, calls, size, stack in
                self.sql("SELECT function, calls, bytes, stack FROM counts")]

    def frames(self, path, column="name"):
        """Those in the file @path."""
        return {frame for stack in self.stacks(column) for frame in stack.frames
                if os.path.realpath(frame.path) == os.path.realpath(path)}


@dataclasses.dataclass(frozen=True)
class Stated:
    """A line of a program's first comment."""
    least: int
    most: int
    names: tuple  # (name, whether it is inlined), outermost first

    def functions(self, inlined):
        return [name for name, is_inlined in self.names if inlined or not is_inlined]


def stated(source):
    found = []
    for line in source.read_text().splitlines():
        match = re.match(r"^(?: \*|//!) +(\d+)(?: to (\d+))? bytes: (.+)$", line)
        if not match:
            continue
        names = []
        inlined = False
        for word in match[3].split(";"):
            inlined |= word.startswith("[")
            names.append((word.strip("[]"), inlined))
            inlined &= not word.endswith("]")
        found.append(Stated(int(match[1]), int(match[2] or match[1]), tuple(names)))
    assert found, f"{source} states nothing"
    return found
