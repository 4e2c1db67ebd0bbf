/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Blocks from the call that made them to their end, as docs/live.md has it, and the sum of what is live. */
#ifndef ALLOCPROF_INSIDE_LIVE_H
#define ALLOCPROF_INSIDE_LIVE_H

#include "counting.h"
#include "process.h"

/* A thread that takes over the memory of an ended one must not use what that one remembered of its entries. */
void live_memory__forget(struct live_memory *memory);

/* A call between its entry and its return. */
struct live_mark {
	__u32 record; /* number; 0: it does not count */
	__u32 weight; /* calls that it stands for; 1 without sampling */
};

/*
 * All of these are called with a thread that is busy with it.
 *
 * A call with a stack of hash @stack, which was walked last: the number of its record, or 0 if it is lost.
 */
__u32 live__call(struct thread *thread, __u32 function, __u64 size_bytes, __u32 weight,
		 __u64 stack);

/* The call returned a block, or NULL. */
void live__return(struct thread *thread, struct live_mark mark, __u64 address, __u64 size_bytes);

/* @function frees a block. @is_outside of the measured window: it counts only if the block is followed. */
void live__free(struct thread *thread, __u32 function, __u64 address, bool is_outside);

/* A realloc of @address, whose old block is taken out of the table when it is entered. */
struct live_move {
	__u64 address, entry_ns;
	struct ap_block old;
	/* Set by the caller: */
	__u32 function;	 /* enum ap_function */
	bool is_outside; /* of the measured window */

	bool has_old;
};

/* @frees: without a result the old block is freed, too. */
void live__move(struct live_move *move, __u64 address);
void live__moved(struct thread *thread, const struct live_move *move, struct live_mark mark,
		 __u64 result, __u64 size_bytes, bool frees);

/* In place of these, for a call that finds no memory to be counted in. @current is the calling thread, or NULL; @ended the block that
 * the call ends, which is in the table no more, or NULL. */
void live__lose(struct thread *current, struct live_mark mark, const struct ap_block *ended);

/*
 * A thread that is alone keeps its share of what is live for itself, however large it is. Another one begins: it
 * adds @first's share to that of all processes.
 */
void live__join(struct thread *first);

/* Another process may begin, by the calling thread: it adds its share. */
void live__share(void);

/* The process ends, or is about to execute another program: its program says so, and its blocks are in the sums of all
 * processes no more. Not in a child of vfork(2). Also without live. */
void live__leave(enum inside_end how);

/* The process goes on: the program could not be executed. */
void live__stay(void);

/* What is live in all processes, and its peak. */

/* Adds what the thread has kept for itself. */
void live_sum__publish(struct thread *thread);

/* The part of the peak that a thread keeps for itself: 1/4096, and with many threads so little that all of them
 * keep less than 1/128. */
static inline __s64 kept_bytes(const struct inside_live *live)
{
	__u32 n = __atomic_load_n(&live->n_threads, __ATOMIC_RELAXED);
	__s64 mark = __atomic_load_n(&live->mark_bytes, __ATOMIC_RELAXED);

	return mark >> (n > 32 ? 7 + significant_bits(n) : 12);
}

/* Adds to what is live in all processes. A thread keeps its share for itself while nobody could see a new peak,
 * and if others are measured, too, while it is small. */
static inline void live_sum__add(struct thread *thread, __s64 blocks, __s64 size_bytes)
{
	const struct inside_live *live = &process.header->live;
	__s64 now;

	thread->live_blocks += blocks;
	thread->live_bytes += size_bytes;
	now = __atomic_load_n(&live->size_bytes, __ATOMIC_RELAXED) + thread->live_bytes -
	      thread->given_bytes;
	if (unlikely(process.header->settings.max_blocks)) {
		/* entries is exact, and live__leave() takes the process's part out of it. */
	} else if (process__is_alone()) {
		if (now <= (__s64)__atomic_load_n(&live->max_bytes, __ATOMIC_RELAXED))
			return;
	} else {
		__s64 kept = kept_bytes(live);

		if (thread->live_bytes <= kept && thread->live_bytes >= -kept)
			return;
	}
	live_sum__publish(thread);
}

#endif
