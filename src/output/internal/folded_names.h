/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The names in folded stacks, escaped and sorted; allocprof-folded(1) lists the replaced characters. */
#ifndef ALLOCPROF_FOLDED_NAMES_H
#define ALLOCPROF_FOLDED_NAMES_H

#include <linux/types.h>
#include <stddef.h>

/*
 * Lines are sorted and summed as lists of ranks, without building them. No name contains ';' or ' ',
 * so lines sort by their names, each with its terminating character.
 */
struct folded_names {
	char **texts; /* by index */
	__u32 *order; /* indexes into texts, sorted */
	__u32 *ranks; /* by index; equal texts have equal ranks */
	size_t n;
};

/* An escaped copy of @name followed by @terminator, ';' or ' '. To be freed; NULL on ENOMEM. */
char *folded_name__new(const char *name, char terminator);

/* Makes names of @n texts, which @text allocates by index. 0 or -ENOMEM; released in either case. */
int folded_names__make(struct folded_names *names, size_t n,
		       char *(*text)(size_t index, const void *context), const void *context);
void folded_names__release(struct folded_names *names);

static inline const char *folded_names__text(const struct folded_names *names, __u32 rank)
{
	return names->texts[names->order[rank]];
}

#endif
