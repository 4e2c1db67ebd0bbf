# SPDX-License-Identifier: GPL-3.0-or-later
"""record --reachable against LeakSanitizer, of the same sources built with it: what is lost by function.

LeakSanitizer has two kinds of blocks, those that any pointer leads to, inside or not, and leaks. Whether a leak is direct or
indirect it says otherwise than memcheck, of circles, so their sums are compared. It does not search memory that the program
has mapped or taken by sbrk(2) itself, and knows the pointer behind the number of new T[0]: such cases are left out.
"""

import collections
import re
import shutil
import subprocess

import pytest

from support import SOURCE, Recording, unavailable

SOURCES = {"reachable": SOURCE / "tests" / "targets" / "reachable.cpp", "objects": SOURCE / "tests" / "targets" / "reachable" / "objects.cpp"}
# Whether something is lost.
CASES = {
    ("reachable", "lost"): True,
    ("reachable", "lost_chain"): True,
    ("reachable", "cycle"): True,
    ("reachable", "shared"): True,
    ("reachable", "inside"): False,
    ("reachable", "behind_inside"): False,
    ("reachable", "past_the_end"): True,
    ("reachable", "odd_sizes"): True,
    ("reachable", "unaligned"): True,
    ("reachable", "hidden"): True,
    ("reachable", "freed"): True,
    ("reachable", "strings"): True,
    ("reachable", "containers"): False,
    ("reachable", "functions"): False,
    ("reachable", "threads"): False,
    ("reachable", "grown"): True,
    ("objects", "functions"): True,
    ("objects", "anys"): True,
    ("objects", "virtual_bases"): True,
    ("objects", "pure_bases"): True,
    ("objects", "aligned_new"): True,
    ("objects", "coroutines"): True,
    ("objects", "shared_pointers"): True,
    ("objects", "intrusive"): False,
    ("objects", "tagged"): False,
    ("objects", "containers"): False,
}
LEAK = re.compile(r"(?:Direct|Indirect) leak of (\d+) byte\(s\) in (\d+) object\(s\) allocated from:")
FRAME = re.compile(r" +#\d+ 0x[0-9a-f]+ in ([^ (]+)")
# A function of the source by itself; what is in classes and templates compilers name in several ways.
OWN = re.compile(r"^(?:NOINLINE )?static [\w*: ]+?[ *](\w+)\(", re.MULTILINE)


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    """build(name, *flags): a program of SOURCES."""
    if not shutil.which("g++"):
        unavailable("g++ is not installed")
    directory = tmp_path_factory.mktemp("built")

    def make(name, *flags):
        path = directory / "".join([name, *flags])
        if not path.exists():
            subprocess.run(["g++", "-std=gnu++20", "-O1", "-fno-builtin", "-g", "-pthread", *flags, "-o", path, SOURCES[name]], check=True)
        return path

    return make


def of_sanitizer(said, own):
    """Blocks and bytes that are lost, by the functions of the source that led there."""
    lost = collections.defaultdict(lambda: [0, 0])
    for part in said.split("\n\n"):
        leak = LEAK.search(part)
        if leak:
            sums = lost[tuple(name for name in FRAME.findall(part) if name in own)]
            sums[0] += int(leak[2])
            sums[1] += int(leak[1])
    return dict(lost)


def of_recording(recording, own):
    stacks = collections.defaultdict(list)
    for stack, name in recording.sql("SELECT s.stack, n.name FROM stack_frames s JOIN frame_names n ON n.frame = s.frame "
                                     "ORDER BY s.stack, s.depth, n.depth"):
        stacks[stack].append((name or "").partition("(")[0])
    lost = collections.defaultdict(lambda: [0, 0])
    for stack, blocks, size in recording.sql(
            "SELECT c.stack, sum(r.lost + r.indirectly_lost), sum(r.lost_bytes + r.indirectly_lost_bytes) FROM reach r "
            "JOIN counts c ON c.id = r.count GROUP BY c.stack HAVING sum(r.lost + r.indirectly_lost)"):
        sums = lost[tuple(name for name in stacks[stack] if name in own)]
        sums[0] += blocks
        sums[1] += size
    return dict(lost)


@pytest.mark.covering(1)
@pytest.mark.engines("uprobe", "preload")
@pytest.mark.parametrize("sanitizer", ["leak", "address"])
@pytest.mark.parametrize("name, case", CASES, ids="-".join)
def test_lost(run, allocprof, build, tmp_path, sanitizer, name, case):
    own = set(OWN.findall(SOURCES[name].read_text()))
    assert case in own
    result = run([build(name, f"-fsanitize={sanitizer}"), case], env={"LSAN_OPTIONS": "fast_unwind_on_malloc=0:exitcode=23",
                                                                   "ASAN_OPTIONS": "fast_unwind_on_malloc=0:detect_leaks=1"})
    said = result.stderr.decode()
    if "LeakSanitizer has encountered a fatal error" in said:
        unavailable(f"LeakSanitizer cannot stop threads here: {said}")
    assert result.status == (23 if CASES[name, case] else 0), result
    theirs = of_sanitizer(said, own)
    assert bool(theirs) == CASES[name, case] and () not in theirs, said
    run([allocprof, "record", "-q", "--reachable", "--no-debuginfod", "-o", tmp_path / "data", build(name), case], expect=0)
    assert of_recording(Recording(tmp_path / "data"), own) == theirs
