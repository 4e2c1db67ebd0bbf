# SPDX-License-Identifier: GPL-3.0-or-later
"""A data file that is not as it was recorded is read, and every command says so and ends with status 1."""

import contextlib
import random
import shutil
import sqlite3
import sys

import pytest

from support import SOURCE

sys.path.insert(0, str(SOURCE / "tests"))

import data_digest  # noqa: E402

SENTENCE = "this data file is not as it was recorded"

EDITS = [
    "UPDATE counts SET bytes = bytes * 2 WHERE function = 'malloc'",
    "UPDATE counts SET function = 'calloc' WHERE function = 'malloc'",
    "UPDATE counts SET stack = 1 WHERE stack = 2",
    "UPDATE counts SET calls = calls + 5; "
    "UPDATE ledger SET value = value + 5 * (SELECT count(*) FROM counts) WHERE name IN ('events', 'attributed', 'complete')",
    "UPDATE blocks SET peak_bytes = peak_bytes + 1000",
    "UPDATE blocks SET temporary = 0, temporary_bytes = 0",
    "UPDATE blocks SET oldest_ns = oldest_ns + 1000000000",
    "UPDATE size_histogram SET bucket = bucket + 1 WHERE bucket = (SELECT max(bucket) FROM size_histogram)",
    "DELETE FROM size_histogram",
    "UPDATE lifetimes SET died = died + 5 WHERE died IS NOT NULL",
    "UPDATE lifetimes SET bytes = bytes + 1000",
    "UPDATE timeline SET live_bytes = live_bytes * 3",
    "DELETE FROM timeline",
    "UPDATE meta SET value = '1' WHERE key = 'elapsed_seconds'",
    "UPDATE meta SET value = './other' WHERE key = 'command'",
    "INSERT INTO meta VALUES('lost_note', 'x')",
    "UPDATE functions SET name = 'evil' WHERE id = 3",
    "UPDATE stacks SET frames = (SELECT frames FROM stacks WHERE id = 2) WHERE id = 1",
    "DELETE FROM meta WHERE key = 'digest'",
    "UPDATE meta SET value = 'wrong' WHERE key = 'digest'",
]

COMMANDS = ["report", "report --json", "report --leaks", "folded", "flamegraph -o /dev/null", "html -o /dev/null", "graph --json",
            "export -o /dev/null", "export --format=json -o /dev/null", "export --format=heaptrack -o /dev/null",
            "query --csv SELECT/**/1", "archive -o /dev/null", "symbolize --no-debuginfod -o named"]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    directory = tmp_path_factory.mktemp("recorded")
    return directory / "data"


@pytest.fixture
def data(run, allocprof, recorded, tmp_path):
    """A copy of a recording."""
    if not recorded.exists():
        run([allocprof, "record", "-q", "--live", "--engine=preload", "-o", recorded, "--", "ls", "-l", "/"], expect=0)
    shutil.copy(recorded, tmp_path / "data")
    return tmp_path / "data"


def execute(path, sql):
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        database.executescript(sql)


@pytest.mark.parametrize("sql", EDITS)
def test_edited(run, allocprof, data, sql):
    before = data.read_bytes()
    execute(data, sql)
    assert data.read_bytes() != before
    done = run([allocprof, "report", "--json", data])
    assert done.status and done.stderr, done
    assert done.status != 1 or SENTENCE in done.stderr.decode(), done
    # What is told of the file does not go when it is written anew.
    named = run([allocprof, "symbolize", "--no-debuginfod", data], cwd=data.parent)
    if named.status == 1:
        assert run([allocprof, "report", data]).status == 1


@pytest.mark.parametrize("words", COMMANDS)
def test_every_command_says_so(run, allocprof, data, words):
    command = [allocprof, *words.replace("/**/", " ").split(" ", 2 if "query" in words else -1), "-i", data]
    assert run(command, cwd=data.parent).status == 0
    execute(data, "UPDATE meta SET value = '1' WHERE key = 'elapsed_seconds'")
    done = run(command, cwd=data.parent, expect=1)
    assert done.stderr.decode().count(SENTENCE) == 1, done
    if words == "report --json":
        assert b'"complete": false' in done.stdout or b'"complete":false' in done.stdout


def test_diff_says_which(run, allocprof, data, recorded):
    execute(data, "UPDATE meta SET value = '1' WHERE key = 'elapsed_seconds'")
    done = run([allocprof, "diff", recorded, data], expect=1)
    assert f"allocprof: {data}: {SENTENCE}" in done.stderr.decode()


def test_what_does_not_alter(run, allocprof, data):
    """Names that are added, and what users add beside the tables; the digest is as the manual has it."""
    def said():
        return run([allocprof, "report", data], expect=0).stdout

    first = said()
    with contextlib.closing(sqlite3.connect(data)) as database:
        (written,), = database.execute("SELECT value FROM meta WHERE key = 'digest'")
        assert data_digest.digest_of(database) == written
    run([allocprof, "symbolize", "--no-debuginfod", data], expect=0)
    assert said() == first
    execute(data, "CREATE INDEX by_stack ON counts(stack); CREATE VIEW mine AS SELECT 1; VACUUM")
    assert said() == first
    data_digest.edit(data, "UPDATE meta SET value = '1' WHERE key = 'elapsed_seconds'")
    said()


def test_damaged(run, allocprof, data):
    """A byte that is another one is noticed, or changes nothing that is shown."""
    whole = data.read_bytes()
    shown = {words: run([allocprof, *words, "-i", data], expect=0).stdout for words in
             [("report", "--json", "--top=0"), ("query", "--csv", "SELECT * FROM lifetimes")]}
    numbers, passed = random.Random(4), 0
    for _ in range(40):
        at = numbers.randrange(100, len(whole))
        damaged = bytearray(whole)
        damaged[at] ^= numbers.randrange(1, 256)
        data.write_bytes(damaged)
        for words, before in shown.items():
            done = run([allocprof, *words, "-i", data])
            if done.status == 0:
                passed += 1
                assert done.stdout == before, f"byte {at}: {done}"
            else:
                assert b"damaged" in done.stderr or SENTENCE.encode() in done.stderr, f"byte {at}: {done}"
    # The other bytes are unused, or not of what is shown.
    assert passed < 80
