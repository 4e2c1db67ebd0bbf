/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Finds out whether live memory was still growing when the recording ended. */
#ifndef ALLOCPROF_GROWTH_H
#define ALLOCPROF_GROWTH_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

struct error;
struct profile;

/* Verdicts in ascending order. */
enum growth_verdict {
	GROWTH_NONE,
	GROWTH_UNDECIDED, /* it may be growing, or may be memory that comes and goes */
	GROWTH_GROWING,
};

struct growth {
	bool is_known; /* false without --live, for several runs, and if the recording is too
		        * short */
	enum growth_verdict verdict;
	/* Growth, or if there is none the slope of the live bytes over the last half; at most
	 * PROFILE_MAX. */
	double bytes_per_second;
};

/*
 * Computes the growth of the live bytes of @n groups of counts. @groups has a count's group index
 * + 1, or 0, at the count's id - 1. Epochs from @before on do not count; 0: all do. Returns 0,
 * -ENOMEM, or -EINVAL for a damaged file, with @error set.
 *
 * A group is growing if the least-squares line through the live bytes at the ends of the epochs of
 * the last half, quarter or eighth rises by more than twice the standard deviation around it, the
 * average rises from each quarter of that part to the next, and the last quarter is above all that
 * was before that part and still rises. It is also growing if it rose in steps of an eighth or
 * more that were not undone, at least twice in the last four fifths of its life, and the next step
 * is not overdue.
 */
int growth__measure(const struct profile *profile, const __u32 *groups, size_t n, __u64 before,
		    struct growth *growths, struct error *error);

#endif
