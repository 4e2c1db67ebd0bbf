/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What all formats of an export are made from. */
#ifndef ALLOCPROF_EXPORT_INPUT_H
#define ALLOCPROF_EXPORT_INPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "selection.h"

struct profile;
struct stack_view;

/* The pointers are the caller's. */
struct export_input {
	const struct profile *profile;
	const struct stack_view *view;	/* of @profile; with_places, but for EXPORT_COLLAPSED */
	const struct selection *counts; /* filtered, by count's id - 1 */
	const struct selection *total;	/* the sum of @counts */
	bool selects_blocks;		/* filter__selects_blocks() */
	__u64 end_ns;			/* duration of the recording, or of its longest run */
	enum cost cost;			/* what EXPORT_COLLAPSED counts */
};

#endif
