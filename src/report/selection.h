/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sums over selected blocks, and the costs that reports compute from them. */
#ifndef ALLOCPROF_SELECTION_H
#define ALLOCPROF_SELECTION_H

#include <linux/types.h>
#include <stdbool.h>

#include "profile.h"

/*
 * Sums of blocks, of one or more counts. selection_none is empty: zeros except for oldest_ns.
 */
struct selection {
	__u64 allocations, size_bytes; /* blocks, or requests if the file has no blocks */
	__u64 live, live_bytes;
	__u64 temporary, temporary_bytes;
	__u64 peak, peak_bytes;
	__u64 oldest_ns; /* birth of the oldest live one; UINT64_MAX: none is live */
	/* These are of the live blocks, and only with --resident (struct profile_blocks). */
	__u64 resident_bytes, unique_pages, unique_slack_bytes;
	/* These are of the live blocks, too, and only with --reachable. */
	struct profile_reached reached[PROFILE_REACHES];
	/* Blocks that possibly belong to the above, but are not included. */
	__u64 unsure, unsure_bytes;
	/* Precision if bytes were sampled, else zeros. */
	struct profile_estimate of_allocations, of_live, of_temporary;
};

extern const struct selection selection_none;

/* Adds @more to @to; sums saturate at PROFILE_MAX. */
void selection__add(struct selection *to, const struct selection *more);

/* A number of a selection, as named by --cost and --sort. */
enum cost {
	COST_ALLOCATIONS,
	COST_BYTES,
	COST_LIVE,
	COST_LIVE_BYTES,
	COST_TEMPORARY,
	COST_PEAK,     /* bytes */
	COST_RESIDENT, /* bytes of live blocks that are resident */
	COST_UNIQUE,   /* bytes of resident pages that no other stack has blocks on */
	COST_LOST,     /* bytes of live blocks that are lost, also indirectly */
	COSTS,
};

__u64 cost__of(enum cost cost, const struct selection *selection);
/* Return the blocks and the bytes of @cost, whichever of the two it is. */
__u64 cost__blocks(enum cost cost, const struct selection *selection);
__u64 cost__bytes(enum cost cost, const struct selection *selection);
/* Returns the precision of @cost; NULL if it is unknown, as that of the peak is. */
const struct profile_estimate *cost__estimate(enum cost cost, const struct selection *selection);
/* Returns half of the width of the 95 % confidence interval of an estimated number of blocks (or
 * @bytes), which is valid with many samples; 0 if it is not sampled. */
double profile_estimate__margin(const struct profile_estimate *estimate, bool bytes);
/* Returns whether @cost is in bytes. */
bool cost__is_bytes(enum cost cost);
/* Returns whether @cost needs a recording with --live. */
bool cost__needs_live(enum cost cost);
/* Returns whether @cost needs a recording with --resident. */
bool cost__needs_resident(enum cost cost);
/* Returns whether @cost needs a recording with --reachable. */
bool cost__needs_reach(enum cost cost);
/* Returns whether @cost is known of all of a stack's blocks together, not of those that were freed
 * at some time or are of some age. */
bool cost__is_of_stacks(enum cost cost);
const char *cost__name(enum cost cost);
/* Returns the cost called @name, or -ENOENT. */
int cost__by_name(const char *name);

#endif
