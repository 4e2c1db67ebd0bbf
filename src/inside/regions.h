/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Regions that the program marks: which of them a thread has open, and its counters by set of open regions
 * (docs/regions.md). */
#ifndef ALLOCPROF_INSIDE_REGIONS_H
#define ALLOCPROF_INSIDE_REGIONS_H

#include "process.h"

/*
 * A change is made to a copy, which takes the place of the former state by one store: a signal's handler finds the
 * state before or after it. So many changes may have interrupted each other; one copy is in use.
 */
#define REGION_COPIES 8

struct regions {
	__u64 current; /* number of changes * REGION_COPIES + index of the copy in use */
	__u8 taken[REGION_COPIES]; /* 1: a change is being made to it */
	struct ap_region_thread copies[REGION_COPIES];
	struct inside_thread_regions *shared;
	/* sets[n] is shared->sets[n] as this process has it mapped; NULL: not mapped yet. */
	struct inside_region_counts *sets[AP_MAX_REGION_SETS];
};

/* The thread begins with the regions @open, NULL: with none. */
void regions__begin_thread(struct thread *thread, const struct ap_region_thread *open);

/* The regions that the thread has open; NULL if it has begun none. */
static inline const struct ap_region_thread *regions__open(const struct thread *thread)
{
	const struct regions *regions = thread->regions;

	return regions ? &regions->copies[__atomic_load_n(&regions->current, __ATOMIC_RELAXED) %
					  REGION_COPIES]
		       : NULL;
}

/* Counters of a call with @sp; NULL if it is in no region, or these are not known. */
struct inside_region_counts *regions__at_call(struct thread *thread, __u64 sp);

/* The counters of the set of regions that the thread is in; NULL: it is in none. */
static inline struct inside_region_counts *regions__counts(const struct thread *thread)
{
	const struct ap_region_thread *open;

	if (likely(!thread->regions))
		return NULL;
	open = regions__open(thread);
	return open->set < AP_MAX_REGION_SETS ? thread->regions->sets[open->set] : NULL;
}

#endif
