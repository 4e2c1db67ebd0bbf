/* SPDX-License-Identifier: GPL-3.0-or-later */
/* SQLite helpers of the data file's writer and reader. */
#ifndef ALLOCPROF_DATA_FILE_DB_H
#define ALLOCPROF_DATA_FILE_DB_H

#include <errno.h>
#include <sqlite3.h>

struct error;
struct profile;

static inline void close_db(sqlite3 **db)
{
	sqlite3_close_v2(*db);
}

static inline void finalize(sqlite3_stmt **statement)
{
	sqlite3_finalize(*statement);
}

/* The negative errno for SQLite's last result. */
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

/* Whether data_file__read() would accept the open file @fd, which @error calls @path; needs little memory. */
int data_file__check(int fd, const char *path, struct error *error);

/* data_file_write_tables.c. Writes all tables of a new file. */
int data_file__write_tables(sqlite3 *db, const struct profile *profile);
/* Rewrites the tables of names, and stacks with inserted tail calls, in a copy of a file. */
int data_file__rewrite_names(sqlite3 *db, const struct profile *profile);

#endif
