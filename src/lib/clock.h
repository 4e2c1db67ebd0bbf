/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef ALLOCPROF_CLOCK_H
#define ALLOCPROF_CLOCK_H

#include <linux/types.h>
#include <time.h>

#define NS_PER_S  1000000000ULL
#define NS_PER_MS 1000000ULL

static inline __u64 clock__ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

/* Returns the time of CLOCK_MONOTONIC in nanoseconds, as bpf_ktime_get_ns() does. */
static inline __u64 clock__now_ns(void)
{
	return clock__ns(CLOCK_MONOTONIC);
}

#endif
