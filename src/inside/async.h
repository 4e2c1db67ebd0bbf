/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Finds which functions await an async function of Swift that is in a stack. Such a function is called by a jump, and returns by one:
 * below it on the stack is what runs the task's jobs, and its callers are in a list of contexts, of which its frame has the first.
 * docs/inside.md.
 */
#ifndef ALLOCPROF_INSIDE_ASYNC_H
#define ALLOCPROF_INSIDE_ASYNC_H

#include "abi.h"
#include "walk.h"

/* A function that goes on when what it awaits is done. */
struct async_frame {
	__u64 offset; /* file offset of the code with which it goes on */
	__u32 module;
	__u32 step; /* index of the walker's step of the async function that it awaits */
};

/* The functions that await those of a walker's last stack. A walker has one from when its thread first runs an async function. */
struct async_stack {
	__u32 n;
	__u32 pad;
	struct async_frame frames[AP_MAX_DEPTH]; /* innermost first */
};

/* Finds what awaits the async functions in the walker's last stack, which has @hash. Returns the hash with that. */
__u64 async__walk(struct walker *walker, __u64 hash);

/* Does what walker__frames() does, for a stack of which async__walk() has found such frames. @out is NULL: only counts. If there are more
 * than the walker may have, the outermost are left out, and *@end is set. */
__u32 async__frames(const struct walker *walker, struct ap_frame *out, __u32 *end);

#endif
