/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Rules by which marks and calls change which regions a thread has open (docs/regions.md, Which
 * are open), shared by the programs of bpf/ and src/inside.
 */
#ifndef ALLOCPROF_OPEN_REGIONS_ABI_H
#define ALLOCPROF_OPEN_REGIONS_ABI_H

#include "region_abi.h"

#define AP_REGION_RULE static inline __attribute__((always_inline))

/* A thread's position on its stack, which shows which of its regions have ended. */
struct ap_region_sweep {
	__u64 floor;  /* frames below this address have returned */
	__u64 sp, ip; /* stack pointer and address of a begin mark */
	__u32 region; /* the region that begins, or AP_MAX_REGIONS */
	__u32 alternate;
};

/* Returns the sweep for a call with @sp, whose own frame is below the frames of all open regions. */
AP_REGION_RULE struct ap_region_sweep ap_region_sweep__at_call(__u64 sp)
{
	return (struct ap_region_sweep){ .floor = sp + 1, .region = AP_MAX_REGIONS };
}

AP_REGION_RULE struct ap_region_sweep ap_region_sweep__at_begin(__u64 sp, __u64 ip, __u32 region)
{
	return (struct ap_region_sweep){ .floor = sp, .sp = sp, .ip = ip, .region = region };
}

AP_REGION_RULE struct ap_region_sweep ap_region_sweep__at_end(__u64 sp)
{
	return (struct ap_region_sweep){ .floor = sp, .region = AP_MAX_REGIONS };
}

AP_REGION_RULE int ap_region_mark__begins(__u32 mark)
{
	return mark == AP_REGION_BEGIN || mark == AP_REGION_ENTER || mark == AP_REGION_RESUME;
}

/* Returns whether *@there, an entry of struct ap_regions' masks, is that of the set @mask. A free
 * entry is given to the set. */
AP_REGION_RULE int ap_region_mask__is(__u64 *there, __u64 mask)
{
	__u64 before = *(volatile __u64 *)there;

	if (!before)
		before = __sync_val_compare_and_swap(there, 0, mask);
	return !before || before == mask;
}

AP_REGION_RULE int ap_open_region__is_gone(const struct ap_open_region *open,
					   const struct ap_region_sweep *sweep)
{
	if (open->alternate != sweep->alternate)
		return open->alternate && open->scoped;
	if (open->scoped && open->sp < sweep->floor)
		return 1;
	/* A region that begins again in the same frame and at the same address, or in a frame that
	 * has returned, was left without a mark. Recursion has another frame or, if it is inlined,
	 * another address. */
	return open->region == sweep->region &&
	       (open->sp < sweep->sp || (open->sp == sweep->sp && open->ip == sweep->ip));
}

/* Sets the floor after a change of the open regions. Returns the mask of the open ones. */
AP_REGION_RULE __u64 ap_region_thread__settle(struct ap_region_thread *thread)
{
	__u64 mask = 0, floor = ~0ULL;

	for (int i = 0; i < AP_MAX_OPEN_REGIONS; i++) {
		const struct ap_open_region *open = &thread->open[i];

		if ((__u32)i >= thread->n)
			break;
		mask |= 1ULL << (open->region & (AP_MAX_REGIONS - 1));
		if (open->scoped && open->sp < floor)
			floor = open->sp;
	}
	thread->floor = floor;
	return mask;
}

/*
 * Removes open regions that were left without a mark. Returns 1 if there were any.
 *
 * @zero, here and below, is 0. The programs read it from memory, so that their verifier does not
 * know it: else it would check a loop for each value of a counter.
 */
AP_REGION_RULE int ap_region_thread__sweep(struct ap_region_thread *thread,
					   const struct ap_region_sweep *sweep, __u32 zero)
{
	__u32 kept = zero;

	for (int i = 0; i < AP_MAX_OPEN_REGIONS; i++) {
		if ((__u32)i >= thread->n)
			break;
		if (ap_open_region__is_gone(&thread->open[i], sweep))
			continue;
		thread->open[kept & (AP_MAX_OPEN_REGIONS - 1)] = thread->open[i];
		kept++;
	}
	if (kept == thread->n)
		return 0;
	thread->n = kept;
	return 1;
}

/* Opens the region of @sweep, for which ap_region_thread__sweep() was called. Returns 0 if there
 * is no room. */
AP_REGION_RULE int ap_region_thread__open(struct ap_region_thread *thread,
					  const struct ap_region_sweep *sweep, __u32 mark)
{
	struct ap_open_region *open;

	if (thread->n >= AP_MAX_OPEN_REGIONS)
		return 0;
	open = &thread->open[thread->n & (AP_MAX_OPEN_REGIONS - 1)];
	/* Asynchronous work is resumed by any function, so its frame tells nothing. */
	open->sp = mark == AP_REGION_RESUME ? ~0ULL : sweep->sp;
	open->ip = sweep->ip;
	open->region = sweep->region;
	open->scoped = mark == AP_REGION_ENTER;
	open->alternate = sweep->alternate;
	open->pad = 0;
	thread->n++;
	return 1;
}

/* Returns the index of the open region that the mark ends: the last one whose frame still exists
 * or, if there is none, the last one. AP_MAX_OPEN_REGIONS: no region is open. */
AP_REGION_RULE __u32 ap_region_thread__find(const struct ap_region_thread *thread, __u64 sp,
					    __u32 region, __u32 mark, __u32 zero)
{
	__u32 found = zero + AP_MAX_OPEN_REGIONS;
	int is_there = 0;

	for (int i = 0; i < AP_MAX_OPEN_REGIONS; i++) {
		const struct ap_open_region *open = &thread->open[i];

		if ((__u32)i >= thread->n)
			break;
		if (mark == AP_REGION_LEAVE ? !open->scoped : open->region != region)
			continue;
		if (is_there && open->sp < sp)
			continue;
		found = zero + i;
		is_there = open->sp >= sp;
	}
	return found;
}

/* Removes the region at index @at, and those that frames which have returned began inside of it. */
AP_REGION_RULE void ap_region_thread__remove(struct ap_region_thread *thread,
					     const struct ap_region_sweep *sweep, __u32 at,
					     __u32 zero)
{
	__u32 kept = zero;

	for (int i = 0; i < AP_MAX_OPEN_REGIONS; i++) {
		const struct ap_open_region *open = &thread->open[i];

		if ((__u32)i >= thread->n)
			break;
		if ((__u32)i == at || ((__u32)i > at && open->sp < sweep->floor &&
				       open->alternate == sweep->alternate))
			continue;
		thread->open[kept & (AP_MAX_OPEN_REGIONS - 1)] = *open;
		kept++;
	}
	thread->n = kept;
}

#endif
