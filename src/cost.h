/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The one number that a report is about, as --cost names it. */
#ifndef ALLOCPROF_COST_H
#define ALLOCPROF_COST_H

#include <linux/types.h>
#include <stdbool.h>

struct profile;
struct profile_count;

enum cost {
	COST_ALLOCATIONS,
	COST_BYTES,
	COST_LIVE,
	COST_LIVE_BYTES,
	COST_TEMPORARY,
	COST_PEAK, /* bytes */
	COSTS,
};

const char *cost__name(enum cost cost);
/* The cost called @name, or -ENOENT. */
int cost__by_name(const char *name);
/* Whether @cost is one of bytes. */
bool cost__is_bytes(enum cost cost);
/* Whether only a recording made with --live has it. */
bool cost__needs_live(enum cost cost);
/* Whether @profile says what became of blocks. */
bool cost__has_live(const struct profile *profile);

/* What @count comes to; 0 for calls of free. Allocations and bytes are those of requests where
 * @requests or where the file knows of no blocks. */
__u64 cost__of_count(const struct profile *profile, const struct profile_count *count,
		     enum cost cost, bool requests);

#endif
