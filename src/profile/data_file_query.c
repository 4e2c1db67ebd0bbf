// SPDX-License-Identifier: GPL-3.0-or-later
#include "data_file_query.h"

#include <stdint.h>
#include <string.h>

#include "array.h"
#include "cleanup.h"
#include "data_file_reader.h"
#include "data_rows.h"
#include "error.h"
#include "sql_limits.h"

#define SCHEMA_REMEDY "`allocprof query --schema` lists tables and columns"
#define ONLY_READS    "a query only reads the recording"

struct data_query {
	struct data_reader reader;
	sqlite3_stmt *statement;
	char *path;
	struct sql_limits limits;
	bool is_altered;
};

static bool is_word_of(const char *word, const char *const *words, size_t n)
{
	for (size_t i = 0; word && i < n; i++)
		if (!sqlite3_stricmp(word, words[i]))
			return true;
	return false;
}

/* SQLite calls it to authorize each action of a statement, also those of the file's views. */
static int authorize(void *context, int action, const char *first, const char *second,
		     const char *database, const char *view)
{
	static const char *const pragmas[] = { "table_info", "table_xinfo", "table_list",
					       "index_list", "index_info",  "index_xinfo" };
	bool allowed = false;

	switch (action) {
	case SQLITE_SELECT:
	case SQLITE_READ:
	case SQLITE_RECURSIVE:
		allowed = true;
		break;
	case SQLITE_FUNCTION:
		allowed = sql_limits__allow_function(second);
		break;
	case SQLITE_PRAGMA:
		allowed = is_word_of(first, pragmas, ARRAY_SIZE(pragmas));
		break;
	}
	return allowed ? SQLITE_OK : SQLITE_DENY;
}

/* Sets the error by SQLite's last message. */
static int fail(struct data_query *query, struct error *error)
{
	sqlite3 *db = query->reader.db;
	int err = sql_limits__fail(db, "query", DATA_QUERY_TIME_REMEDY, error);

	if (err)
		return err;
	switch (sqlite3_errcode(db) & 0xff) {
	case SQLITE_AUTH:
	case SQLITE_READONLY:
		return error__set(error, -EPERM,
				  ONLY_READS ", and this statement does something else; write to "
					     "a copy of the file with sqlite3");
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
	case SQLITE_FORMAT:
		return data_reader__fail(query->path, -EINVAL, "a table of the query", error);
	case SQLITE_IOERR:
		return data_reader__fail(query->path, -EIO, "", error);
	default:
		return error__set(error, -EINVAL, "cannot run the query: %.512s; " SCHEMA_REMEDY,
				  sqlite3_errmsg(db));
	}
}

static int prepare_one(struct data_query *query, const char *sql, struct error *error)
{
	_cleanup_(finalize) sqlite3_stmt *other = NULL;
	sqlite3 *db = query->reader.db;
	const char *rest;

	if (sqlite3_prepare_v2(db, sql, -1, &query->statement, &rest) != SQLITE_OK)
		return fail(query, error);
	if (!query->statement)
		return error__set(error, -EINVAL,
				  "there is no SQL in the query; for example: allocprof query "
				  "'SELECT * FROM ledger'");
	/* Comments and blanks may follow the statement. */
	while (*rest) {
		if (sqlite3_prepare_v2(db, rest, -1, &other, &rest) != SQLITE_OK || other)
			return error__set(error, -EINVAL,
					  "the query has several statements; give one at a time");
	}
	if (!sqlite3_stmt_readonly(query->statement))
		return error__set(error, -EPERM, ONLY_READS "; give a SELECT");
	return 0;
}

/* Compares the digest, for which the whole file is read, before the query's time begins. Returns 0
 * or -EINVAL. */
static int check_digest(struct data_query *query)
{
	_cleanup_(finalize) sqlite3_stmt *statement = NULL;
	sqlite3 *db = query->reader.db;
	const char *written;
	__u64 digest;
	int err = data_digest__compute(db, query->reader.lacking, &digest);

	if (!err)
		err = prepare(
			db, "SELECT value FROM meta NOT INDEXED WHERE key = '" DATA_DIGEST_KEY "'",
			&statement);
	if (err)
		return err == -ENOMEM ? err : -EINVAL;
	written = sqlite3_step(statement) == SQLITE_ROW
			  ? (const char *)sqlite3_column_text(statement, 0)
			  : NULL;
	query->is_altered = !written || strcmp(written, data_digest__text(digest).text) != 0;
	return 0;
}

bool data_query__is_altered(const struct data_query *query)
{
	return query->is_altered;
}

int data_query__open(const char *path, const char *sql, __u64 cpu_ns, struct data_query **made,
		     struct error *error)
{
	struct data_query *query = calloc(1, sizeof(*query));
	int err;

	if (!query)
		return error__set(error, -ENOMEM, "out of memory");
	sql_limits__bound_memory(&query->limits);
	query->path = strdup(path);
	query->reader.fd = data_reader__open_path(path);
	err = query->path ? data_reader__open(&query->reader, path, error)
			  : error__set(error, -ENOMEM, "out of memory");
	if (!err) {
		err = data_reader__read_definitions(&query->reader);
		if (err)
			data_reader__fail(path, err, "definitions", error);
	}
	if (!err) {
		err = check_digest(query);
		if (err)
			data_reader__fail(path, err, "a table", error);
	}
	if (!err) {
		sqlite3_set_authorizer(query->reader.db, authorize, NULL);
		sql_limits__set(&query->limits, query->reader.db, cpu_ns);
		err = prepare_one(query, sql, error);
	}
	if (err) {
		data_query__free(query);
		return err;
	}
	*made = query;
	return 0;
}

void data_query__free(struct data_query *query)
{
	if (!query)
		return;
	sqlite3_finalize(query->statement);
	sqlite3_close_v2(query->reader.db);
	close_fd(&query->reader.fd);
	sql_limits__release(&query->limits);
	free(query->path);
	free(query);
}

size_t data_query__n_columns(const struct data_query *query)
{
	return sqlite3_column_count(query->statement);
}

const char *data_query__column(const struct data_query *query, size_t i)
{
	const char *name = sqlite3_column_name(query->statement, i);

	return name ? name : "";
}

int data_query__next(struct data_query *query, struct error *error)
{
	switch (sqlite3_step(query->statement)) {
	case SQLITE_ROW:
		return 1;
	case SQLITE_DONE:
		return 0;
	default:
		return fail(query, error);
	}
}

int data_query__value(struct data_query *query, size_t i, struct data_value *value)
{
	sqlite3_stmt *statement = query->statement;

	*value = (struct data_value){ DATA_VALUE_NULL };
	switch (sqlite3_column_type(statement, i)) {
	case SQLITE_INTEGER:
		value->kind = DATA_VALUE_INTEGER;
		value->integer = sqlite3_column_int64(statement, i);
		break;
	case SQLITE_FLOAT:
		value->kind = DATA_VALUE_REAL;
		value->real = sqlite3_column_double(statement, i);
		break;
	case SQLITE_TEXT:
	case SQLITE_BLOB:
		value->kind = DATA_VALUE_TEXT;
		value->text = (const char *)sqlite3_column_text(statement, i);
		if (!value->text && sqlite3_errcode(query->reader.db) == SQLITE_NOMEM)
			return -ENOMEM;
		if (!value->text)
			value->text = "";
		break;
	}
	return 0;
}

int data_table__columns(const struct data_table *table, char **columns)
{
	_cleanup_(finalize) sqlite3_stmt *statement = NULL;
	_cleanup_(close_db) sqlite3 *db = NULL;
	const char *names;

	if (sqlite3_open(":memory:", &db) != SQLITE_OK)
		return -ENOMEM;
	if (data_tables__create(db))
		return -ENOMEM;
	if (prepare(db, "SELECT group_concat(name, ', ') FROM pragma_table_info(?)", &statement) ||
	    bind_text(statement, 1, table->name) != SQLITE_OK ||
	    sqlite3_step(statement) != SQLITE_ROW)
		return -ENOMEM;
	names = (const char *)sqlite3_column_text(statement, 0);
	*columns = names ? strdup(names) : NULL;
	return *columns ? 0 : -ENOMEM;
}
