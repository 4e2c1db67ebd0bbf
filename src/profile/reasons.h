/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reasons why calls are lost, stacks are incomplete and blocks are not followed: their names in
 * the data file and their texts for users. */
#ifndef ALLOCPROF_REASONS_H
#define ALLOCPROF_REASONS_H

#include <stddef.h>

#include "abi.h"

struct reason {
	const char *name;     /* name in JSON and in the data file: "ring_full" */
	const char *sentence; /* what happened */
	const char *remedy;   /* what the user can do, or NULL */
	const char *brief;    /* for incomplete stacks: printed in place of the missing frames */
};

/* Returns the reason with this number; "unknown" if there is none. */
const struct reason *reason__lost(enum ap_lost number);
const struct reason *reason__stack_end(enum ap_stack_end number);
const struct reason *reason__untracked(enum ap_untracked number);

/* Returns the reason of a ledger entry whose name is "lost_", "incomplete_" or "untracked_" and a
 * reason's name. NULL for other entries. */
const struct reason *reason__by_ledger(const char *entry);

/* Returns what an entry of the ledger counts in a few words; for entries with a reason, the
 * reason's sentence. NULL if the entry is not known. allocprof-data(5) says more. */
const char *reason__ledger_meaning(const char *entry);

#endif
