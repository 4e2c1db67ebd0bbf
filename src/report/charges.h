/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Charges the blocks of stacks to one function each, whose they are for a reader. */
#ifndef ALLOCPROF_CHARGES_H
#define ALLOCPROF_CHARGES_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "selection.h"

struct profile;
struct profile_count;
struct stack_groups;

/* The function to which stacks are charged: of each the innermost that is own code and has a
 * name, or else that of a library, own code without a name, or the innermost. */
struct charged_function {
	__u32 label; /* its label in the groups */
	__u64 allocations, size_bytes;
	__u64 live, live_bytes;
	__u64 peak, peak_bytes;
	__u64 lost, lost_bytes; /* also those that are lost indirectly */
};

struct charges {
	struct charged_function *functions;
	size_t n;
	__u32 *of_groups; /* by group: index of the function + 1; 0: nothing is charged to it */
	__u32 *depths;	  /* by group: frames that are further inside */
};

/*
 * Charges the blocks of @profile, whose stacks have the groups @groups: those of @counts, by
 * count's id - 1, or all where that is NULL. Leaves out mappings and page faults, where blocks are
 * again. Returns 0 or -ENOMEM. The caller releases *@charges in either case.
 */
int charges__make(const struct profile *profile, const struct stack_groups *groups,
		  const struct selection *counts, struct charges *charges);
void charges__release(struct charges *charges);

/* Returns whether the blocks of such a count are charged. */
bool charges__include(const struct profile *profile, const struct profile_count *count);

#endif
