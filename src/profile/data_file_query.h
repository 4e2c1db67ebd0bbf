/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Runs SQL on a data file, which may be hostile: one statement that only reads, within limits. */
#ifndef ALLOCPROF_DATA_FILE_QUERY_H
#define ALLOCPROF_DATA_FILE_QUERY_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "data_tables.h"

struct data_query;
struct error;

/* What to do about a query that took too long. */
#define DATA_QUERY_TIME_REMEDY "select less, or allow it more with --timeout"

/*
 * Checks the digest of the data file @path, which reads all of it, and prepares @sql. From now on
 * the query may use @cpu_ns of the process's processor time. The time is checked between SQLite's
 * instructions, so a single one that calls instr() may take hours. While a query is open, SQLite
 * as a whole has a limit of memory, so only one may be open at a time. The caller frees *@query.
 * Returns 0 or a negative errno with @error set.
 */
int data_query__open(const char *path, const char *sql, __u64 cpu_ns, struct data_query **query,
		     struct error *error);
/* Accepts NULL. */
void data_query__free(struct data_query *query);

/* Returns whether the file was changed after it was written: its digest differs or is missing. */
bool data_query__is_altered(const struct data_query *query);
/* Returns the number of columns; 0 if the statement has no result. */
size_t data_query__n_columns(const struct data_query *query);
/* Returns the name of column @i, which is valid until the query is freed. */
const char *data_query__column(const struct data_query *query, size_t i);

/* Goes to the next row. Returns 1, 0 at the end, or a negative errno with @error set. */
int data_query__next(struct data_query *query, struct error *error);

enum data_value_kind {
	DATA_VALUE_NULL,
	DATA_VALUE_INTEGER,
	DATA_VALUE_REAL,
	DATA_VALUE_TEXT, /* text or blob */
};

struct data_value {
	enum data_value_kind kind;
	__s64 integer;
	double real;
	const char *text; /* valid until the next row */
};

/* Stores column @i of the row. Returns 0 or -ENOMEM. */
int data_query__value(struct data_query *query, size_t i, struct data_value *value);

/* Stores the names of the columns of @table, separated by ", ", in *@columns, which the caller
 * frees. Returns 0 or -ENOMEM. */
int data_table__columns(const struct data_table *table, char **columns);

#endif
