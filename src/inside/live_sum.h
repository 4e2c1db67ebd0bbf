/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What is live in all processes, and its peak. */
#ifndef ALLOCPROF_INSIDE_LIVE_SUM_H
#define ALLOCPROF_INSIDE_LIVE_SUM_H

#include "counting.h"
#include "process.h"

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
