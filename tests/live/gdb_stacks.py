# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs inside gdb: executes the program that gdb was given, and writes one line for each hit of the
C library's malloc that is not realloc's: the size, then its frames from malloc's caller outward, as
PATH+FILE_OFFSET (or ADDRESS where no file is mapped), separated by tabs. The last frame is gdb's
last, whatever it is."""

import os

import gdb

LIBC = os.environ["GDB_STACKS_LIBC"]
MALLOC = int(os.environ["GDB_STACKS_MALLOC"], 16)  # file offsets
REALLOC = int(os.environ["GDB_STACKS_REALLOC"], 16)
OUTPUT = os.environ["GDB_STACKS_OUTPUT"]


def mappings():
    found = []
    with open(f"/proc/{gdb.selected_inferior().pid}/maps") as lines:
        for line in lines:
            words = line.rstrip("\n").split(None, 5)
            if "x" in words[1]:
                start, end = (int(word, 16) for word in words[0].split("-"))
                found.append((start, end, int(words[2], 16), words[5] if len(words) > 5 else ""))
    return found


def register(frame, name):
    return int(frame.read_register(name)) & (1 << 64) - 1


def names_of_registers():
    """Of the first argument and of the stack pointer."""
    return ("x0", "sp") if gdb.selected_inferior().architecture().name() == "aarch64" else ("rdi", "rsp")


class Probe(gdb.Breakpoint):
    """Stops behind the first instructions of a function, away from its entry: where anyone has a
    uprobe there, the kernel takes a breakpoint for its own, or gdb stops twice."""

    def __init__(self, entry):
        instructions = gdb.selected_inferior().architecture().disassemble(entry, count=3)
        super().__init__(f"*{instructions[2]['addr']:#x}")


class Realloc(Probe):
    """glibc's realloc(NULL, size) jumps to malloc: its next hit, for the same caller."""
    caller_sp = None

    def stop(self):
        frame = gdb.newest_frame()
        argument, sp = names_of_registers()
        Realloc.caller_sp = None if register(frame, argument) else register(frame.older(), sp)
        return False


class Malloc(Probe):
    def stop(self):
        code = mappings()
        frame = gdb.newest_frame()
        argument, sp = names_of_registers()
        fields = [str(register(frame, argument))]
        frame = frame.older()
        jumped, Realloc.caller_sp = Realloc.caller_sp == register(frame, sp), None
        if jumped:
            return False
        while frame:
            # These share the pc of a real frame, or were concluded from debugging information.
            if frame.type() not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME):
                pc = frame.pc()
                field = hex(pc)
                for start, end, offset, path in code:
                    if start <= pc < end:
                        field = f"{path}+{pc - start + offset:#x}"
                fields.append(field)
            frame = frame.older()
        output.write("\t".join(fields) + "\n")
        return False


def libc_is_there(event):
    for start, end, offset, path in mappings():
        if os.path.realpath(path) == LIBC and offset <= MALLOC < offset + end - start:
            gdb.events.new_objfile.disconnect(libc_is_there)
            Malloc(start + MALLOC - offset)
            Realloc(start + REALLOC - offset)


output = open(OUTPUT, "w")
for command in ("pagination off", "confirm off", "debuginfod enabled off",
                "backtrace past-main on", "backtrace past-entry on", "backtrace limit unlimited",
                "auto-load off", "debug-file-directory /nonexistent", "width 0",
                # As without gdb.
                "disable-randomization off"):
    gdb.execute("set " + command)
for variable in ("LINES", "COLUMNS", "GDB_STACKS_LIBC", "GDB_STACKS_MALLOC",
                 "GDB_STACKS_REALLOC", "GDB_STACKS_OUTPUT"):
    gdb.execute("unset environment " + variable)
gdb.events.new_objfile.connect(libc_is_there)
gdb.execute("run")
output.close()
