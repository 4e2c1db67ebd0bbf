# SPDX-License-Identifier: GPL-3.0-or-later
"""Files crafted to harm the user who inspects them: nothing in them is executed, waited for or followed."""

import json
import os
import sqlite3
import struct
import subprocess

import pytest

from support import BUILD

INTERPRETER = """
#include <stdio.h>

int main(void)
{
	FILE *file = fopen("executed", "w");

	return !file || fclose(file);
}
"""


@pytest.fixture
def program(tmp_path):
    """A program and the path of its PT_INTERP, where nothing is yet. The name is that of a dynamic linker."""
    interpreter = tmp_path / "ld-linux-x86-64.so.2"
    path = tmp_path / "program"
    subprocess.run(["gcc", "-x", "c", "-", "-o", path, f"-Wl,--dynamic-linker={interpreter}"],
                   input="int main(void) { return 0; }", text=True, check=True)
    return path, interpreter


INSPECTING = {
    "doctor": ["doctor", "PROGRAM"],
    "stat --expect": ["stat", "--expect", "PROGRAM", "--", "true"],
    "record --expect": ["record", "-o", "data", "--expect", "PROGRAM", "--", "true"],
}


@pytest.mark.fast("doctor")
@pytest.mark.parametrize("arguments", INSPECTING.values(), ids=INSPECTING)
def test_interpreter_is_not_executed(run, allocprof, program, tmp_path, arguments):
    """The interpreter of a file that is inspected writes a file when it runs."""
    path, interpreter = program
    subprocess.run(["gcc", "-x", "c", "-", "-static", "-o", interpreter], input=INTERPRETER, text=True, check=True)
    subprocess.run([interpreter], cwd=tmp_path, check=True)
    (tmp_path / "executed").unlink()
    run([allocprof, *(str(path) if word == "PROGRAM" else word for word in arguments)], cwd=tmp_path)
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize("what", ["pid", "begin", "end", "frees", "lifetimes"])
def test_forged_figures(run, allocprof, target, tmp_path, what):
    """A process that counts inside of itself writes what no data file can have: that is named, and the recording is there."""
    data = tmp_path / "data"
    told = run([allocprof, "record", "--engine=preload", "--live", "-o", data, "--", target("forges"), what], expect=0).stderr
    assert b"of the shared memory cannot be right: a process has written over " in told
    report = json.loads(run([allocprof, "report", "--json", data], expect=None).stdout)
    assert report["complete"] is False and report["ledger"]["attributed"] > 0


@pytest.mark.fast("doctor")
@pytest.mark.parametrize("arguments", INSPECTING.values(), ids=INSPECTING)
def test_interpreter_is_not_waited_for(run, allocprof, program, tmp_path, arguments):
    """The interpreter is a FIFO that nobody writes to: the command ends."""
    path, interpreter = program
    os.mkfifo(interpreter)
    run([allocprof, *(str(path) if word == "PROGRAM" else word for word in arguments)], cwd=tmp_path)

ALLOCATOR = r"""
#include <stddef.h>

static char room[1 << 20];
static size_t used;

void *malloc(size_t size)
{
	void *block = room + used;

	used += (size + 15) & ~15UL;
	return block;
}

void free(void *block)
{
}

void *calloc(size_t n, size_t size)
{
	return malloc(n * size);
}

void *realloc(void *block, size_t size)
{
	return malloc(size);
}

extern __typeof__(malloc) evil_alias_0123456789 __attribute__((alias("malloc")));
"""

ESCAPES = "\x1b]0;title\x07\x1b[2J"


@pytest.fixture
def library(tmp_path):
    """An allocator with escape sequences of terminals in its file's name and in the name of a function."""
    path = tmp_path / f"lib{ESCAPES}.so"
    subprocess.run(["gcc", "-x", "c", "-", "-shared", "-fPIC", "-o", path], input=ALLOCATOR, text=True, check=True)
    name = b"evil_alias_0123456789"
    path.write_bytes(path.read_bytes().replace(name, (ESCAPES.encode() + b"_" * len(name))[:len(name)]))
    return path


@pytest.mark.fast("stat -- true")
@pytest.mark.parametrize("arguments", (["doctor", "LIBRARY"], ["stat", "-v", "--", "true"], ["stat", "--", "true"],
                                       ["record", "-v", "-o", "data", "--", "true"], ["report", "-i", "data"]),
                         ids=" ".join)
def test_escape_sequences(run, allocprof, library, tmp_path, arguments):
    """No output has a control character but the newline. \\033[ of our own stands only on terminals."""
    preloaded = {"LD_PRELOAD": str(library)}
    if arguments[0] == "report":
        run([allocprof, "record", "-o", "data", "--", "env", f"LD_PRELOAD={library}", "true"], cwd=tmp_path, expect=0)
    words = [str(library) if word == "LIBRARY" else word for word in arguments]
    if arguments[0] in ("stat", "record"):
        words[words.index("--") + 1:] = ["env", f"LD_PRELOAD={preloaded['LD_PRELOAD']}", "true"]
    result = run([allocprof, *words], cwd=tmp_path)
    text = result.stdout + result.stderr
    assert b"title" in text, "the hostile name is not shown at all"
    assert [byte for byte in text if byte < 0x20 and byte != 0x0a] == [], text


def repeat_rows(path, table, depth):
    """Has the pages of @table's b-tree refer to its one page of rows as often as they can, on @depth levels:
    the format is that of https://www.sqlite.org/fileformat.html. Returns how many rows there seem to be."""
    with sqlite3.connect(path) as database:
        size, = database.execute("PRAGMA page_size").fetchone()
        root, = database.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (table,)).fetchone()
        rows, = database.execute(f"SELECT count(*) FROM {table}").fetchone()
    database.close()
    data = bytearray(path.read_bytes())
    start = (root - 1) * size
    leaf = bytes(data[start:start + size])
    is_index = {10: True, 13: False}[leaf[0]]
    payload = b"\x01"
    if is_index:
        first, = struct.unpack_from(">H", leaf, 8)
        payload = leaf[first:first + 1 + leaf[first]]
    data += leaf

    def interior(child):
        cell = struct.pack(">I", child) + payload
        n = (size - 12) // (len(cell) + 2)
        page = bytearray(size)
        struct.pack_into(">BHHHBI", page, 0, 2 if is_index else 5, 0, n, size - n * len(cell), 0, child)
        for i in range(n):
            at = size - (i + 1) * len(cell)
            page[at:at + len(cell)] = cell
            struct.pack_into(">H", page, 12 + 2 * i, at)
        return bytes(page), n + 1

    for _ in range(depth - 1):
        page, n = interior(len(data) // size)
        data += page
        rows *= n
    data[start:start + size], n = interior(len(data) // size)
    struct.pack_into(">I", data, 28, len(data) // size)
    path.write_bytes(data)
    return rows * n


@pytest.mark.fast("report-lifetimes")
@pytest.mark.parametrize("table", ("lifetimes", "timeline"))
@pytest.mark.parametrize("command", (["report"], ["folded"], ["export", "-o", "out"]), ids=" ".join)
def test_rows_without_end(run, allocprof, tmp_path, table, command):
    """A file of less than a megabyte whose tables seem to have billions of rows is refused at once."""
    data = tmp_path / "data"
    subprocess.run([BUILD / "tests" / "golden" / "write_fixture", data], check=True)
    with sqlite3.connect(data) as database:
        database.execute(f"DELETE FROM {table}")
        values = "1, 1, NULL, NULL, 1, 1" if table == "lifetimes" else "1, x, 1, 1, 1, 1, 1"
        database.execute(f"WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 50) "
                         f"INSERT INTO {table} SELECT {values} FROM n")
    database.execute("VACUUM")
    database.close()
    assert repeat_rows(data, table, 4) > 1e9
    result = run([allocprof, command[0], "-i", data, *command[1:]], cwd=tmp_path, expect=2)
    assert b"is damaged" in result.stderr
    assert result.stdout == b""
