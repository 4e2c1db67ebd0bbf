/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Tables and views of the data file: their columns, and what `query --schema` prints about them. */
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
	DATA_EPOCH,   /* a __u32; PROFILE_LIVE is NULL in SQL */
	DATA_REAL,    /* a double that is not negative */
	DATA_KEY,     /* text that is the table's key */
	DATA_NAME,    /* text of at most DATA_MAX_NAME bytes */
	DATA_TEXT,
};

/*
 * Longest name in bytes. Names and paths are printed with each frame of each stack. Demanglers and
 * readers of symbols make names of up to 8 KiB, to which a clone's suffix of another 8 KiB may be
 * added; paths have at most PATH_MAX bytes, and /proc writes a newline as four.
 */
#define DATA_MAX_NAME (32 << 10)

struct data_column {
	const char *name;
	enum data_kind kind;
	size_t size, offset; /* size and offset of the field */
};

/* Rows of the tables that have no struct in profile.h. */
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
struct data_rss_row {
	struct profile_rss rss;
	const char *kind;
};
struct data_heap_row {
	struct profile_heap heap;
	const char *kind;
};
struct data_group_row {
	__u32 process;
	const char *path, *name;
};
struct data_arguments_row {
	__u32 process;
	const char *text;
};
struct data_mark_row {
	__u64 time_ns;
	const char *kind, *name;
};
struct data_size_class_row {
	struct profile_size_class sizes;
	const char *rule;
};
struct data_mapping_row {
	struct profile_mapping mapping;
	const char *kind;
};
struct data_histogram_row {
	__u32 count, bucket;
	__u64 blocks;
};

/* A table or view, and what the manual page allocprof-data(5) says about it. */
struct data_table {
	const char *name, *about;
	const char *view;		   /* the SELECT of a view; NULL: a table */
	const struct data_column *columns; /* columns of a table, ended by a zeroed one */
	const char
		/* Columns of its primary key; NULL: the first column, if that is an id or a key. */
		*key;
	bool may_lack; /* recordings of before lack it */
};

/* All tables, then all views; a zeroed one ends them. */
extern const struct data_table data_tables[];

/* Returns the table or view of this name; NULL if there is none. */
const struct data_table *data_table__find(const char *name);
/* Returns the SQL statement that creates the table or view, which the caller frees; NULL: there is
 * no memory. The reader accepts no other statement. */
char *data_table__definition(const struct data_table *table);
#endif
