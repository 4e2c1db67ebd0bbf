/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Finds pairs of stacks that differ in frames and are probably the same: allocprof-diff(1),
 * PAIRING. */
#ifndef ALLOCPROF_DIFF_PAIR_H
#define ALLOCPROF_DIFF_PAIR_H

#include "diff.h"

struct diff_pair {
	__u32 stacks[DIFF_SIDES]; /* indexes */
	__u16 similarity;	  /* thousandths */
};

/* Pairs stacks that are on one side of @diff only, each at most once. The result does not depend on
 * the sides. *@pairs is to be freed; *@stopped: not all candidates were compared. 0 or -ENOMEM. */
int diff_pair__find(const struct diff *diff, struct diff_pair **pairs, size_t *n_pairs,
		    bool *stopped);

#endif
