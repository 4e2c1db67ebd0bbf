/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A profile as folded stacks, the text that flame graph tools read: allocprof-folded(1). */
#ifndef ALLOCPROF_FOLD_H
#define ALLOCPROF_FOLD_H

#include <stdbool.h>
#include <stdio.h>

#include "selection.h"

struct profile;
struct stack_view;

struct fold_options {
	enum cost cost;
	const struct selection *counts; /* by count id - 1, as filtered; NULL: everything */
	bool no_comm;			/* without the process's name as the root */
	bool by_thread;			/* with the thread's name below it */
};

/*
 * Writes "comm;outermost;...;innermost;malloc cost" lines of @view, which is @profile's, to @to and
 * flushes it: equal lines summed, those that cost 0 left out, sorted bytewise. 0, -ENOMEM, or the
 * negative errno of the write.
 */
int fold__write(const struct profile *profile, const struct stack_view *view,
		const struct fold_options *options, FILE *to);

#endif
