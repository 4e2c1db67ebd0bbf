/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Follows the regions that a program marks: which of them a thread has open, and the thread's
 * counters for each set of open regions (docs/regions.md). */
#ifndef ALLOCPROF_INSIDE_REGIONS_H
#define ALLOCPROF_INSIDE_REGIONS_H

#include "process.h"

/*
 * A change is made to a copy, which replaces the former state by one store, so that a signal
 * handler finds the state before or after the change. One copy is in use, and each other one can
 * belong to a change that a signal has interrupted.
 */
#define REGION_COPIES 8

struct regions {
	__u64 current; /* number of changes * REGION_COPIES + index of the copy in use */
	__u8 taken[REGION_COPIES]; /* 1: a change is being made to this copy */
	struct ap_region_thread copies[REGION_COPIES];
	struct inside_thread_regions *shared;
	/* sets[n] is shared->sets[n] at the address where this process has mapped it; NULL: it is
	 * not mapped yet. */
	struct inside_region_counts *sets[AP_MAX_REGION_SETS];
};

/* Begins the thread with the regions @open; NULL: it has none open. */
void regions__begin_thread(struct thread *thread, const struct ap_region_thread *open);

/* Returns the regions that the thread has open; NULL if it has begun none. */
static inline const struct ap_region_thread *regions__open(const struct thread *thread)
{
	const struct regions *regions = thread->regions;

	return regions ? &regions->copies[__atomic_load_n(&regions->current, __ATOMIC_RELAXED) %
					  REGION_COPIES]
		       : NULL;
}

/* Returns the counters for a call with the stack pointer @sp; NULL if the call is in no region, or
 * its regions are not known. */
struct inside_region_counts *regions__at_call(struct thread *thread, __u64 sp);

/* Returns the number of the region that is called @name, or AP_MAX_REGIONS if none was begun. */
__u32 region__number(const char *name);

/* Returns the counters of the set of regions that the thread has open; NULL if it has none open. */
static inline struct inside_region_counts *regions__counts(const struct thread *thread)
{
	const struct ap_region_thread *open;

	if (likely(!thread->regions))
		return NULL;
	open = regions__open(thread);
	return open->set < AP_MAX_REGION_SETS ? thread->regions->sets[open->set] : NULL;
}

#endif
