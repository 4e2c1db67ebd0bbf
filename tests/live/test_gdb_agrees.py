# SPDX-License-Identifier: GPL-3.0-or-later
"""gdb, which has an unwinder of its own, sees the same stacks at malloc in programs as the
distribution builds them: stripped, without frame pointers, and with nothing preloaded."""

import collections
import os
import re
import shutil
import subprocess

import pytest

import conftest
import support
import truth
from support import symbol_offsets
from test_truth import Recording

SCRIPT = support.SOURCE / "tests" / "live" / "gdb_stacks.py"

PROGRAMS = {
    "sqlite3": ["sqlite3", ":memory:", "CREATE TABLE t (a, b); CREATE INDEX i ON t (b);"
                "INSERT INTO t VALUES (1, 'x'), (2, 'y'), (3, 'z'); SELECT group_concat(b) FROM t"
                " GROUP BY a % 2 ORDER BY 1;"],
    "perl": ["perl", "-e",
             'my %h; $h{$_ % 5} .= "x$_" for 1 .. 30; print join(",", sort values %h)'],
    "gawk": ["gawk", 'BEGIN { for (i = 0; i < 30; i++) t[i % 7] = t[i % 7] "x" i; print t[3] }'],
    "git": ["git", "--no-pager", "diff", "--no-index", "--stat", support.SOURCE / "meson.build",
            support.SOURCE / "COPYING"],
}

# What these programs do must not depend on chance.
ENVIRONMENT = {"PERL_HASH_SEED": "0", "PERL_PERTURB_KEYS": "0", "GIT_CONFIG_NOSYSTEM": "1",
               "HOME": "/nonexistent", "SHELL": "/bin/sh",
               # The shell that gdb starts programs with would correct it.
               "PWD": os.getcwd()}


def segments(path, known={}):
    """(file offset, virtual address, size) of what is loaded of an ELF file."""
    if path not in known:
        output = subprocess.run(["readelf", "-lW", path], check=True, stdout=subprocess.PIPE,
                                text=True).stdout
        known[path] = [tuple(int(word, 16) for word in (words[1], words[2], words[4]))
                       for words in map(str.split, output.splitlines())
                       if words and words[0] == "LOAD"]
    return known[path]


def frame_of(field):
    found = re.fullmatch(r"(/.*)\+0x([0-9a-f]+)", field)
    if not found:
        return (None, field)
    path, offset = truth.real(found[1]), int(found[2], 16)
    for start, address, size in segments(path):
        if start <= offset < start + size:
            return (path, offset - start + address)
    return (None, field)


def allocator_code(libc):
    """File offsets of the code in libc from which its allocator calls its own malloc."""
    offsets = symbol_offsets(libc).values()
    return min(offsets), max(offsets) + 0x400


def gdb_stacks(run, argv, directory, status, libc, environment):
    output = directory / "gdb"
    program = shutil.which(argv[0])
    offsets = symbol_offsets(libc)
    run(["gdb", "-nx", "-nh", "-batch", "-x", SCRIPT, "--args", program, *argv[1:]],
        env={**environment, "GDB_STACKS_LIBC": libc,
             "GDB_STACKS_MALLOC": hex(offsets["malloc"]),
             "GDB_STACKS_REALLOC": hex(offsets["realloc"]), "GDB_STACKS_OUTPUT": str(output)},
        expect=0)
    first, last = allocator_code(libc)
    stacks = collections.defaultdict(truth.Sum)
    for line in output.read_text().splitlines():
        size, *fields = line.split("\t")
        caller = re.fullmatch(r"(/.*)\+0x([0-9a-f]+)", fields[0])
        if caller and truth.real(caller[1]) == libc and first <= int(caller[2], 16) < last:
            continue
        frames = [frame_of(field) for field in fields]
        # gdb guesses on where there is no CFI, which is at ld.so's entry.
        frames = frames[:next((i for i, frame in enumerate(frames) if frame[0] is None), None)]
        stacks[tuple(frames)].add(1, int(size))
    return dict(stacks)


@pytest.mark.parametrize("name", PROGRAMS)
def test_same_stacks(run, allocprof, tmp_path, name, own_libc):
    """In a C library without the return probes of other recordings, at which gdb's stacks would end."""
    environment = {**ENVIRONMENT, **own_libc}
    libc = os.path.realpath(os.path.join(own_libc["LD_LIBRARY_PATH"], "libc.so.6"))
    argv = [str(word) for word in PROGRAMS[name]]
    if not shutil.which("gdb"):
        conftest.unavailable("gdb is not installed")
    if not shutil.which(argv[0]):
        conftest.unavailable(f"{argv[0]} is not installed")
    data = tmp_path / "data"
    plain = run([shutil.which(argv[0]), *argv[1:]], env=environment)
    run([allocprof, "record", "-e", "malloc", "-o", data, "--", shutil.which(argv[0]), *argv[1:]],
        env=environment, expect=plain.status)
    recording = Recording(data)
    recording.assert_no_loss()
    found = {frames: known for (_, frames), known in recording.stacks.items()}
    expected = gdb_stacks(run, argv, tmp_path, plain.status, libc, environment)
    assert len(expected) > 50
    missing = [f"{known.calls} calls of {known.bytes} bytes in gdb:\n{recording.show(frames)}"
               for frames, known in expected.items() if found.get(frames) != known]
    more = [f"{known.calls} calls of {known.bytes} bytes in allocprof, end "
            f"{recording.ends[frames]}:\n{recording.show(frames)}"
            for frames, known in found.items() if expected.get(frames) != known]
    assert not missing and not more, "\n".join(
        [f"{len(missing)} of gdb's {len(expected)} stacks and {len(more)} of {len(found)} differ",
         *missing[:6], *more[:6]])
