/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Finds stacks whose numbers tell how calls or memory could be saved. */
#ifndef ALLOCPROF_ADVICE_H
#define ALLOCPROF_ADVICE_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "profile.h"
#include "report.h"

enum advice_kind {
	ADVICE_RESERVE,	  /* blocks that realloc made larger again and again */
	ADVICE_CAPACITY,  /* containers that got a larger buffer again and again */
	ADVICE_REUSE,	  /* blocks that were freed before the thread's next allocation */
	ADVICE_HAND_BACK, /* blocks that other threads freed than had allocated them */
	ADVICE_BOUND,	  /* what grew until the end, and of which nearly nothing was freed */
	ADVICE_ONE_BLOCK, /* small blocks of one size that stay */
	ADVICE_SIZES,	  /* live blocks of sizes that the allocator rounds far up */
	ADVICE_KINDS,
};

struct advice {
	enum advice_kind kind;
	size_t entry; /* index of the report's entry */
	/* Blocks of all its counts, whatever the filter. */
	__u64 allocations;
	__u64 least_bytes, most_bytes; /* they have sizes between these powers of two */
	/* Who follows the advice saves at most so many calls of the allocator and, by kind, bytes that
	 * realloc had to copy (ADVICE_RESERVE), live ones (ADVICE_BOUND), or what the allocator has
	 * beside them (ADVICE_ONE_BLOCK, ADVICE_SIZES; 0: unknown). */
	__u64 saved_calls, saved_bytes;
	/* These allocations, as a share of all; or these bytes, as a share of all live bytes (ADVICE_BOUND),
	 * also of those that the allocator has beside them (ADVICE_SIZES). */
	double share;
	__u64 live, live_bytes;
};

/* Returns the name of a kind in JSON. */
const char *advice__name(enum advice_kind kind);

/*
 * Finds advice on the entries of @report, which has to have their growth, in descending order of
 * the share that it saves. The caller frees the list. Returns 0 or -ENOMEM.
 */
int advice__find(const struct report *report, struct advice **list, size_t *n);

#endif
