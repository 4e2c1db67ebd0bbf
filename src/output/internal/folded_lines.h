/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The lines of folded stacks: sorted by their names, added up and printed. */
#ifndef ALLOCPROF_FOLDED_LINES_H
#define ALLOCPROF_FOLDED_LINES_H

#include <linux/types.h>
#include <stddef.h>
#include <stdio.h>

#include "folded_names.h"

/* The rank after the last name of a line. */
#define FOLDED_END UINT32_MAX

/* Lines are compared as lists of ranks, without building them. */
struct folded_lines {
	struct folded_names names;
	__u32 *order; /* numbers of the lines, to be filled in; owned */
	size_t n;     /* so many are filled in */
	/* The rank of the name at @at, counted from the root, of @line; FOLDED_END after the last. */
	__u32 (*rank)(const void *owner, __u32 line, size_t at);
	/* Adds the n_costs costs of @line to @costs. */
	void (*add)(const void *owner, __u32 line, __u64 *costs);
	const void *owner; /* of the functions */
	size_t n_costs;
};

#define FOLDED_MAX_COSTS 2

/* Makes @n_names names, of which @name makes the text by index, and room for @n lines. 0 or -ENOMEM;
 * released in either case. */
int folded_lines__init(struct folded_lines *lines, size_t n, size_t n_names,
		       char *(*name)(size_t index, const void *owner));
/* Sorts the lines and prints them; lines of the same names become one. 0 or a negative errno. */
int folded_lines__print(struct folded_lines *lines, FILE *to);
/* Frees the names and the order. */
void folded_lines__release(struct folded_lines *lines);

#endif
