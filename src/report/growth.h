/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Whether live memory was still growing when the recording ended. */
#ifndef ALLOCPROF_GROWTH_H
#define ALLOCPROF_GROWTH_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

struct error;
struct profile;

/* In ascending order. */
enum growth_verdict {
	GROWTH_NONE,
	GROWTH_UNDECIDED, /* it may be, and may as well be memory that comes and goes */
	GROWTH_GROWING,
};

struct growth {
	bool is_known; /* false without --live, for several runs, and if the recording is too
		        * short */
	enum growth_verdict verdict;
	double bytes_per_second; /* of what is growing, else the slope of the live bytes over the last half; PROFILE_MAX
				  * at the most */
};

/*
 * Computes the growth of the live bytes of @n groups of counts; @groups has a count's group index +
 * 1, or 0, by count's id - 1. Epochs from @before on do not count, 0: all do.
 *
 * A group is growing if the least-squares line through the live bytes at the ends of the epochs of the last half, quarter
 * or eighth rises by more than twice the standard deviation around it, the average rises from each quarter of that part to
 * the next, and the last is above all before that part and still rises; or if it rose in steps of an eighth or more for good, at
 * least twice in the last four fifths of its life, and the next is not overdue. 0, or -ENOMEM, or -EINVAL for a damaged
 * file, with @error set.
 */
int growth__measure(const struct profile *profile, const __u32 *groups, size_t n, __u64 before,
		    struct growth *growths, struct error *error);

#endif
