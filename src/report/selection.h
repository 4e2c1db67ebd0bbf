/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a report counts: sums over some of the blocks, and the one of them that it is about. */
#ifndef ALLOCPROF_SELECTION_H
#define ALLOCPROF_SELECTION_H

#include <linux/types.h>
#include <stdbool.h>

#include "profile.h"

/* Sums of blocks, of one count or of many. Zeroed but for oldest_ns it is empty; see selection_none. */
struct selection {
	__u64 allocations, size_bytes; /* blocks; requests where the file does not know of blocks */
	__u64 live, live_bytes;
	__u64 temporary, temporary_bytes;
	__u64 peak, peak_bytes;
	__u64 oldest_ns; /* birth of the oldest live one since the start; UINT64_MAX: none is live */
	__u64 unsure,
		unsure_bytes; /* not in the above: may belong to it, by the epochs' precision */
	/* Where bytes were sampled, else zeros. */
	struct profile_estimate of_allocations, of_live, of_temporary;
};

/* Nothing. */
extern const struct selection selection_none;

/* Adds @more to @to; sums stop at PROFILE_MAX. */
void selection__add(struct selection *to, const struct selection *more);

/* One number of a selection, as --cost and --sort name it. */
enum cost {
	COST_ALLOCATIONS,
	COST_BYTES,
	COST_LIVE,
	COST_LIVE_BYTES,
	COST_TEMPORARY,
	COST_PEAK, /* bytes */
	COSTS,
};

__u64 cost__of(enum cost cost, const struct selection *selection);
/* The blocks and the bytes that belong to @cost, whichever of the two it is. */
__u64 cost__blocks(enum cost cost, const struct selection *selection);
__u64 cost__bytes(enum cost cost, const struct selection *selection);
/* What @cost was estimated from, or NULL where that is not known: of the peak. */
const struct profile_estimate *cost__estimate(enum cost cost, const struct selection *selection);
/* The truth lies within so much of an estimated number of blocks (or @bytes) in 95 of 100 recordings, if
 * there are many samples; 0 where nothing was sampled. */
double profile_estimate__margin(const struct profile_estimate *estimate, bool bytes);
/* Whether @cost is one of bytes. */
bool cost__is_bytes(enum cost cost);
/* Whether only a recording made with --live has it. */
bool cost__needs_live(enum cost cost);
const char *cost__name(enum cost cost);
/* The cost called @name, or -ENOENT. */
int cost__by_name(const char *name);

#endif
