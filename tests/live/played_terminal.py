# SPDX-License-Identifier: GPL-3.0-or-later
"""A terminal for commands that draw on one, and what it shows."""

import fcntl
import os
import re
import select
import struct
import termios
import time

import pyte

from support import TIMEOUT_SECONDS

class Terminal:
    """A command on a terminal, which it may draw on."""

    def __init__(self, runner, argv, rows=24, columns=80, **env):
        self.screen = pyte.Screen(columns, rows)
        self.stream = pyte.ByteStream(self.screen)
        self.raw = b""
        self.fd, end = os.openpty()
        self.set_size(rows, columns)

        def take_terminal():
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        self.process = runner.start(argv, {"TERM": "xterm-256color", "LC_ALL": "C.UTF-8", **env}, stdin=end,
                                    stdout=end, stderr=end, preexec_fn=take_terminal)
        os.close(end)

    def set_size(self, rows, columns):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def resize(self, rows, columns):
        self.screen.resize(rows, columns)
        self.set_size(rows, columns)

    def press(self, keys):
        os.write(self.fd, keys.encode())

    def read(self, seconds):
        """Draws what comes. Returns false when nobody has the terminal any more."""
        if not select.select([self.fd], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self.fd, 65536)
        except OSError:
            return False
        self.raw += data
        self.stream.feed(data)
        return bool(data)

    @property
    def lines(self):
        return [line.rstrip() for line in self.screen.display]

    @property
    def text(self):
        return "\n".join(self.lines)

    def wait(self, words, but=None):
        """Until @words, a regular expression, are shown, and @but is not. What is drawn comes in parts, so that what was
        drawn with @words may not be shown yet."""
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while not re.search(words, self.text) or (but and re.search(but, self.text)):
            if time.monotonic() > deadline or not self.read(0.1):
                raise AssertionError(f"'{words}' is not shown{f', or {but} is' if but else ''}:\n{self.text}")
        return self.text

    def end(self, expect=0):
        while self.read(1):
            pass
        assert self.process.wait(TIMEOUT_SECONDS) == expect, self.text
        os.close(self.fd)
