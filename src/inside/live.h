/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Blocks from the call that made them to their end, as docs/live.md has it. */
#ifndef ALLOCPROF_INSIDE_LIVE_H
#define ALLOCPROF_INSIDE_LIVE_H

#include "process.h"

/*
 * All of these are called with a thread that is busy with it.
 *
 * A call with a stack of hash @stack, which was walked last: the number of its record, or 0 if it is lost.
 */
__u32 live__call(struct thread *thread, __u32 function, __u64 size_bytes, __u64 stack);

/* The call returned a block, or NULL. @record is 0 for a call that does not count. */
void live__return(struct thread *thread, __u32 record, __u64 address, __u64 size_bytes);

/* A block is freed. */
void live__free(struct thread *thread, __u64 address);

/* A realloc of @address, whose old block is taken out of the table when it is entered. */
struct live_move {
	__u64 address, entry_ns;
	struct ap_block old;
	bool has_old;
};

void live__move(struct live_move *move, __u64 address);
void live__moved(struct thread *thread, const struct live_move *move, __u32 record, __u64 result,
		 __u64 size_bytes, bool overflows);

/* The process ends, or is about to execute another program: its blocks are in the sums of all processes no more.
 * Not in a child of vfork(2). */
void live__leave(void);

/* It goes on: the program could not be executed. */
void live__stay(void);

#endif
