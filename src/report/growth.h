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
	bool is_known; /* false without --live, of several runs, or where the recording is too short */
	bool is_growing;
	double bytes_per_second; /* slope of the live bytes over the last half of the recording */
};

/*
 * Sets @growths to how the live bytes of @n groups of counts changed; by count's id - 1, @groups has the
 * group's index + 1, 0: none. The line that fits the live bytes at the end of each epoch best, by least squares
 * over the epochs of the last half, has the slope; a group is growing where that line rises by more than twice
 * the standard deviation around it, and more was live, on average, in each quarter of that half than in the quarter
 * before. 0, or -ENOMEM or -EINVAL for a damaged file with @error set.
 */
int growth__measure(const struct profile *profile, const __u32 *groups, size_t n,
		    struct growth *growths, struct error *error);

#endif
