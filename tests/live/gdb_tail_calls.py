# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs inside gdb: executes the program that gdb was given, and prints a line for each hit of malloc in it:
"malloc SIZE", and its frames from malloc's caller to main, separated by tabs; those that gdb concludes from
debugging information, as tail calls removed them, with " [tail call]"."""

import gdb


class Malloc(gdb.Breakpoint):
    def __init__(self):
        entry = int(gdb.parse_and_eval("(long)&malloc"))
        # Away from the entry, where the kernel may take the breakpoint for a probe's.
        instructions = gdb.selected_inferior().architecture().disassemble(entry, count=3)
        super().__init__(f"*{instructions[2]['addr']:#x}")

    def stop(self):
        fields = [f"malloc {int(gdb.newest_frame().read_register('rdi'))}"]
        frame = gdb.newest_frame().older()
        while frame:
            if frame.type() != gdb.INLINE_FRAME:
                mark = " [tail call]" if frame.type() == gdb.TAILCALL_FRAME else ""
                fields.append((frame.name() or "?") + mark)
            frame = frame.older()
        print("\t".join(fields))
        return False


for command in ("pagination off", "confirm off", "debuginfod enabled off", "auto-load off",
                "debug-file-directory /nonexistent", "width 0", "language c"):
    gdb.execute("set " + command)
gdb.execute("tbreak main")
gdb.execute("run")
Malloc()
gdb.execute("continue")
