/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The definitions of the schema; the reader accepts no others. */
#ifndef ALLOCPROF_DATA_FILE_SCHEMA_H
#define ALLOCPROF_DATA_FILE_SCHEMA_H

/* Recordings of before gaps had kinds lack it. */
#define DATA_FILE_GAPS                                                                             \
	"CREATE TABLE gaps(run INTEGER NOT NULL, kind TEXT NOT NULL, number INTEGER NOT NULL, "    \
	"bytes INTEGER NOT NULL, pid INTEGER NOT NULL, object TEXT NOT NULL, "                     \
	"detail TEXT NOT NULL)"

static const char *const data_file_schema[] = {
	"CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
	"CREATE TABLE ledger(name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID",
	"CREATE TABLE modules(id INTEGER PRIMARY KEY, path TEXT NOT NULL, build_id TEXT NOT NULL, "
	"symbols TEXT NOT NULL)",
	"CREATE TABLE processes(id INTEGER PRIMARY KEY, parent INTEGER NOT NULL, "
	"pid INTEGER NOT NULL, start_ns INTEGER NOT NULL, end_ns INTEGER NOT NULL, "
	"execed INTEGER NOT NULL, run INTEGER NOT NULL, comm TEXT NOT NULL)",
	"CREATE TABLE threads(id INTEGER PRIMARY KEY, process INTEGER NOT NULL, "
	"name TEXT NOT NULL)",
	"CREATE TABLE functions(id INTEGER PRIMARY KEY, symbol TEXT NOT NULL, name TEXT NOT NULL, "
	"full_name TEXT NOT NULL)",
	"CREATE TABLE files(id INTEGER PRIMARY KEY, path TEXT NOT NULL)",
	"CREATE TABLE frames(id INTEGER PRIMARY KEY, module INTEGER NOT NULL, "
	"offset INTEGER NOT NULL, interrupted INTEGER NOT NULL, tail_call INTEGER NOT NULL)",
	"CREATE TABLE lines(frame INTEGER NOT NULL, depth INTEGER NOT NULL, "
	"function INTEGER NOT NULL, file INTEGER NOT NULL, line INTEGER NOT NULL, "
	"inlined INTEGER NOT NULL, PRIMARY KEY(frame, depth)) WITHOUT ROWID",
	"CREATE TABLE stacks(id INTEGER PRIMARY KEY, end TEXT NOT NULL, frames TEXT NOT NULL)",
	"CREATE TABLE counts(id INTEGER PRIMARY KEY, process INTEGER NOT NULL, "
	"thread INTEGER NOT NULL, stack INTEGER NOT NULL, function TEXT NOT NULL, "
	"calls INTEGER NOT NULL, bytes INTEGER NOT NULL)",
	"CREATE TABLE blocks(count INTEGER PRIMARY KEY, failed INTEGER NOT NULL, "
	"allocations INTEGER NOT NULL, bytes INTEGER NOT NULL, frees INTEGER NOT NULL, "
	"freed_bytes INTEGER NOT NULL, discarded INTEGER NOT NULL, "
	"discarded_bytes INTEGER NOT NULL, temporary INTEGER NOT NULL, "
	"temporary_bytes INTEGER NOT NULL, peak INTEGER NOT NULL, peak_bytes INTEGER NOT NULL, "
	"oldest_ns INTEGER NOT NULL)",
	"CREATE TABLE samples(count INTEGER NOT NULL, what TEXT NOT NULL, "
	"samples INTEGER NOT NULL, variance REAL NOT NULL, bytes_variance REAL NOT NULL, "
	"PRIMARY KEY(count, what)) WITHOUT ROWID",
	"CREATE TABLE size_histogram(count INTEGER NOT NULL, bucket INTEGER NOT NULL, "
	"blocks INTEGER NOT NULL, PRIMARY KEY(count, bucket)) WITHOUT ROWID",
	"CREATE TABLE lifetime_histogram(count INTEGER NOT NULL, bucket INTEGER NOT NULL, "
	"blocks INTEGER NOT NULL, PRIMARY KEY(count, bucket)) WITHOUT ROWID",
	"CREATE TABLE lifetimes(count INTEGER NOT NULL, born INTEGER NOT NULL, died INTEGER, "
	"exited INTEGER, blocks INTEGER NOT NULL, bytes INTEGER NOT NULL)",
	"CREATE TABLE timeline(run INTEGER NOT NULL, time_ns INTEGER NOT NULL, "
	"live INTEGER NOT NULL, live_bytes INTEGER NOT NULL, allocations INTEGER NOT NULL, "
	"bytes INTEGER NOT NULL, rss_bytes INTEGER NOT NULL, PRIMARY KEY(run, time_ns)) "
	"WITHOUT ROWID",
	"CREATE TABLE run_meta(run INTEGER NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, "
	"PRIMARY KEY(run, key)) WITHOUT ROWID",
	"CREATE TABLE run_ledger(run INTEGER NOT NULL, name TEXT NOT NULL, "
	"value INTEGER NOT NULL, PRIMARY KEY(run, name)) WITHOUT ROWID",

	"CREATE VIEW stack_frames AS SELECT s.id AS stack, f.key AS depth, f.value AS frame "
	"FROM stacks s JOIN json_each(s.frames) f",
	/* rtrim() of all characters but the slash leaves the directory. */
	"CREATE VIEW frame_names AS SELECT f.id AS frame, coalesce(l.depth, 0) AS depth, "
	"coalesce(u.name, '[' || replace(m.path, rtrim(m.path, replace(m.path, '/', '')), '') "
	"|| printf('+0x%x]', f.offset), '[unknown]') AS name, coalesce(l.inlined, 0) AS inlined, "
	"s.path AS file, nullif(l.line, 0) AS line, m.path AS module "
	"FROM frames f LEFT JOIN modules m ON m.id = f.module LEFT JOIN lines l ON l.frame = f.id "
	"LEFT JOIN functions u ON u.id = l.function LEFT JOIN files s ON s.id = l.file",
	"CREATE VIEW stack_texts AS SELECT s.id AS stack, coalesce((SELECT group_concat(name, ';') "
	"FROM (SELECT n.name AS name FROM stack_frames sf JOIN frame_names n ON n.frame = sf.frame "
	"WHERE sf.stack = s.id ORDER BY sf.depth DESC, n.depth DESC)), '') AS text FROM stacks s",
	"CREATE VIEW calls AS SELECT c.id AS count, p.id AS process, p.pid AS pid, p.comm AS comm, "
	"t.name AS thread, c.function AS function, c.calls AS calls, c.bytes AS bytes, "
	"s.id AS stack, s.end AS end, "
	"(SELECT n.name FROM stack_frames sf JOIN frame_names n ON n.frame = sf.frame "
	"WHERE sf.stack = s.id AND sf.depth = 0 ORDER BY n.depth LIMIT 1) AS caller, "
	"(SELECT text FROM stack_texts x WHERE x.stack = s.id) AS frames "
	"FROM counts c JOIN processes p ON p.id = c.process JOIN threads t ON t.id = c.thread "
	"JOIN stacks s ON s.id = c.stack",
	"CREATE VIEW memory AS SELECT c.count AS count, c.process AS process, c.pid AS pid, "
	"c.comm AS comm, c.thread AS thread, c.function AS function, "
	"b.allocations AS allocations, b.bytes AS bytes, b.failed AS failed, b.frees AS frees, "
	"b.freed_bytes AS freed_bytes, b.allocations - b.frees - b.discarded AS live, "
	"b.bytes - b.freed_bytes - b.discarded_bytes AS live_bytes, b.temporary AS temporary, "
	"b.temporary_bytes AS temporary_bytes, b.peak AS peak, b.peak_bytes AS peak_bytes, "
	"b.oldest_ns AS oldest_ns, c.stack AS stack, c.end AS end, c.caller AS caller, "
	"c.frames AS frames FROM blocks b JOIN calls c ON c.count = b.count",
	DATA_FILE_GAPS,
};

#endif
