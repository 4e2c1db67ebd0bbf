/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Calls by stack. */
#ifndef ALLOCPROF_INSIDE_STACKS_H
#define ALLOCPROF_INSIDE_STACKS_H

#include "process.h"

/* Counts a call of @function, which stands for @weight calls. @frame has the caller's frame pointer and the return address, as at the frame
 * address of the function that was called. */
void stacks__count(struct thread *thread, __u32 function, __u64 size_bytes, __u32 weight,
		   const __u64 *frame);

/* Walks the stack, and returns its hash, which is not 0. */
__u64 stacks__walk(struct thread *thread, const __u64 *frame);

/* Publishes the stack that was walked last; false if there is no room. */
bool stacks__publish(const struct walker *walker, __u64 hash);

#endif
