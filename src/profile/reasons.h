/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Why calls are lost, stacks end early and blocks are not followed: what the data file calls each reason,
 * and what a reader is told of it. */
#ifndef ALLOCPROF_REASONS_H
#define ALLOCPROF_REASONS_H

#include <stddef.h>

#include "abi.h"

struct reason {
	const char *name;     /* in JSON and in the data file: "ring_full" */
	const char *sentence; /* what happened */
	const char *remedy;   /* what to do about it, or NULL */
	const char
		*brief; /* of a stack's end: what is said in place of the frames that are missing */
};

/* The reason of this number; one that is called "unknown" where there is none. */
const struct reason *reason__lost(enum ap_lost number);
const struct reason *reason__stack_end(enum ap_stack_end number);
const struct reason *reason__untracked(enum ap_untracked number);

/* Those of a kind, as the data file's ledger spells them: "lost_", "incomplete_" or "untracked_" and the
 * name. NULL where @entry is none of these. */
const struct reason *reason__by_ledger(const char *entry);

#endif
