# SPDX-License-Identifier: GPL-3.0-or-later
"""A terminal for programs that are tested, and what someone who sits at it sees."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time

from support import TIMEOUT_SECONDS, shell_status


class Screen:
    """The rows that a terminal of @columns shows, for the few controls that are used here; any other
    is an error."""

    CONTROL = re.compile(rb"\r|\n|\x1b\[K|[^\x00-\x1f\x7f]+")

    def __init__(self, columns):
        self.columns = columns
        self.rows = [""]
        self.goes_on = [False]  # whether a row is full and the next one its continuation
        self.column = 0
        self.shown = []  # each row as it was when its end was erased

    def _print(self, text):
        for letter in text:
            if self.column == self.columns:
                self.goes_on[-1] = True
                self._new_row()
                self.column = 0
            row = self.rows[-1].ljust(self.column)
            self.rows[-1] = row[:self.column] + letter + row[self.column + 1:]
            self.column += 1

    def _new_row(self):
        self.rows.append("")
        self.goes_on.append(False)

    def feed(self, output):
        at = 0
        while at < len(output):
            found = self.CONTROL.match(output, at)
            assert found, f"a terminal is not known to do this: {output[at:at + 20]!r}"
            at = found.end()
            if found[0] == b"\r":
                self.column = 0
            elif found[0] == b"\n":
                self._new_row()
            elif found[0] == b"\x1b[K":
                self.rows[-1] = self.rows[-1][:self.column]
                self.shown.append(self.rows[-1])
            else:
                self._print(found[0].decode())
        return self

    def lines(self):
        """Rows that go on are one line; without the empty one at the end."""
        text = "".join(row + ("" if goes_on else "\n")
                       for row, goes_on in zip(self.rows, self.goes_on))
        return text.rstrip("\n").split("\n")


class Terminal:
    """Runs @argv on a terminal of its own, which is its controlling terminal."""

    def __init__(self, runner, argv, columns=80, env=None, cwd=None):
        self.argv = [str(word) for word in argv]
        self.columns = columns
        self.output = b""
        self.status = None
        self.deadline = time.monotonic() + TIMEOUT_SECONDS
        runner.commands.append(f"(on a terminal) {self.argv}")
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            size = struct.pack("HHHH", 24, columns, 0, 0)
            fcntl.ioctl(0, termios.TIOCSWINSZ, size)
            if cwd:
                os.chdir(cwd)
            os.execvpe(self.argv[0], self.argv, {**os.environ, "TERM": "xterm", **(env or {})})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.status is None:
            # Its own session, and with the terminal closed nothing of that stays.
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.master)

    def _read(self):
        """False when the terminal's last user has gone."""
        assert time.monotonic() < self.deadline, \
            f"no end on a terminal: {self.argv}: {self.output!r}"
        if not select.select([self.master], [], [], 1)[0]:
            return True
        try:
            data = os.read(self.master, 4096)
        except OSError:
            return False
        self.output += data
        return bool(data)

    def type(self, keys):
        os.write(self.master, keys)

    def screen(self):
        return Screen(self.columns).feed(self.output)

    def wait_for(self, condition, what):
        """Reads until @condition(self.screen()) is true."""
        while not condition(self.screen()):
            assert self._read(), f"it ended without {what}: {self.argv}: {self.output!r}"

    def end(self):
        """Reads to the end. What was written, as a program sees it, and the exit status."""
        while self._read():
            pass
        _, status = os.waitpid(self.pid, 0)
        self.status = shell_status(os.waitstatus_to_exitcode(status))
        return self.output.replace(b"\r\n", b"\n"), self.status


def on_terminal(runner, argv, keys=None):
    """The same, from beginning to end. Types @keys after "ready"."""
    with Terminal(runner, argv) as terminal:
        if keys:
            terminal.wait_for(lambda _: b"ready" in terminal.output, "saying ready")
            terminal.type(keys)
        return terminal.end()
