/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Whether live memory was still growing when the recording ended. */
#ifndef ALLOCPROF_GROWTH_H
#define ALLOCPROF_GROWTH_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

struct error;
struct profile;

struct growth {
	bool is_known; /* false without --live, for several runs, and if the recording is too
		        * short */
	bool is_growing;
	double bytes_per_second; /* slope of the live bytes over the last half of the recording; PROFILE_MAX at the most */
};

/*
 * Computes the growth of the live bytes of @n groups of counts; @groups has a count's group index +
 * 1, or 0, by count's id - 1. The slope is that of a least-squares line through the live bytes at
 * the ends of the epochs of the last half. A group is growing if that line rises by more than twice
 * the standard deviation around it, and the average rises from each quarter of that half to the
 * next. 0, or -ENOMEM, or -EINVAL for a damaged file, with @error set.
 */
int growth__measure(const struct profile *profile, const __u32 *groups, size_t n,
		    struct growth *growths, struct error *error);

#endif
