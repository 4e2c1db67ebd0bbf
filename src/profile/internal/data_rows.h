/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Writes and reads rows of the data file's tables by their columns, which data_tables.c lists, and
 * adds them up to a digest. */
#ifndef ALLOCPROF_DATA_ROWS_H
#define ALLOCPROF_DATA_ROWS_H

#include <errno.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>

#include "data_tables.h"

/* Creates all tables and views. Returns 0 or a negative errno. */
int data_tables__create(sqlite3 *db);

/* Inserts rows into a table. Zeroed except for @db and @name; data_insert__row() sets the rest,
 * and the caller releases it. */
struct data_insert {
	sqlite3 *db;
	const char *name;
	const struct data_table *table;
	sqlite3_stmt *statement;
};

/* Inserts the struct @row. Returns 0 or a negative errno. */
int data_insert__row(struct data_insert *insert, const void *row);
void data_insert__release(struct data_insert *insert);

/* Prepares "SELECT * FROM" @table in the order of its key. Returns 0 or a negative errno. */
int data_table__select(const struct data_table *table, sqlite3 *db, sqlite3_stmt **statement);
/*
 * Stores the current row of @statement in the struct @row. Texts are valid until the next row, and
 * count against *@text_left. Returns 0, -ENOMEM, -EINVAL if it cannot be a row of @table, or
 * -E2BIG for a name that is too long.
 */
int data_table__get_row(const struct data_table *table, sqlite3_stmt *statement, void *row,
			__u64 *text_left);

/*
 * The digest of a data file, by which readers notice that the file was changed after it was
 * written: the sum of a number for each row of each table, as allocprof-data(5) describes. It is
 * no signature: whoever changes a file on purpose can also write a digest. The row of meta with
 * this key, which has the digest, does not count.
 */
#define DATA_DIGEST_KEY "digest"
/* The digest of a file that was made from one with a wrong digest, so that it remains wrong. */
#define DATA_DIGEST_WRONG "wrong"

struct data_digest_text {
	char text[17];
};

struct data_digest_text data_digest__text(__u64 digest);
/* Returns the number of the current row of @row, which is a SELECT * of @table. */
__u64 data_digest__row(const char *table, sqlite3_stmt *row);
/* Computes the digest by reading all tables. @lacking: as in struct data_reader. Returns 0 or
 * a negative errno. */
int data_digest__compute(sqlite3 *db, __u64 lacking, __u64 *digest);
/* Writes the digest to meta, after all else. Returns 0 or a negative errno. */
int data_digest__write(sqlite3 *db);

static inline void close_db(sqlite3 **db)
{
	sqlite3_close_v2(*db);
}

static inline void finalize(sqlite3_stmt **statement)
{
	sqlite3_finalize(*statement);
}

/* Returns the negative errno for SQLite's last result. */
static inline int db_errno(sqlite3 *db)
{
	int system_errno = sqlite3_system_errno(db);

	switch (sqlite3_errcode(db) & 0xff) {
	case SQLITE_NOMEM:
		return -ENOMEM;
	case SQLITE_FULL:
		return -ENOSPC;
	case SQLITE_TOOBIG:
		return -E2BIG;
	case SQLITE_IOERR:
	case SQLITE_CANTOPEN:
		return system_errno > 0 ? -system_errno : -EIO;
	default:
		return -EIO;
	}
}

static inline int run(sqlite3 *db, const char *sql)
{
	return sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : db_errno(db);
}

static inline int prepare(sqlite3 *db, const char *sql, sqlite3_stmt **statement)
{
	return sqlite3_prepare_v2(db, sql, -1, statement, NULL) == SQLITE_OK ? 0 : db_errno(db);
}

static inline int bind_text(sqlite3_stmt *statement, int at, const char *text)
{
	return text ? sqlite3_bind_text(statement, at, text, -1, SQLITE_STATIC)
		    : sqlite3_bind_null(statement, at);
}

#endif
