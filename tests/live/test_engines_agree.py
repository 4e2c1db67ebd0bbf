# SPDX-License-Identifier: GPL-3.0-or-later
"""The two engines against each other, on programs as Debian ships them: of each function and stack the calls, bytes,
frees, live blocks and temporary ones are the same in two runs. What cannot be the same is listed here, with its cause."""

import collections
import os
import shutil

import pytest

import support
import test_swift
from memory import memory_of_data
from support import unavailable
from test_truth import JSON, PERL, PROGRAMS

swift = test_swift.swift

# Two runs of a program are the same only if its hash tables are.
ENVIRONMENT = {"PERL_HASH_SEED": "0", "PYTHONHASHSEED": "0", "PYTHONMALLOC": "malloc", "GIT_CONFIG_NOSYSTEM": "1",
               "HOME": "/nonexistent"}

COMMANDS = {
    "jq": (["jq", "map(select(.a > 10)) | group_by(.a % 7) | map(length)"], JSON),
    "python3": (["/usr/bin/python3", "-S", "-c", "import json; json.dumps(json.loads(json.dumps([{'a': i} for i in range(300)])))"], ""),
    "perl": (["perl", "-e", PERL.replace("500", "100")], ""),
    **{name: PROGRAMS[name] for name in ("gawk", "sqlite3", "git", "cmake", "clang-format")},
    # Which of two threads searches a file is a matter of chance.
    "rg": (["rg", "-j1", "--sort", "path", "-n", "stat(ic|e)", support.SOURCE / "src" / "lib"], ""),
    # It executes cc1 and as.
    "gcc": (["gcc", "-std=gnu11", "-O1", "-I", support.SOURCE / "src" / "lib", "-c", support.SOURCE / "src" / "lib" /
             "error.c", "-o", "/dev/null"], ""),
    "swift": (None, ""),
}

Row = collections.namedtuple("Row", ["calls", "bytes", "frees", "live", "live_bytes", "temporary"])

# The array of a thread's TLS modules, which the dynamic linker allocates, has an element more for the library's TLS.
DTV_BYTES = 16


FIRST = {name: names[0] for names in support.by_address(support.libc_path()) for name in names}


def row_key(function, frames):
    """Names at one address are one function for a probe. Where code is that belongs to no file differs from run to run."""
    return FIRST.get(function, function), tuple(place if place[0] else None for place in support.with_loops_alike(frames))


def rows(data):
    """By function and frames."""
    memory, ledger = memory_of_data(data)
    assert ledger["lost"] == 0 and not ledger.get("untracked"), ledger
    found = collections.Counter()
    for (_, _, function, frames), calls in memory.calls.items():
        key = row_key(function, frames)
        found[key, "calls"] += calls.calls
        found[key, "bytes"] += calls.bytes
    for (_, _, function, frames), blocks in memory.blocks.items():
        key = row_key(function, frames)
        found[key, "frees"] += blocks.frees
        found[key, "live"] += blocks.live
        found[key, "live_bytes"] += blocks.live_bytes
        found[key, "temporary"] += blocks.temporary
    return {key: Row(*(found[key, name] for name in Row._fields)) for key, _ in found}, memory, ledger


def is_dtv(key, uprobe, preload):
    function, frames = key
    return (function == "calloc" and frames and frames[0] and "ld-linux" in os.path.basename(frames[0][0]) and
            uprobe._replace(bytes=0, live_bytes=0) == preload._replace(bytes=0, live_bytes=0) and
            preload.bytes - uprobe.bytes == DTV_BYTES * uprobe.calls)


def is_by_address(memory, key):
    """gcc's garbage collector has a table for each 16 MiB of addresses that it has pages in, which change with each run."""
    function, frames = key
    return function == "calloc" and "ggc_internal_alloc" in [memory.names.get(frame) for frame in frames]


def show(memory, key):
    function, frames = key
    return "\n".join([f"{function}:", *(
        f"    {os.path.basename(frame[0])}+{frame[1]:#x} {memory.names.get(frame, '')}".rstrip() if frame else "    -"
        for frame in frames)])


@pytest.mark.parametrize("name", COMMANDS)
def test_rows(run, allocprof, tmp_path, request, name):
    argv, text = COMMANDS[name]
    if name == "swift":
        directory = request.getfixturevalue("swift")
        argv = [directory / "lib" / "ld-linux-x86-64.so.2", "--library-path", directory / "lib", directory / "shapes"]
    elif not shutil.which(argv[0]):
        unavailable(f"{argv[0]} is not installed")
    found = {}
    for engine in ("uprobe", "preload"):
        data = tmp_path / engine
        # A number of CPython's is larger where it is an address above 1 GiB, as that of its heap may be.
        run(["setarch", "-R", allocprof, "record", "--live", f"--engine={engine}", "--max-depth=512", "-o", data, "--", *argv],
            env=ENVIRONMENT, stdin=text.encode(), expect=0)
        found[engine], memory, ledger = rows(data)
        assert sum(row.calls for row in found[engine].values()) == ledger["events"] > 100
    uprobe, preload = found["uprobe"], found["preload"]
    none = Row(*[0] * len(Row._fields))
    wrong = [f"uprobe  {uprobe.get(key, none)}\npreload {preload.get(key, none)}\n{show(memory, key)}"
             for key in {**uprobe, **preload} if uprobe.get(key) != preload.get(key) and
             not is_by_address(memory, key) and
             not (key in uprobe and key in preload and is_dtv(key, uprobe[key], preload[key]))]
    assert not wrong, f"{len(wrong)} of {len(uprobe)} rows differ:\n" + "\n".join(wrong[:8])
