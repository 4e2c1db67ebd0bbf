#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""What `allocprof graph` draws of made-up recordings: complete, legible, and the same each time.

pictures.py ALLOCPROF WRITE_FIXTURE
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

# Each with words that the picture must have.
RECORDINGS = {
    "case-study": ["leak_session", "cache_insert", "load_plugin"],
    "behaviours": ["free_at_the_end", "leak_linearly", "cache_insert", "1000 KiB", "4 MiB",
                   "resident memory", "not freed", "freed", "0.2 s",
                   "allocations per second", "behaviours --seconds 2"],
    "empty": ["no block was allocated", "no live bytes"],
    "short_lived": ["every block was freed in the same 1 ms", "1.5 M"],
    "one": ["only_one", "7.81 KiB", "0.5 ms"],
    "many": ["92 other stacks", "8 h", "emplace_or_replace_with_hint_and_notify_1", "15 GiB",
             "1,234 of 1,334 calls were lost"],
    "rss": ["pool_grow", "1000 MiB", "resident memory, and what it was at some moments", "live blocks", "800 MiB",
            "pages of the allocator without a live block"],
}


def fail(message):
    print(message)
    print("run it alone:", " ".join(sys.argv))
    sys.exit(1)


def draw(allocprof, cwd, name, suffix, *options, times=2):
    output = os.path.join(cwd, name + suffix)
    words = [allocprof, "graph", "-i", name + ".data", "-o", output, *options]
    done = subprocess.run(words, cwd=cwd, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        fail(f"{words} ended with {done.returncode}: {done.stderr}")
    first = open(output, "rb").read()
    if times > 1:
        subprocess.run(words, cwd=cwd, stderr=subprocess.DEVNULL, check=True)
    if open(output, "rb").read() != first:
        fail(f"{words} drew something else the second time")
    return output, first


def check_places(name, pdf):
    """No text leaves the page or covers another."""
    boxes = subprocess.run(["pdftotext", "-bbox-layout", pdf, "-"], stdout=subprocess.PIPE,
                           text=True, check=True).stdout
    number = r'="([-\d.]+)"'
    page = re.search(r'<page width="([\d.]+)" height="([\d.]+)">', boxes)
    width, height = map(float, page.groups())
    words = [(*map(float, found.groups()[:4]), found.group(5)) for found in re.finditer(
        rf"<word xMin{number} yMin{number} xMax{number} yMax{number}>(.*?)</word>", boxes)]
    if not words:
        fail(f"{name}: no text in the picture")
    for x, y, right, bottom, text in words:
        if x < 0 or y < 0 or right > width or bottom > height:
            fail(f"{name}: '{text}' leaves the page of {width}x{height}: {x},{y} {right},{bottom}")
    for i, (x, y, right, bottom, text) in enumerate(words):
        for x2, y2, right2, bottom2, text2 in words[i + 1:]:
            # Boxes are as high as the highest letters, so neighbouring lines may touch.
            if min(right, right2) - max(x, x2) > 1 and min(bottom, bottom2) - max(y, y2) > 4:
                fail(f"{name}: '{text}' and '{text2}' cover each other at {x},{y}")


def main():
    allocprof, write_fixture = map(os.path.abspath, sys.argv[1:3])
    if not shutil.which("pdftotext"):
        print("pdftotext is not installed")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as cwd:
        for name, wanted in RECORDINGS.items():
            subprocess.run([write_fixture, os.path.join(cwd, name + ".data"), name], check=True)
            svg, _ = draw(allocprof, cwd, name, ".svg")
            root = xml.etree.ElementTree.parse(svg).getroot()
            if not root.tag.endswith("}svg"):
                fail(f"{name}: an SVG is expected, the root element is {root.tag}")
            if root.get("width").removesuffix("px") != "1000":
                fail(f"{name}: the SVG is {root.get('width')} wide, more than a window has room for")
            _, png = draw(allocprof, cwd, name, ".png")
            if not png.startswith(b"\x89PNG\r\n") or not png.endswith(b"IEND\xaeB`\x82"):
                fail(f"{name}: no whole PNG")
            pdf, _ = draw(allocprof, cwd, name, ".pdf")
            check_places(name, pdf)
            text = subprocess.run(["pdftotext", "-layout", pdf, "-"], stdout=subprocess.PIPE,
                                  text=True, check=True).stdout
            for words in wanted:
                # A PDF has places, not spaces.
                if "".join(words.split()) not in "".join(text.split()):
                    fail(f"{name}: '{words}' is expected in the picture, which has:\n{text}")
            none, _ = draw(allocprof, cwd, name, ".pdf", "--leaks", "--max-size=1", times=1)
            check_places(name + ", next to nothing selected", none)
            many, _ = draw(allocprof, cwd, name, ".pdf", "--top=16", times=1)
            check_places(name + " --top=16", many)


main()
