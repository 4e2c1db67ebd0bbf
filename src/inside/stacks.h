/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Counts calls by stack. */
#ifndef ALLOCPROF_INSIDE_STACKS_H
#define ALLOCPROF_INSIDE_STACKS_H

#include "process.h"

/* Counts a call of @function, which stands for @weight calls. @frame points to the caller's frame
 * pointer and the return address, like the frame address of the called function. */
void stacks__count(struct thread *thread, __u32 function, __u64 size_bytes, __u32 weight,
		   const __u64 *frame);

/* Walks the stack of the caller and returns its hash, which is not 0. */
__u64 stacks__walk(struct thread *thread, const __u64 *frame);

/* Publishes the stack that @walker has walked last. Returns the offset of its struct
 * ap_stack_record, or 0 if there is no room. */
__u64 stacks__publish(const struct walker *walker, __u64 hash);

/* To be called when the process has another shared memory. */
void stacks__forget(void);

#endif
