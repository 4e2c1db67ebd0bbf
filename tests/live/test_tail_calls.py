# SPDX-License-Identifier: GPL-3.0-or-later
"""Frames that tail calls removed are put back where it is certain what they were, and nowhere else."""

import collections
import os
import shutil
import subprocess

import pytest

import conftest
from support import BUILD, SOURCE, Recording, libc_path, symbol_offsets
from test_gdb_agrees import segments

# By size: the functions from malloc's caller to main's.
C = {
    1000: ["wrapper [tail call]", "main"],
    2000: ["inner [tail call]", "outer [tail call]", "main"],
    # What both ways have in common.
    3000: ["inner [tail call]", "main"],
    3001: ["inner [tail call]", "main"],
    4000: ["inner [tail call]", "outer [tail call]", "caller", "to_caller [tail call]", "main"],
    5000: ["main"],
    7000: ["split", "main"],
    8000: ["recursive [tail call]", "main"],
}
CPP = {
    1000: ["allocate [tail call]", "Derived::wrap [tail call]", "main"],
    2000: ["operator new", "create [tail call]", "main"],
    3000: ["allocate [tail call]", "array<long> [tail call]", "main"],
}
RUST = {
    1000: ["tail_calls::wrapper [tail call]", "tail_calls::main"],
    2000: ["tail_calls::wrapper [tail call]", "tail_calls::outer [tail call]", "tail_calls::main"],
    3000: ["tail_calls::wrapper [tail call]", "tail_calls::outer [tail call]", "tail_calls::caller",
           "tail_calls::main"],
}


@pytest.fixture
def rust(tmp_path):
    rustc = shutil.which("rustc", path="/usr/bin:/root/.cargo/bin")
    if not rustc:
        conftest.unavailable("rustc is not installed")
    path = tmp_path / "rust" / "tail_calls"
    path.parent.mkdir()
    subprocess.run([rustc, "-C", "opt-level=2", "-g", "-o", path, SOURCE / "tests" / "targets" / "tail_calls.rs"],
                   check=True)
    return path


@pytest.fixture(params=["C", "C++", "Rust"])
def program(request, target):
    """A program, and its stacks."""
    if request.param == "Rust":
        return request.getfixturevalue("rust"), RUST
    return (target("tail_calls"), C) if request.param == "C" else (target("tail_calls_cpp"), CPP)


def until_main(names):
    """As far as gdb goes, and the program's own main of Rust."""
    ends = [i for i, name in enumerate(names) if name.split("::")[-1] == "main"]
    return names[:ends[0] + 1] if ends else names


def stacks_of(recording, sizes):
    """{size: names, innermost first}."""
    found = {}
    for stack, size in recording.sql("SELECT stack, bytes / calls FROM counts WHERE function = 'malloc'"):
        names = [name for name, in recording.sql(
            "SELECT n.name || iif(f.tail_call, ' [tail call]', '') FROM stack_frames s "
            "JOIN frames f ON f.id = s.frame JOIN frame_names n ON n.frame = f.id AND NOT n.inlined "
            "WHERE s.stack = ? ORDER BY s.depth", stack)]
        if size in sizes:
            assert size not in found
            found[size] = until_main(names)
    return found


@pytest.mark.fast("C", "Rust")
def test_frames_put_back(run, allocprof, tmp_path, program):
    path, expected = program
    run([allocprof, "record", "-e", "malloc", "-o", tmp_path / "data", path], expect=0)
    assert stacks_of(Recording(tmp_path / "data"), expected) == expected


@pytest.mark.fast("C")
def test_gdb_has_the_same(run, program):
    """As far as gdb knows what the last of the jumps leads to, which in C++ and Rust it does not of malloc."""
    path, expected = program
    result = run(["gdb", "-nx", "-nh", "-batch", "-x", SOURCE / "tests" / "live" / "gdb_tail_calls.py", path])
    found = {}
    for line in result.stdout.decode().splitlines():
        if line.startswith("malloc "):
            size, *names = line.split("\t")
            found[int(size.split()[1])] = until_main([name.replace("operator new(unsigned long)", "operator new")
                                                      for name in names])
    assert set(expected) <= set(found), result
    for size, names in expected.items():
        if expected is C:
            assert found[size] == names, size
        else:
            known = iter(names)
            assert all(name in known for name in found[size]), (size, found[size])


def test_stripped(run, allocprof, tmp_path, target):
    """Without symbols and debug information what is found is less, and nothing else."""
    whole, stripped = tmp_path / "whole", tmp_path / "stripped"
    shutil.copy(target("tail_calls"), whole)
    run(["strip", "-s", "-o", stripped, whole], expect=0)
    places = []
    for path in whole, stripped:
        run([allocprof, "record", "-e", "malloc", "-o", tmp_path / "data", path], expect=0)
        recording = Recording(tmp_path / "data")
        places.append({size: set(recording.sql(
            "SELECT f.offset, f.tail_call FROM stack_frames s JOIN frames f ON f.id = s.frame "
            "JOIN modules m ON m.id = f.module WHERE s.stack = ? AND m.path = ?", stack, str(path)))
            for stack, size in recording.sql("SELECT stack, bytes / calls FROM counts") if size in C
            for stack in [stack]})
    assert set(places[0]) == set(places[1])
    for size, found in places[1].items():
        assert found <= places[0][size], size
    assert any(tail for found in places[1].values() for _, tail in found)


def test_reports(run, allocprof, tmp_path, target):
    data = tmp_path / "data"
    run([allocprof, "record", "-e", "malloc", "-o", data, target("tail_calls")], expect=0)

    def report(*options):
        return run([allocprof, "report", "--no-pager", *options, data], expect=0).stdout.decode()

    assert "        wrapper [tail call]\n        main\n" in report("--raw-stacks")
    assert "[tail call]" not in report()
    # 2,000, 4,000.
    assert "6,000 bytes in 2 calls" in report("--through", "outer")
    # Names that are looked up later find the same, and nothing twice.
    before = report("--raw-stacks")
    run([allocprof, "symbolize", data], expect=0)
    assert report("--raw-stacks") == before
    run([allocprof, "record", "--no-symbols", "-e", "malloc", "-o", data, target("tail_calls")], expect=0)
    assert "tail call" not in report("--raw-stacks")
    run([allocprof, "symbolize", data], expect=0)
    assert report("--raw-stacks").split("Requested")[1] == before.split("Requested")[1]


def place_in_file(path, address):
    """"PATH+OFFSET", as jumps.c has it."""
    path = os.path.realpath(path)
    for start, virtual, size in segments(path):
        if virtual <= address <= virtual + size:
            return f"{path}+{address - virtual + start:x}"
    return None


@pytest.mark.slow
@pytest.mark.parametrize("argv", [["git", "--version"], ["tput", "-T", "xterm", "cols"]],
                         ids=lambda argv: argv[0])
def test_single_steps_agree(run, allocprof, tmp_path, argv):
    """Whatever was put back: the program, executed instruction by instruction, takes these jumps between the
    call and the hit, in that order, each time when it has this stack."""
    data = tmp_path / "data"
    run([allocprof, "record", "-o", data, *argv], expect=0)
    recording = Recording(data)
    places, tails = {}, set()
    for frame, path, offset, tail in recording.sql(
            "SELECT f.id, coalesce(m.path, ''), f.offset, f.tail_call FROM frames f "
            "LEFT JOIN modules m ON m.id = f.module"):
        places[frame] = place_in_file(path, offset) if path.startswith("/") else None
        tails |= {frame} if tail else set()
    assert tails, "nothing was put back: the test shows nothing"

    def write(name, lines):
        (tmp_path / name).write_text("".join(line.replace("+", " ") + "\n" for line in sorted(lines)))
        return tmp_path / name

    libc = libc_path()
    functions = {f"{libc}+{offset:x}" for offset in symbol_offsets(libc).values()}
    output = run([BUILD / "tests" / "oracle" / "jumps", write("jumps", {places[frame] for frame in tails}),
                  write("functions", functions), *argv], timeout=600, expect=0).stdout.decode()
    taken = collections.defaultdict(set)
    for line in output.splitlines():
        calls = [call.split(",") for call in line.split("\t")]
        taken[tuple(call[0] for call in calls)].add(tuple(tuple(call[1:]) for call in calls))

    stacks = collections.defaultdict(list)
    for stack, frame in recording.sql("SELECT stack, frame FROM stack_frames ORDER BY stack, depth"):
        stacks[stack].append(frame)
    checked = 0
    for frames in stacks.values():
        addresses, wanted, between = [], [], []
        for frame in frames:
            if frame in tails:
                between.insert(0, places[frame])
            else:
                addresses.append(places[frame])
                wanted.append(between)
                between = []
        # Nothing called the outermost frame, and of what the environment decides another run may be different.
        for hit in taken.get(tuple(addresses), set()) | taken.get(tuple(addresses[:-1]), set()):
            for expected, jumps in zip(wanted, hit):
                rest = iter(jumps)
                assert all(jump in rest for jump in expected), (expected, jumps)
                checked += bool(expected)
    assert checked
