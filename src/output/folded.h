/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Writes a profile as folded stacks, the input of flame graph tools: allocprof-folded(1). */
#ifndef ALLOCPROF_FOLDED_H
#define ALLOCPROF_FOLDED_H

#include <stdbool.h>
#include <stdio.h>

#include "selection.h"

struct profile;
struct stack_view;

struct folded_options {
	enum cost cost;
	/* Filtered costs, indexed by count's id - 1; NULL: all calls. */
	const struct selection *counts;
	bool no_comm;	/* omit the process's name at the root */
	bool by_thread; /* add the thread's name below it */
	/* As dtrace prints its aggregations: one name a line, innermost first, and the cost below
	 * them. */
	bool is_upright;
};

/*
 * Writes lines "comm;outermost;...;innermost;malloc cost" of @view, which belongs to @profile, to
 * @to and flushes it: equal lines added up, lines of cost 0 omitted, sorted bytewise. Returns 0,
 * -ENOMEM, or the negative errno of the write.
 */
int folded__write(const struct profile *profile, const struct stack_view *view,
		  const struct folded_options *options, FILE *to);

#endif
