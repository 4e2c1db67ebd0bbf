/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The moments of a recording at which its memory is looked at. */
#ifndef ALLOCPROF_TIMELINE_H
#define ALLOCPROF_TIMELINE_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "profile.h"

/* Zeroed but for @interval_ns it has no moments. */
struct timeline {
	/* 0: as the recording grows, so that there are between half of TIMELINE_MOMENTS and all. */
	__u64 interval_ns;
	struct profile_moment *moments;
	size_t n, room;
	__u64 step_ns, next_ns; /* since the start */
};

#define TIMELINE_MOMENTS 200

/* Nanoseconds from @time_ns on, since the start, to when the next moment is due; 0: it is. */
__u64 timeline__due_ns(const struct timeline *timeline, __u64 time_ns);

/* The next moment may come only @pause_ns after the last one. */
void timeline__pause(struct timeline *timeline, __u64 pause_ns);

/* Adds a moment; one that is not later than the last takes its place. -ENOMEM. */
int timeline__add(struct timeline *timeline, const struct profile_moment *moment);
void timeline__release(struct timeline *timeline);

#endif
