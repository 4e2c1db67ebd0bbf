/* SPDX-License-Identifier: GPL-3.0-or-later */
/* SQL on a data file, which may be hostile: one statement that only reads, within limits. */
#ifndef ALLOCPROF_DATA_FILE_QUERY_H
#define ALLOCPROF_DATA_FILE_QUERY_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "data_tables.h"

struct data_query;
struct error;

/* What a query is told that took too long. */
#define DATA_QUERY_OVER_TIME                                                                       \
	"the query was stopped when its processor time was over; select less, or allow it more with --timeout"

/*
 * Checks the digest of the data file @path, which reads all of it, and prepares @sql for it; it may use @cpu_ns of the process's processor time from now
 * on, which is looked at between SQLite's instructions: one that calls instr() may take hours. While a query is open, SQLite as a whole has a limit of memory, so one may be open at a time. To
 * be freed. 0 or a negative errno with @error set.
 */
int data_query__open(const char *path, const char *sql, __u64 cpu_ns, struct data_query **query,
		     struct error *error);
/* NULL is ignored. */
void data_query__free(struct data_query *query);

/* Whether the file is not as it was written: its digest is another one, or it has none. */
bool data_query__is_altered(const struct data_query *query);
/* 0 if the statement has no result. */
size_t data_query__n_columns(const struct data_query *query);
/* The name of column @i; valid until the query is freed. */
const char *data_query__column(const struct data_query *query, size_t i);

/* Goes to the next row: 1, 0 at the end, or a negative errno with @error set. */
int data_query__next(struct data_query *query, struct error *error);

enum data_value_kind {
	DATA_VALUE_NULL,
	DATA_VALUE_INTEGER,
	DATA_VALUE_REAL,
	DATA_VALUE_TEXT, /* also of a blob */
};

struct data_value {
	enum data_value_kind kind;
	__s64 integer;
	double real;
	const char *text; /* valid until the next row */
};

/* Column @i of the row. 0 or -ENOMEM. */
int data_query__value(struct data_query *query, size_t i, struct data_value *value);

/* The names of the columns of @table with ", " between them, to be freed. 0 or -ENOMEM. */
int data_table__columns(const struct data_table *table, char **columns);

#endif
