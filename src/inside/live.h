/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Follows blocks from the call that made them to their end, as docs/live.md describes, and sums
 * what is live. */
#ifndef ALLOCPROF_INSIDE_LIVE_H
#define ALLOCPROF_INSIDE_LIVE_H

#include "counting.h"
#include "process.h"

/* To be called when a thread takes over the memory of an ended one: the entries that the ended
 * thread remembered are not its own. */
void live_memory__forget(struct live_memory *memory);

/* To be called when a program begins, also in a forked child: it begins without blocks and events. */
void live__begin(struct inside_program *program);

/* Mark of a call between its entry and its return. */
struct live_mark {
	__u32 record; /* record's number; 0: the call does not count */
	__u32 weight; /* calls that this one stands for; 1 without sampling */
};

/*
 * The caller of these functions has claimed the thread that it passes.
 *
 * live__call() counts a call whose stack, of hash @stack, was walked last. Returns the record's
 * number, or 0 if the call is lost.
 */
__u32 live__call(struct thread *thread, __u32 function, __u64 size_bytes, __u32 weight,
		 __u64 stack);

/* To be called when the call has returned a block at @address, or NULL. */
void live__return(struct thread *thread, struct live_mark mark, __u64 address, __u64 size_bytes);

/* To be called when @function frees a block. @is_outside: the call is outside of the measured
 * window and counts only if the block is followed. */
void live__free(struct thread *thread, __u32 function, __u64 address, bool is_outside);

/* A call of realloc for @address. Its old block is taken out of the table at the function's entry. */
struct live_move {
	__u64 address, entry_ns;
	struct ap_block old;
	/* Set by the caller of live__move(): */
	__u32 function;	 /* enum ap_function */
	bool is_outside; /* the call is outside of the measured window */

	bool has_old;
};

/* live__move() is to be called at the entry of realloc, live__moved() at its return. @result is
 * the new block, or 0; @frees: if it is 0, the old block was freed, too. */
void live__move(struct live_move *move, __u64 address);
void live__moved(struct thread *thread, const struct live_move *move, struct live_mark mark,
		 __u64 result, __u64 size_bytes, bool frees);

/* To be called in place of the functions above for a call that finds no memory to be counted in.
 * @current is the calling thread, or NULL. @ended is the block that the call ends, which is in the
 * table no more, or NULL. */
void live__lose(struct thread *current, struct live_mark mark, const struct ap_block *ended);

/*
 * To be called when another thread begins. A thread that is the only one keeps its live sums to
 * itself, however large they are; this function adds the sums of the thread @first to those of all
 * processes.
 */
void live__join(struct thread *first);

/* To be called by the calling thread when another process may begin: adds the thread's share to
 * the sums of all processes. */
void live__share(void);

/* To be called when the process ends or is about to execute another program, also without --live:
 * marks its program as ended, and subtracts its blocks from the sums of all processes. Does
 * nothing in a child of vfork(2). */
void live__leave(enum inside_end how);

/* To be called when the program could not be executed: undoes live__leave(). */
void live__stay(void);

/* To be called when the process has another shared memory: drops what is known of stacks and records in
 * the former. */
void live__forget(void);

/* What is live in all processes, and its peak. */

/* Adds the sums that the thread has kept to itself to those of all processes. */
void live_sum__publish(struct thread *thread);

/* Returns how many live bytes a thread may keep to itself: 1/4096 of the peak, or with many
 * threads so little that all of them together keep less than 1/128 of it. */
static inline __s64 kept_bytes(const struct inside_live *live)
{
	__u32 n = __atomic_load_n(&live->n_threads, __ATOMIC_RELAXED);
	__s64 mark = __atomic_load_n(&live->mark_bytes, __ATOMIC_RELAXED);

	return mark >> (n > 32 ? 7 + significant_bits(n) : 12);
}

/* Adds to the thread's live sums. The thread publishes them where a new peak could be seen; it
 * keeps them to itself while it is alone and there can be no new peak, or while they are small. */
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
