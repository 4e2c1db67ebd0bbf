/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Expressions of SQL that select blocks: the option --where, and what other options of a filter are short for. */
#ifndef ALLOCPROF_WHERE_H
#define ALLOCPROF_WHERE_H

#include <linux/types.h>
#include <stdbool.h>

struct error;

/* The processor time that expressions of a user may take in all. */
#define WHERE_CPU_NS	  (60 * 1000000000ULL)
#define WHERE_TIME_REMEDY "give a simpler expression, or select less"

/* An expression that a user gave. */
struct filter_where {
	const char *text; /* owned by the caller */
	__u32 columns;	  /* columns that it reads, as bits 1 << enum where_column */
	/* Set by filter__apply(): the first pattern of through() or through_module() that nothing matches; "": there is
	 * none. */
	char unmatched[128];
	bool unmatched_is_module;
};

/* Parses @text, which must outlive it. Returns 0, or a negative errno with @error set, which names the place. */
int filter_where__parse(struct filter_where *where, const char *text, struct error *error);

/* The columns, as allocprof-where(7) has them; NULL ends them. */
extern const char *const where_columns[];
/* The functions of which it says what they do. */
extern const char *const where_functions[];

#endif
