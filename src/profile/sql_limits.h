/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Bounds what SQL that a user gives can do: it only reads, and takes bounded time and memory. */
#ifndef ALLOCPROF_SQL_LIMITS_H
#define ALLOCPROF_SQL_LIMITS_H

#include <linux/types.h>
#include <stdbool.h>

struct error;
struct sqlite3;

/* The limits of one connection at a time. Zeroed there are none. */
struct sql_limits {
	__u64 cpu_end_ns;
	__s64 old_heap_limit;
	bool is_bounded;
};

/* Limits the memory of SQLite as a whole, until sql_limits__release(). */
void sql_limits__bound_memory(struct sql_limits *limits);
void sql_limits__release(struct sql_limits *limits);
/*
 * Sets the limits of @db, whose SQL may from now on use @cpu_ns of the process's processor time. The time is checked
 * between SQLite's instructions, so a single one that calls instr() may take hours. The caller sets an authorizer.
 */
void sql_limits__set(struct sql_limits *limits, struct sqlite3 *db, __u64 cpu_ns);
/* Returns whether SQL may call @function. */
bool sql_limits__allow_function(const char *function);
/* Sets @error if the last failure of @db is one of the limits': @what ("query") and the @remedy for time
 * complete the sentence. Returns a negative errno, or 0 for another failure. */
int sql_limits__fail(struct sqlite3 *db, const char *what, const char *remedy, struct error *error);

/* Ends a sentence that begins with "the query". */
#define SQL_OVER_TIME "was stopped when its processor time was over"

#endif
