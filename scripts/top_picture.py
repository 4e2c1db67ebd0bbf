#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Draws what `allocprof top` shows of a process after some seconds as SVG: top_picture.py ALLOCPROF PID SECONDS OUTPUT"""

import html
import pathlib
import re
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests/live"))

from played_terminal import Terminal  # noqa: E402
from support import Runner  # noqa: E402

WIDTH, HEIGHT = 8.4, 17
BACKGROUND = "#1e1e1e"
BOLD = ' font-weight="bold"'
COLOURS = {"default": "#d4d4d4", "red": "#f48771", "green": "#89d185"}


def runs_of(line, columns):
    """Neighbours that look alike: the column of the first, its look, the text."""
    runs = []
    for x in range(columns):
        char = line[x]
        look = (COLOURS.get(char.fg, COLOURS["default"]), char.bold, char.reverse)
        if not runs or runs[-1][1] != look:
            runs.append([x, look, ""])
        runs[-1][2] += char.data
    return runs


def draw(screen):
    width, height = screen.columns * WIDTH + 20, screen.lines * HEIGHT + 20
    yield (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" font-family="DejaVu Sans Mono, '
           f'monospace" font-size="14"><title>allocprof top</title>'
           f'<rect width="100%" height="100%" rx="6" fill="{BACKGROUND}"/>')
    for y in range(screen.lines):
        for x, (colour, bold, reverse), text in runs_of(screen.buffer[y], screen.columns):
            at, base = 10 + x * WIDTH, 10 + y * HEIGHT
            if reverse:
                yield f'<rect x="{at:.1f}" y="{base}" width="{len(text) * WIDTH:.1f}" height="{HEIGHT}" fill="{colour}"/>'
            # Viewers make one blank of several.
            for word in re.finditer(r"\S+(?: \S+)*", text):
                yield (f'<text x="{at + word.start() * WIDTH:.1f}" y="{base + 13}" textLength="{len(word[0]) * WIDTH:.1f}" '
                       f'fill="{BACKGROUND if reverse else colour}"{BOLD if bold else ""}>{html.escape(word[0])}</text>')
    yield "</svg>"


def main():
    allocprof, pid, seconds, output = sys.argv[1:]
    runner = Runner()
    terminal = Terminal(runner, [allocprof, "top", "-p", pid], rows=20, columns=100)
    end = time.monotonic() + float(seconds)
    while time.monotonic() < end and terminal.read(0.1):
        pass
    pathlib.Path(output).write_text("\n".join(draw(terminal.screen)) + "\n")
    terminal.press("q")
    terminal.end()


main()
