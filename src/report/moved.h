/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Finds what moved between two recordings, and by which function. */
#ifndef ALLOCPROF_MOVED_H
#define ALLOCPROF_MOVED_H

#include <linux/types.h>
#include <stddef.h>

#include "selection.h"

struct profile;
struct stack_groups;

/* A cost that moved from one recording to the other. */
struct moved {
	enum cost cost;
	__u64 before, after;
	char *function; /* the function that moved most of it; NULL: none did */
	double change;	/* of this function */
};

#define MOVED_COSTS 4

/* A recording that is compared with another one. */
struct moved_side {
	const struct profile *profile;
	const struct stack_groups *groups;
	const struct selection *counts; /* NULL: all */
	__u64 peak_bytes;		/* the counted peak; 0: not known */
};

/*
 * Finds the costs that moved by 1 % or more, in descending order of the share by which
 * they did. Both recordings have to be of one run, and not sampled. Returns 0 or -ENOMEM. The caller releases
 * @list in either case.
 */
int moved__find(const struct moved_side *before, const struct moved_side *after,
		struct moved list[MOVED_COSTS], size_t *n);
void moved__release(struct moved list[MOVED_COSTS], size_t n);

#endif
