/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Groups stacks that have much in common, without comparing each with each. */
#ifndef ALLOCPROF_DIFF_KEYS_H
#define ALLOCPROF_DIFF_KEYS_H

#include "diff.h"

/* Frames that the stacks of a group share, apart from frames whose names one side lacks. */
enum diff_key_kind {
	DIFF_KEYS_WHOLE,   /* all frames */
	DIFF_KEYS_BUT_ONE, /* all, or all but one of either stack */
	DIFF_KEYS_ENDS,	   /* some frames at both ends, at least half of all */
};

struct diff_key_group {
	__u32 key;
	const __u32 *ranks[DIFF_SIDES]; /* ascending */
	__u32 n[DIFF_SIDES];
};

struct diff_key;

struct diff_keys {
	const struct diff *diff;
	const bool *is_stable; /* by canonical id: both sides have the name; owned */
	const __u32 *stacks[DIFF_SIDES];
	size_t n_stacks[DIFF_SIDES];
	enum diff_key_kind kind;
	__u32 *ranks[DIFF_SIDES]; /* of the current group */
	__u64 *sums;		  /* keys of a stack's first frames */
	__u64 *inverses;
	struct diff_key *keys;
	size_t n_keys, room;
};

/* @stacks has @n stacks of @diff by side, in the order of their ranks; the arguments must outlive
 * @keys. 0 or -ENOMEM; release in either case. */
int diff_keys__init(struct diff_keys *keys, const struct diff *diff,
		    __u32 *const stacks[DIFF_SIDES], const size_t n[DIFF_SIDES]);
void diff_keys__release(struct diff_keys *keys);

/* Computes the keys of all stacks that are not @is_taken (by side and rank). 0 or -ENOMEM. */
int diff_keys__fill(struct diff_keys *keys, enum diff_key_kind kind,
		    const bool *const is_taken[DIFF_SIDES]);

/* Calls @visit for each key that both sides have, until it returns nonzero, which is then returned.
 * The order does not depend on the sides. */
int diff_keys__for_each_group(struct diff_keys *keys,
			      int (*visit)(void *context, const struct diff_key_group *group),
			      void *context);

#endif
