# SPDX-License-Identifier: GPL-3.0-or-later
"""What the numbers of a recording advise (report --advice), where the program's numbers are known: tests/targets/advice.cpp."""

import json
import pathlib

import pytest

from support import unavailable

# Of each kind: calls saved, bytes saved (None: not looked at), and what the text says.
KINDS = {
    "reserve": (100 * 40, 100 * 16 * sum(range(1, 41)),
                ["Reserve space before it is needed: saves up to 4,000 allocations",
                 "4,000 of 4,100 blocks of 16 to 1,023 bytes were made larger by realloc here again"]),
    "capacity": (300 * 10, 0, ["Reserve the container's capacity: saves up to 3,000 allocations",
                               "3,300 buffers of 4 to 8,191 bytes, of which each container needs one; there are at least 300"]),
    "reuse": (20000, 0, ["Keep a buffer in place of a new block each time: saves up to 20,000 allocations",
                         "20,000 of 20,000 blocks of 64 to 127 bytes ended before their thread allocated again"]),
    "one_block": (20000, 0, ["Allocate many at once, as an array or from an arena: saves up to 20,000 allocations",
                             "20,000 of 20,000 blocks of 16 to 31 bytes stay until the end"]),
    "hand_back": (20000, 0, ["Give blocks back to the thread that allocates them: saves up to 20,000 allocations",
                             "20,000 of 20,000 blocks of 128 to 2,047 bytes were freed by another thread than had allocated them"]),
    "bound": (0, 6000 * 5000, ["Bound what is kept, or free it: 30,000,000 bytes, "]),
}


@pytest.fixture
def advice(run, allocprof, target, tmp_path):
    """advice(kind, *options) records the program, and returns its advice and what is printed. @prefix: words of a command that
    runs it."""

    def record(kind, *options, prefix=()):
        data = tmp_path / "advice.data"
        run([allocprof, "record", "-q", "--live", *options, "-o", data, "--", *prefix, target("advice"), kind], expect=0)
        report = json.loads(run([allocprof, "report", "--advice", "--json", data], expect=0).stdout)
        stacks = {stack["stack"]: [report["frames"][i]["name"] for i in stack["frames"]] for stack in report["stacks"]}
        text = run([allocprof, "report", "--advice", data], expect=0).stdout.decode()
        return [(found, stacks[found["stack"]]) for found in report["advice"]], text

    return record


@pytest.mark.engines("uprobe", "preload")
@pytest.mark.parametrize("kind", KINDS)
def test_kinds(advice, kind):
    """Each program has the one piece of advice, on the function that it is about."""
    calls, size, sentences = KINDS[kind]
    found, text = advice(kind)
    [(only, frames)] = found
    assert (only["kind"], only["saved_calls"], only["saved_bytes"]) == (kind, calls, size)
    # A container's function is between the two.
    assert any(kind in frame for frame in frames[:2])
    for sentence in sentences:
        assert sentence in text


@pytest.mark.engines("uprobe", "preload")
@pytest.mark.parametrize("library", [None, "libjemalloc.so.2"])
def test_sizes(advice, target, library):
    """Of 20,000 blocks of 17 bytes that are left 15 bytes each are none of theirs."""
    path = pathlib.Path(f"/usr/lib/x86_64-linux-gnu/{library}")
    if library and not path.exists():
        unavailable(f"{library} is not installed; scripts/setup does it")
    prefix = ["env", f"LD_PRELOAD={path}"] if library else []
    [(only, frames)], text = advice("sizes", "--resident", "--expect", target("advice"), prefix=prefix)
    assert (only["kind"], only["saved_calls"], only["saved_bytes"]) == ("sizes", 0, 20000 * 15) and frames[0] == "sizes"
    assert "Ask for sizes that are rounded less, or put several in one block: saves up to 300,000 bytes of headers and rounding" in text
    assert "20,000 live blocks of 340,000 bytes take 640,000 bytes" in text


@pytest.mark.engines("uprobe", "preload")
def test_sizes_that_are_not_known(advice):
    """Without --resident the allocator's rules are not asked."""
    assert advice("sizes")[0] == []


@pytest.mark.engines("uprobe", "preload")
def test_one_block_by_size(advice):
    """The array that is advised needs no headers either."""
    [(only, _)], text = advice("one_block", "--resident")
    assert (only["kind"], only["saved_calls"], only["saved_bytes"]) == ("one_block", 20000, 20000 * 8)
    assert ", and 160,000 bytes of headers and rounding" in text


@pytest.mark.engines("uprobe", "preload")
def test_nothing_to_say(advice):
    found, text = advice("none")
    assert found == []
    assert "Advice: none" in text


def test_sampled(advice):
    """Too few samples are no ground for advice; enough are."""
    found, text = advice("reuse", "--sample", "1M")
    assert found == [] and "Advice: none" in text
    [(only, _)] = advice("reuse", "--sample", "1K")[0]
    assert only["kind"] == "reuse"


def test_refused(run, allocprof, target, tmp_path):
    data = tmp_path / "advice.data"
    run([allocprof, "record", "-q", "-o", data, target("advice"), "reuse"], expect=0)
    result = run([allocprof, "report", "--advice", data], expect=2)
    assert b"recorded without --live; record it with --live" in result.stderr
    result = run([allocprof, "report", "--advice", "--sort=bytes", data], expect=64)
    assert b"--advice is on all blocks of stacks" in result.stderr
