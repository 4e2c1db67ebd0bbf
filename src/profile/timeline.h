/* SPDX-License-Identifier: GPL-3.0-or-later */
/* When a recording samples its memory, for the time line. */
#ifndef ALLOCPROF_TIMELINE_H
#define ALLOCPROF_TIMELINE_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "profile.h"

/* Zeroed but for @interval_ns is an empty one. */
struct timeline {
	/* 0: grows with the recording, so that there are between TIMELINE_MOMENTS / 2 and
	 * TIMELINE_MOMENTS. */
	__u64 interval_ns;
	struct profile_moment *moments;
	size_t n, room;
	__u64 step_ns, next_ns; /* since the start */
};

#define TIMELINE_MOMENTS 200

/* Nanoseconds from @time_ns (since the start) until the next moment is due; 0: now. */
__u64 timeline__due_ns(const struct timeline *timeline, __u64 time_ns);

/* Delays the next moment to at least @pause_ns after the last one. */
void timeline__pause(struct timeline *timeline, __u64 pause_ns);

/* Adds a moment; replaces the last one if it is not later. 0 or -ENOMEM. */
int timeline__add(struct timeline *timeline, const struct profile_moment *moment);
void timeline__release(struct timeline *timeline);

#endif
