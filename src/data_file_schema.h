/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The statements that make schema version 1; the reader accepts these definitions and no others. */
#ifndef ALLOCPROF_DATA_FILE_SCHEMA_H
#define ALLOCPROF_DATA_FILE_SCHEMA_H

static const char *const data_file_schema[] = {
	"CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
	"CREATE TABLE ledger(name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID",
	"CREATE TABLE modules(id INTEGER PRIMARY KEY, path TEXT NOT NULL, build_id TEXT NOT NULL)",
	"CREATE TABLE processes(id INTEGER PRIMARY KEY, parent INTEGER NOT NULL, "
	"pid INTEGER NOT NULL, start_ns INTEGER NOT NULL, comm TEXT NOT NULL)",
	"CREATE TABLE frames(id INTEGER PRIMARY KEY, module INTEGER NOT NULL, "
	"offset INTEGER NOT NULL, function TEXT)",
	"CREATE TABLE stacks(id INTEGER PRIMARY KEY, end TEXT NOT NULL, n_frames INTEGER NOT NULL)",
	"CREATE TABLE stack_frames(stack INTEGER NOT NULL, depth INTEGER NOT NULL, "
	"frame INTEGER NOT NULL, PRIMARY KEY(stack, depth)) WITHOUT ROWID",
	"CREATE TABLE counts(process INTEGER NOT NULL, stack INTEGER NOT NULL, "
	"function TEXT NOT NULL, calls INTEGER NOT NULL, bytes INTEGER NOT NULL, "
	"PRIMARY KEY(process, stack, function)) WITHOUT ROWID",

	/* rtrim() of all that is no slash leaves the directory. */
	"CREATE VIEW frame_names AS SELECT f.id AS frame, "
	"coalesce(f.function, '[' || replace(m.path, rtrim(m.path, replace(m.path, '/', '')), '') "
	"|| printf('+0x%x]', f.offset), '[unknown]') AS name, m.path AS module "
	"FROM frames f LEFT JOIN modules m ON m.id = f.module",
	"CREATE VIEW stack_texts AS SELECT s.id AS stack, coalesce((SELECT group_concat(name, ';') "
	"FROM (SELECT n.name AS name FROM stack_frames sf JOIN frame_names n ON n.frame = sf.frame "
	"WHERE sf.stack = s.id ORDER BY sf.depth DESC)), '') AS text FROM stacks s",
	"CREATE VIEW calls AS SELECT p.id AS process, p.pid AS pid, p.comm AS comm, "
	"c.function AS function, c.calls AS calls, c.bytes AS bytes, s.id AS stack, s.end AS end, "
	"(SELECT n.name FROM stack_frames sf JOIN frame_names n ON n.frame = sf.frame "
	"WHERE sf.stack = s.id AND sf.depth = 0) AS caller, "
	"(SELECT text FROM stack_texts t WHERE t.stack = s.id) AS frames "
	"FROM counts c JOIN processes p ON p.id = c.process JOIN stacks s ON s.id = c.stack",
};

#endif
