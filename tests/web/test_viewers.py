# SPDX-License-Identifier: GPL-3.0-or-later
"""allocprof export in the windows of others' viewers: they show what `report` and `folded` say of the same recording."""

import contextlib
import os
import pathlib
import re
import shutil
import signal
import sqlite3
import struct
import subprocess
import time
from collections import Counter

import pytest

import data_digest
from conftest import unavailable

DH_VIEW = pathlib.Path("/usr/libexec/valgrind/dh_view.html")
SPEEDSCOPE = pathlib.Path("/var/cache/allocprof/speedscope/dist/release/index.html")
# speedscope's profiles, and what report calls the sum of their weights.
SPEEDSCOPE_KINDS = {"bytes allocated": "bytes", "allocations": "allocations", "live bytes": "live_bytes",
                    "live blocks": "live", "temporary allocations": "temporary", "bytes at the peak": "peak_bytes"}
TIMEOUT_SECONDS = 60
in_chromium = pytest.mark.parametrize("started", ["chromium"], indirect=True)


@pytest.fixture
def export(run, tmp_path):
    def write(data, form):
        path = tmp_path / f"out.{form}"
        run("export", f"--format={form}", "-i", data, "-o", path)
        return path
    return write


@in_chromium
def test_dhats_viewer(started, case_study, export, totals):
    if not DH_VIEW.exists():
        unavailable("valgrind is not installed")
    expected = totals(case_study)
    started.show(DH_VIEW)
    started.give_file("input[type=file]", export(case_study, "dhat"))
    started.wait_until("document.body.innerText.includes('t-end: ')")
    # The first node is the root: all of the program.
    shown = {}
    for name, size_bytes, blocks in re.findall(r"(Total|At t-gmax|At t-end): +([\d,]+) bytes .*? in ([\d,]+) blocks",
                                               started.text("pre")):
        shown.setdefault(name, (int(size_bytes.replace(",", "")), int(blocks.replace(",", ""))))
    assert shown == {"Total": (expected["bytes"], expected["allocations"]),
                     "At t-gmax": (expected["peak_bytes"], expected["peak"]),
                     "At t-end": (expected["live_bytes"], expected["live"])}
    assert all(map(all, shown.values())) and started.errors() == []


def rounded(size_bytes):
    """As speedscope writes it."""
    for unit in ("B", "KB", "MB"):
        if size_bytes < 1024 or unit == "MB":
            return f"{size_bytes:.{0 if unit == 'B' else 2}f} {unit}"
        size_bytes /= 1024


@in_chromium
def test_speedscope(started, run, case_study, export, totals):
    if not SPEEDSCOPE.exists():
        unavailable("speedscope is not installed: scripts/setup --ci installs it")
    expected = totals(case_study)
    started.show(SPEEDSCOPE)
    started.wait_until("!!document.querySelector('input[type=file]')")
    started.give_file("input[type=file]", export(case_study, "speedscope"))
    started.wait_until("!!document.querySelector('tbody tr[title]')")
    # The list of profiles. Only bytes have a unit.
    rows = started.evaluate("""[...document.querySelectorAll('tbody tr[title]')].map(
        (row) => [row.title, row.cells[2].textContent])""")
    assert dict(rows) == {name: rounded(expected[kind]) if "bytes" in name else f"{expected[kind]:,}"
                          for name, kind in SPEEDSCOPE_KINDS.items()}
    # The table of functions, of the first profile.
    started.evaluate("""[...document.querySelectorAll('div')].find((one) => one.textContent === '🥪Sandwich').click()""")
    # The head of the table is there before its rows.
    started.wait_until("[...document.querySelectorAll('table')].at(-1).innerText.includes('(100%)')")
    rows = started.evaluate("""[...document.querySelectorAll('table')].at(-1).innerText""")
    shown = {name: total for total, name in re.findall(
        r"^(\S+ [KM]?B) \([^)]*\)\s+\S+ [KM]?B \([^)]*\)\s+(\S.*)$", rows, re.M)}
    sums = Counter()
    for line in run("folded", "-i", case_study, "--cost=bytes").splitlines():
        stack, size_bytes = line.rsplit(" ", 1)
        for name in {re.sub(r"_\[i\]$", "", name) for name in stack.split(";")}:
            sums[name] += int(size_bytes)
    assert shown == {name: rounded(total) for name, total in sums.items()} != {}
    assert started.errors() == []


@contextlib.contextmanager
def started_program(words, **more):
    """Ends with all that it starts."""
    program = subprocess.Popen(words, stdin=subprocess.DEVNULL, start_new_session=True, **more)
    try:
        yield program
    finally:
        # Xvfb has files in /tmp, which it deletes then.
        program.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            program.wait(10)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(program.pid, signal.SIGKILL)
        program.wait()


@contextlib.contextmanager
def display(directory):
    """An X server that draws into directory/Xvfb_screen0; its name."""
    read, write = os.pipe()
    words = ["Xvfb", "-displayfd", str(write), "-screen", "0", "1280x900x24", "-nolisten", "tcp", "-noreset", "-fbdir",
             directory]
    with open(read) as number, started_program(words, pass_fds=[write], stdout=subprocess.DEVNULL,
                                               stderr=subprocess.DEVNULL):
        os.close(write)
        yield f":{int(number.readline())}"


def share_of_background(path):
    """Of the picture, which is xwd's: the part that has the most frequent colour."""
    data = path.read_bytes()
    header = struct.unpack(">25I", data[:100])
    header_bytes, width, height, bits, row_bytes, colours = (header[at] for at in (0, 4, 5, 11, 12, 19))
    assert (bits, row_bytes) == (32, 4 * width)
    start = header_bytes + 12 * colours
    pixels = Counter(struct.unpack(f"<{width * height}I", data[start:start + 4 * width * height]))
    return max(pixels.values()) / (width * height)


@pytest.mark.parametrize("temporary", [True, False], ids=["temporary", "none_temporary"])
def test_heaptracks_viewer(case_study, export, tmp_path, temporary):
    """It shows the summary of the file, which has a coloured table for each cost, and no complaint."""
    if not temporary:
        with sqlite3.connect(case_study) as database:
            database.execute("UPDATE blocks SET temporary = 0, temporary_bytes = 0")
            data_digest.renew(database)
    for program in ("Xvfb", "xdotool", "heaptrack_gui"):
        if not shutil.which(program):
            unavailable(f"{program} is not installed: scripts/setup --ci installs it")
    path = export(case_study, "heaptrack").rename(tmp_path / "of-allocprof.gz")
    screen, log = tmp_path / "Xvfb_screen0", tmp_path / "log"
    with display(tmp_path) as name, open(log, "w") as output:
        env = {**os.environ, "DISPLAY": name, "QT_QPA_PLATFORM": "xcb", "LC_ALL": "C.UTF-8", "HOME": str(tmp_path),
               "XDG_RUNTIME_DIR": str(tmp_path)}
        with started_program(["heaptrack_gui", path], env=env, stdout=output, stderr=output) as viewer:
            end, title, share = time.monotonic() + TIMEOUT_SECONDS, "", 1
            # An empty screen and the page that says that the file is being read are nearly of one colour.
            while (path.name not in title or share > 0.7) and time.monotonic() < end and viewer.poll() is None:
                title = subprocess.run(["xdotool", "search", "--onlyvisible", "--name", path.name, "getwindowname"],
                                       env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout.decode()
                share = share_of_background(screen)
            assert viewer.poll() is None, log.read_text()
    assert path.name in title and share <= 0.7
    assert "corrupt" not in log.read_text()


def test_pprofs_text(case_study, export):
    """Where functions are inlined at a place, each has a line of its own, innermost first; and modules have build ids."""
    if not shutil.which("go"):
        unavailable("go is not installed")
    raw = subprocess.run(["go", "tool", "pprof", "-raw", export(case_study, "pprof")], check=True,
                         stdout=subprocess.PIPE).stdout.decode()
    database = sqlite3.connect(case_study)
    places, mappings = raw.split("Locations\n")[1].split("Mappings\n")
    # "8: 0x15ff M=1 NAME FILE:LINE s=0", and the lines that follow at the same place begin without a number.
    shown = [re.findall(r" (\S+):(\d+) s=0", place) for place in re.split(r"^ +\d+: 0x", places, flags=re.M)[1:]]
    expected = [[(path, str(line)) for path, line in database.execute(
        "SELECT path, line FROM lines JOIN files ON file = files.id WHERE frame = ? ORDER BY depth", frame)]
        for frame in database.execute("SELECT DISTINCT frame FROM lines WHERE inlined")]
    assert expected and sorted(lines for lines in shown if len(lines) > 1) == sorted(expected)
    build_ids = database.execute("SELECT path, build_id FROM modules WHERE id IN (SELECT module FROM frames)").fetchall()
    assert sorted(re.findall(r"^\d+: \S+ (\S+) (\S+) \[FN\]", mappings, re.M)) == sorted(build_ids)


@pytest.mark.parametrize("index, kind, unit", [
    ("alloc_objects", "allocations", "count"), ("alloc_space", "bytes", "B"),
    ("inuse_objects", "live", "count"), ("inuse_space", "live_bytes", "B")])
def test_pprofs_totals(case_study, export, totals, index, kind, unit):
    """For each index of its samples."""
    if not shutil.which("go"):
        unavailable("go is not installed")
    text = subprocess.run(["go", "tool", "pprof", "-top", f"-sample_index={index}", f"-unit={unit}",
                           export(case_study, "pprof")], check=True, stdout=subprocess.PIPE).stdout.decode()
    assert int(re.search(r"of (\d+)\w* total", text)[1]) == totals(case_study)[kind] > 0
    assert f"Type: {index}\n" in text
