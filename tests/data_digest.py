# SPDX-License-Identifier: GPL-3.0-or-later
"""The digest of a data file as allocprof-data(5) has it, written from there and not from the C code; for tests that change
what is in a file: data_digest.py FILE [SQL] runs the SQL and gives the file the digest that fits."""

import contextlib
import sqlite3
import struct
import sys

MASK = 2**64 - 1


def add_word(digest, word):
    digest = (digest ^ word & MASK) * 0x9e3779b97f4a7c15 & MASK
    return digest ^ digest >> 32


def add_bytes(digest, text):
    digest = add_word(digest, len(text))
    for word in struct.unpack(f"<{(len(text) + 7) // 8}Q", text + bytes(-len(text) % 8)):
        digest = add_word(digest, word)
    return digest


def add_value(digest, value):
    if value is None:
        return add_word(digest, 5)
    if isinstance(value, int):
        return add_word(add_word(digest, 1), value)
    if isinstance(value, float):
        return add_word(add_word(digest, 2), struct.unpack("<Q", struct.pack("<d", value))[0])
    return add_bytes(add_word(digest, 3 if isinstance(value, str) else 4),
                     value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value)


def digest_of(database):
    text_factory, database.text_factory = database.text_factory, lambda text: text.decode("utf-8", "surrogateescape")
    total = 0
    for table, in database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall():
        start = add_bytes(0, table.encode())
        for row in database.execute(f"SELECT * FROM {table}"):
            if table == "meta" and row[0] == "digest":
                continue
            digest = start
            for value in row:
                digest = add_value(digest, value)
            total += digest
    database.text_factory = text_factory
    return f"{total & MASK:016x}"


def renew(database):
    database.execute("INSERT OR REPLACE INTO meta VALUES('digest', ?)", (digest_of(database),))


def edit(path, sql=""):
    """Runs the statements, and gives the file the digest that fits."""
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        database.executescript(sql)
        renew(database)


if __name__ == "__main__":
    edit(*sys.argv[1:])
