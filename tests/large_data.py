# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes a data file with many stacks of a small one, which tests/golden/write_fixture writes, for tests of what pages
and exports need then: large_data.py FILE STACKS EPOCHS ROWS."""

import sqlite3
import sys

import data_digest

DEPTH = 16
ALONE = 4  # of these, how many a stack shares with no other
FUNCTIONS = 20000
EPOCH_NS = 10**8
EMPTIED = ("counts", "stacks", "blocks", "lifetimes", "size_histogram", "lifetime_histogram", "timeline",
           "frames", "lines", "functions")
FROM_NUMBERS = ("FROM (WITH RECURSIVE numbers(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n + 1 < :count) "
                "SELECT n FROM numbers)")


def make_large(path, stacks, epochs=50, rows=None):
    """Stacks of DEPTH frames that form a tree, and @rows of the table lifetimes, two for each stack if not given. Of
    three rows the blocks of one are freed in the epoch of their birth, those of one later, and those of one never."""
    rows = rows or 2 * stacks
    database = sqlite3.connect(path)
    database.execute("PRAGMA journal_mode = OFF")
    database.execute("PRAGMA synchronous = OFF")
    for table in EMPTIED:
        database.execute(f"DELETE FROM {table}")

    def fill(table, columns, count):
        database.execute(f"INSERT INTO {table} SELECT {columns} {FROM_NUMBERS}", {"count": count})

    fill("functions", "n + 1, '_Z8function' || n || 'v', 'function' || n, 'function' || n || '()'", FUNCTIONS)
    fill("frames", "n + 1, 1, 4096 + 16 * n, 0, 0", FUNCTIONS)
    fill("lines", "n + 1, 0, n + 1, 0, 0, 0", FUNCTIONS)
    # How many bits of a stack's number the frame at each depth, from the innermost on, does not depend on.
    shifts = [max(0, depth - ALONE) * stacks.bit_length() // (DEPTH - 1 - ALONE) for depth in range(DEPTH)]
    frames = ", ".join(f"1 + ((n >> {shift}) * 7919 + {depth} * 1047) % {FUNCTIONS}" for depth, shift in enumerate(shifts))
    fill("stacks", f"n + 1, 'complete', json_array({frames})", stacks)
    # Numbers that look random: they are compressed as badly as those of a recording.
    born = f"(n * 2654435761 >> 9) % {epochs}"
    fill("lifetimes", f"""n % {stacks} + 1, {born}, CASE n % 3 WHEN 0 THEN NULL WHEN 1 THEN {born}
         ELSE min({epochs - 1}, {born} + 1 + (n * 40503 >> 4) % {epochs}) END, NULL,
         1 + (n * 22695477 >> 5) % 8, (1 + (n * 22695477 >> 5) % 8) * (16 + n % {stacks} % 1009)""", rows)
    database.execute("""INSERT INTO blocks SELECT count, 0, sum(blocks), sum(bytes), sum((died IS NOT NULL) * blocks),
        sum((died IS NOT NULL) * bytes), 0, 0, 0, 0, sum((died IS NULL) * blocks), sum((died IS NULL) * bytes), 5
        FROM lifetimes GROUP BY count""")
    database.execute("INSERT INTO counts SELECT count, 1, 1, count, 'malloc', allocations, bytes FROM blocks")
    database.execute("UPDATE meta SET value = ? WHERE key = 'epoch_ns'", (EPOCH_NS,))
    fill("timeline", f"1, (n + 1) * {EPOCH_NS}, n, 32 * n, n, 32 * n, 0", epochs)
    database.execute("UPDATE ledger SET value = 0")
    database.execute("UPDATE ledger SET value = (SELECT sum(calls) FROM counts) "
                     "WHERE name IN ('events', 'attributed', 'complete')")
    data_digest.renew(database)
    database.commit()
    database.close()


if __name__ == "__main__":
    make_large(sys.argv[1], *map(int, sys.argv[2:]))
