// SPDX-License-Identifier: GPL-3.0-or-later
/* Has SQLite parse expressions, and evaluate them on the blocks of a profile. */
#include "where.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "error.h"
#include "profile.h"
#include "sql_limits.h"
#include "where_internal.h"

#define SELECT "SELECT 1 FROM blocks WHERE "

/* A connection on which expressions can be prepared. */
struct where {
	sqlite3 *db;
	struct sql_limits limits;
	struct where_scan scan;
	struct where_patterns patterns;
	__u32 columns; /* that the prepared statements read */
	int n_selects; /* in the last statement */
};

static void finalize(sqlite3_stmt **statement)
{
	sqlite3_finalize(*statement);
}

static int column_by_name(const char *name)
{
	for (int i = 0; name && i < WHERE_COLUMNS; i++)
		if (!sqlite3_stricmp(where_columns[i], name))
			return i;
	return -ENOENT;
}

/* SQLite calls it for each action of a statement: an expression reads columns and calls functions. */
static int authorize(void *context, int action, const char *first, const char *second,
		     const char *database, const char *view)
{
	struct where *where = context;
	int column;

	switch (action) {
	case SQLITE_SELECT:
		return where->n_selects++ ? SQLITE_DENY : SQLITE_OK;
	case SQLITE_READ:
		column = column_by_name(second);
		if (column >= 0)
			where->columns |= WHERE_BIT(column);
		return column >= 0 || !*second ? SQLITE_OK : SQLITE_DENY;
	case SQLITE_FUNCTION:
		return sql_limits__allow_function(second) ? SQLITE_OK : SQLITE_DENY;
	default:
		return SQLITE_DENY;
	}
}

static int fail(struct where *where, int err, struct error *error)
{
	return error__set(error, err, "cannot evaluate --where: %s",
			  err == -ENOMEM ? "out of memory" : sqlite3_errmsg(where->db));
}

static int open_where(struct where *where, struct error *error)
{
	_cleanup_(finalize) sqlite3_stmt *first = NULL;

	where->patterns.stack = &where->scan.stack;
	if (sqlite3_open(":memory:", &where->db) != SQLITE_OK ||
	    where_scan__define(&where->scan, where->db) != SQLITE_OK ||
	    where_patterns__define(&where->patterns, where->db) != SQLITE_OK)
		return fail(where, -ENOMEM, error);
	/* In a shell's single quotes a text can be in double ones. */
	sqlite3_db_config(where->db, SQLITE_DBCONFIG_DQS_DML, 1, NULL);
	/* The table is made when a statement names it first, which the authorizer would not allow. */
	if (sqlite3_prepare_v2(where->db, SELECT "1", -1, &first, NULL) != SQLITE_OK)
		return fail(where, -EINVAL, error);
	sqlite3_set_authorizer(where->db, authorize, where);
	return 0;
}

static void close_where(struct where *where)
{
	sqlite3_close_v2(where->db);
	sql_limits__release(&where->limits);
	where_patterns__release(&where->patterns);
}

/* Says what is wrong with an expression that begins @offset bytes into the SQL, and where. */
static int fail_at(struct where *where, const char *text, int offset, struct error *error)
{
	int at = sqlite3_error_offset(where->db) - offset;
	const char *why = sqlite3_errmsg(where->db);
	size_t character = 1;
	char place[96] = "";

	if (sqlite3_errcode(where->db) == SQLITE_AUTH)
		why = "this is not allowed in it: it takes no SELECT, and columns of blocks only";
	if (at >= 0 && (size_t)at < strlen(text)) {
		for (int i = 0; i < at; i++)
			character += (text[i] & 0xc0) != 0x80;
		snprintf(place, sizeof(place), ", at character %zu, '%.40s'", character, text + at);
	}
	return error__set(error, -EINVAL,
			  "--where: %.300s%s; allocprof-where(7) has its columns and functions",
			  why, place);
}

static int prepare(struct where *where, const char *text, bool in_brackets, sqlite3_stmt **out,
		   struct error *error)
{
	_cleanup_(free_ptr) char *sql = NULL;
	int len = asprintf(&sql, SELECT "%s%s\n%s", in_brackets ? "(" : "", text,
			   in_brackets ? ")" : ""),
	    result;
	const char *rest;

	if (len < 0) {
		sql = NULL;
		return fail(where, -ENOMEM, error);
	}
	where->n_selects = 0;
	result = sqlite3_prepare_v2(where->db, sql, -1, out, &rest);
	if (result != SQLITE_OK)
		return sql_limits__fail(where->db, "expression of --where", WHERE_TIME_REMEDY,
					error)
			       ?: fail_at(where, text, strlen(SELECT) + in_brackets, error);
	if (rest[strspn(rest, " \t\r\n")])
		return error__set(error, -EINVAL,
				  "--where takes one expression, without ';', not '%.200s'", text);
	if (sqlite3_bind_parameter_count(*out))
		return error__set(error, -EINVAL,
				  "--where takes no parameters (?, :name), as '%.200s' has them",
				  text);
	return 0;
}

/* Only what is an expression without brackets and in them is one: "1) OR (1" or "1 LIMIT 1" is not. */
static int prepare_both(struct where *where, const char *text, sqlite3_stmt **out,
			struct error *error)
{
	_cleanup_(finalize) sqlite3_stmt *bare = NULL;
	int err = text[strspn(text, " \t\r\n")]
			  ? prepare(where, text, false, &bare, error)
			  : error__set(error, -EINVAL, "--where is empty; give an expression");

	return err ?: prepare(where, text, true, out, error);
}

int filter_where__parse(struct filter_where *parsed, const char *text, struct error *error)
{
	_cleanup_(finalize) sqlite3_stmt *statement = NULL;
	_cleanup_(close_where) struct where where = { 0 };
	int err;

	sql_limits__bound_memory(&where.limits);
	err = open_where(&where, error);
	if (!err) {
		sql_limits__set(&where.limits, where.db, WHERE_CPU_NS);
		err = prepare_both(&where, text, &statement, error);
	}
	if (!err)
		*parsed = (struct filter_where){ .text = text, .columns = where.columns };
	return err;
}

static enum where_level level_of(const struct where_data *data, __u32 columns)
{
	if (data->blocks)
		return WHERE_BLOCKS;
	if (columns & WHERE_TIME_COLUMNS)
		return WHERE_CELLS;
	if (!(columns & WHERE_FATE_COLUMNS))
		return WHERE_COUNTS;
	/* What the end freed is known by epoch. */
	return columns & WHERE_BIT(WHERE_LEAKED) && data->exit_frees.epoch ? WHERE_CELLS
									   : WHERE_FATES;
}

static size_t n_answers(const struct where_data *data, enum where_level level)
{
	const struct profile *profile = data->profile;

	if (level == WHERE_BLOCKS)
		return data->n_blocks;
	return level == WHERE_CELLS ? profile->n_lifetimes
				    : profile->n_counts << (level == WHERE_FATES);
}

static int step_all(struct where *where, sqlite3_stmt *statement, struct error *error)
{
	int result;

	while ((result = sqlite3_step(statement)) == SQLITE_ROW)
		where_scan__take(&where->scan);
	if (result == SQLITE_DONE)
		return 0;
	return sql_limits__fail(where->db, "expression of --where", WHERE_TIME_REMEDY, error)
		       ?: error__set(error, -EINVAL, "--where: %.512s", sqlite3_errmsg(where->db));
}

static void note_unmatched(const struct where_patterns *patterns, struct filter_where *where)
{
	where->unmatched[0] = '\0';
	for (size_t i = 0; i < patterns->n && !where->unmatched[0]; i++) {
		const struct where_pattern *pattern = &patterns->list[i];

		if (!pattern->stacks || pattern->found)
			continue;
		snprintf(where->unmatched, sizeof(where->unmatched), "%s", pattern->text);
		where->unmatched_is_module = pattern->of_modules;
	}
}

int where__evaluate(const struct where_data *data, struct filter_where *asked, bool is_limited,
		    struct where_answers *out, struct error *error)
{
	enum where_level level = level_of(data, asked->columns);
	struct where_answers made = { .level = level,
				      .answers = calloc(n_answers(data, level) + 1, 1) };
	_cleanup_(close_where) struct where where = {
		.scan = { .data = data,
			  .level = level,
			  .columns = asked->columns,
			  .answers = made.answers },
		.patterns.profile = data->profile,
	};
	sqlite3_stmt *statement = NULL;
	int err;

	if (!made.answers)
		return error__set(error, -ENOMEM, "cannot filter: out of memory");
	if (is_limited)
		sql_limits__bound_memory(&where.limits);
	err = open_where(&where, error);
	if (!err) {
		sql_limits__set(&where.limits, where.db, is_limited ? WHERE_CPU_NS : UINT64_MAX);
		err = prepare_both(&where, asked->text, &statement, error);
	}
	if (!err)
		err = step_all(&where, statement, error);
	sqlite3_finalize(statement);
	note_unmatched(&where.patterns, asked);
	if (err)
		free(made.answers);
	else
		*out = made;
	return err;
}
