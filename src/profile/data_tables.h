/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The tables and views of the data file: their columns, and what `query --schema` prints of them. */
#ifndef ALLOCPROF_DATA_TABLES_H
#define ALLOCPROF_DATA_TABLES_H

#include <linux/types.h>
#include <stddef.h>

#include "profile.h"

/* The kind of a column's values, in the file and in the field of a row's struct. */
enum data_kind {
	DATA_ID,      /* a number that is the table's key */
	DATA_NUMBER,  /* from 0 to PROFILE_MAX that fits the field: bool, __u32 or __u64 */
	DATA_ADDRESS, /* any __u64, negative in SQL from 2^63 */
	DATA_EPOCH,   /* __u32; PROFILE_LIVE is NULL in SQL */
	DATA_REAL,    /* a double that is not negative */
	DATA_KEY,     /* text that is the table's key */
	DATA_NAME,    /* text of at most DATA_MAX_NAME bytes */
	DATA_TEXT,
};

/*
 * Names and paths are printed with each frame of each stack. Demanglers and readers of symbols make names of 8 KiB, to which a
 * clone's suffix from a symbol of 8 KiB may come; paths have PATH_MAX, of which /proc writes a newline as four bytes.
 */
#define DATA_MAX_NAME (32 << 10)

struct data_column {
	const char *name;
	enum data_kind kind;
	size_t size, offset; /* of the field */
};

/* Rows of tables that no struct of profile.h has. */
struct data_meta_row {
	__u32 run;
	struct profile_meta meta;
};
struct data_ledger_row {
	__u32 run;
	struct profile_ledger_entry entry;
};
struct data_gap_row {
	struct profile_gap gap;
	const char *kind;
};
struct data_line_row {
	__u32 frame, depth;
	struct profile_line line;
};
struct data_stack_row {
	__u32 id;
	const char *end, *frames;
};
struct data_count_row {
	struct profile_count count;
	const char *function;
};
struct data_sample_row {
	__u32 count;
	const char *what;
	struct profile_estimate estimate;
};
struct data_histogram_row {
	__u32 count, bucket;
	__u64 blocks;
};

/* A table or view, and what the manual page allocprof-data(5) says of it. */
struct data_table {
	const char *name, *about;
	const char *view;		   /* its SELECT; NULL: a table */
	const struct data_column *columns; /* of a table; ends with a zeroed one */
	const char
		*key; /* columns of its primary key; NULL: the first, if that is an id or a key */
};

/* All tables, then all views; a zeroed one ends them. */
extern const struct data_table data_tables[];

/* NULL if there is no table or view of this name. */
const struct data_table *data_table__find(const char *name);
/* The statement that creates it, to be freed; NULL on ENOMEM. The reader accepts no other. */
char *data_table__definition(const struct data_table *table);
#endif
