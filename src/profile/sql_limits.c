// SPDX-License-Identifier: GPL-3.0-or-later
/* Bounds the functions, memory and processor time of SQL that a user gives. */
#include "sql_limits.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdint.h>
#include <string.h>

#include "array.h"
#include "clock.h"
#include "error.h"

#define MAX_HEAP_BYTES	(1LL << 30)
#define MAX_VALUE_BYTES (16 << 20)
#define STEPS_PER_CHECK 10000

void sql_limits__bound_memory(struct sql_limits *limits)
{
	limits->old_heap_limit = sqlite3_hard_heap_limit64(MAX_HEAP_BYTES);
	limits->is_bounded = true;
}

void sql_limits__release(struct sql_limits *limits)
{
	if (limits->is_bounded)
		sqlite3_hard_heap_limit64(limits->old_heap_limit);
	limits->is_bounded = false;
}

bool sql_limits__allow_function(const char *function)
{
	static const char *const denied[] = { "load_extension", "fts3_tokenizer" };

	for (size_t i = 0; function && i < ARRAY_SIZE(denied); i++)
		if (!sqlite3_stricmp(function, denied[i]))
			return false;
	return true;
}

static int is_over_time(void *context)
{
	const struct sql_limits *limits = context;

	return clock__ns(CLOCK_PROCESS_CPUTIME_ID) > limits->cpu_end_ns;
}

void sql_limits__set(struct sql_limits *limits, struct sqlite3 *db, __u64 cpu_ns)
{
	static const struct {
		int what, most;
	} values[] = {
		{ SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES },
		{ SQLITE_LIMIT_SQL_LENGTH, 1 << 20 },
		{ SQLITE_LIMIT_COLUMN, 1000 },
		{ SQLITE_LIMIT_EXPR_DEPTH, 200 },
		{ SQLITE_LIMIT_COMPOUND_SELECT, 100 },
		{ SQLITE_LIMIT_VDBE_OP, 1000000 },
		{ SQLITE_LIMIT_ATTACHED, 0 },
		{ SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1000 },
		{ SQLITE_LIMIT_WORKER_THREADS, 0 },
	};
	__u64 now_ns = clock__ns(CLOCK_PROCESS_CPUTIME_ID);

	limits->cpu_end_ns = cpu_ns > UINT64_MAX - now_ns ? UINT64_MAX : now_ns + cpu_ns;
	for (size_t i = 0; i < ARRAY_SIZE(values); i++)
		sqlite3_limit(db, values[i].what, values[i].most);
	sqlite3_progress_handler(db, STEPS_PER_CHECK, is_over_time, limits);
}

int sql_limits__fail(struct sqlite3 *db, const char *what, const char *remedy, struct error *error)
{
	switch (sqlite3_errcode(db) & 0xff) {
	case SQLITE_INTERRUPT:
		return error__set(error, -ETIME, "the %s " SQL_OVER_TIME "; %s", what, remedy);
	case SQLITE_NOMEM:
		return error__set(error, -ENOMEM,
				  "the %s needs more than %lld MiB of memory; select less", what,
				  MAX_HEAP_BYTES >> 20);
	case SQLITE_TOOBIG:
		return error__set(error, -E2BIG,
				  "the %s makes a text of more than %d MiB; make it shorter", what,
				  MAX_VALUE_BYTES >> 20);
	}
	/* SQLite has no error code for an overflow. */
	if (!strcmp(sqlite3_errmsg(db), "integer overflow"))
		return error__set(
			error, -EOVERFLOW,
			"a number of the %s is beyond 2^63-1; add up with total() in place "
			"of sum(), which makes a floating-point number",
			what);
	return 0;
}
