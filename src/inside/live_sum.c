// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "live_sum.h"

#include "blocks.h"
#include "claim.h"
#include "live.h"
#include "own.h"

void live_sum__publish(struct thread *thread)
{
	struct inside_live *live = &process.header->live;
	__u64 mark = __atomic_load_n(&live->mark_bytes, __ATOMIC_RELAXED), most;
	__s64 now;

	thread->live_blocks -= __atomic_exchange_n(&thread->given_blocks, 0, __ATOMIC_ACQUIRE);
	thread->live_bytes -= __atomic_exchange_n(&thread->given_bytes, 0, __ATOMIC_ACQUIRE);
	__atomic_fetch_add(&live->blocks, thread->live_blocks, __ATOMIC_RELAXED);
	now = __atomic_add_fetch(&live->size_bytes, thread->live_bytes, __ATOMIC_RELAXED);
	thread->live_blocks = thread->live_bytes = 0;
	if (now <= 0)
		return;
	most = __atomic_load_n(&live->max_bytes, __ATOMIC_RELAXED);
	if ((__u64)now > most)
		__atomic_compare_exchange_n(&live->max_bytes, &most, now, false, __ATOMIC_RELAXED,
					    __ATOMIC_RELAXED);
	if (ap_peak__is_over(now, mark) &&
	    __atomic_compare_exchange_n(&live->mark_bytes, &mark, now, false, __ATOMIC_RELAXED,
					__ATOMIC_RELAXED))
		__atomic_fetch_add(&live->generation, 1, __ATOMIC_RELAXED);
}

/* What is live now may be the peak, though it has not grown by the 1/128 that begins a generation. */
static void note_peak(struct inside_live *live)
{
	__u64 mark = __atomic_load_n(&live->mark_bytes, __ATOMIC_RELAXED);
	__s64 now = __atomic_load_n(&live->size_bytes, __ATOMIC_RELAXED);

	if (now > 0 && (__u64)now > mark &&
	    __atomic_compare_exchange_n(&live->mark_bytes, &mark, now, false, __ATOMIC_RELAXED,
					__ATOMIC_RELAXED))
		__atomic_fetch_add(&live->generation, 1, __ATOMIC_RELAXED);
}

/* First it notes what it adds: what is live may seem less for a moment, and never more. */
void live__join(struct thread *first)
{
	struct inside_live *live = &process.header->live;
	__s64 blocks, size_bytes;

	if (!first || !process__is_alone())
		return;
	blocks = __atomic_load_n(&first->live_blocks, __ATOMIC_RELAXED);
	size_bytes = __atomic_load_n(&first->live_bytes, __ATOMIC_RELAXED);
	__atomic_fetch_add(&first->given_blocks, blocks, __ATOMIC_RELEASE);
	__atomic_fetch_add(&first->given_bytes, size_bytes, __ATOMIC_RELEASE);
	__atomic_fetch_add(&live->blocks, blocks, __ATOMIC_RELAXED);
	__atomic_fetch_add(&live->size_bytes, size_bytes, __ATOMIC_RELAXED);
}

void live__share(void)
{
	struct thread *thread = self;
	struct claim claim;

	__u64 address = claim__sign(&claim, __builtin_frame_address(0));

	if (process.mode != INSIDE_LIVE || !thread || !*process.alive || !process__is_alone() ||
	    thread__is_claimed(thread, &claim))
		return;
	__atomic_store_n(&thread->claims[0], address, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	process__is_joined();
	live_sum__publish(thread);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	__atomic_store_n(&thread->claims[0], 0, __ATOMIC_RELEASE);
	claim__end(&claim);
}

/* What live__leave() took out. */
static __s64 left_bytes, left_blocks, left_entries;

void live__leave(enum inside_end how)
{
	struct inside_image *image = process__image();
	struct inside_live *live;
	struct claim claim;

	claim__sign(&claim, __builtin_frame_address(0));
	/* exit(3) comes here by a destructor and by _exit(2). */
	if (!process__is_itself() || image->ended != INSIDE_RUNS)
		return;
	live = &process.header->live;
	if (how == INSIDE_EXITED)
		own__end();
	if (process.mode == INSIDE_LIVE) {
		if (self && !thread__is_claimed(self, &claim))
			live_sum__publish(self);
		note_peak(live);
	}
	image->end_generation = __atomic_load_n(&live->generation, __ATOMIC_RELAXED);
	image->end_ns = sys__now_ns();
	__atomic_store_n(&image->ended, how, __ATOMIC_RELEASE);
	if (process.mode != INSIDE_LIVE)
		return;
	process__sum_published(&left_blocks, &left_bytes);
	/* With sampling a block stands for many. */
	left_entries = blocks__count();
	__atomic_fetch_sub(&live->size_bytes, left_bytes, __ATOMIC_RELAXED);
	__atomic_fetch_sub(&live->blocks, left_blocks, __ATOMIC_RELAXED);
	__atomic_fetch_sub(&live->entries, left_entries, __ATOMIC_RELAXED);
}

void live__stay(void)
{
	struct inside_live *live;

	if (!process__is_itself())
		return;
	live = &process.header->live;
	process__image()->ended = INSIDE_RUNS;
	if (process.mode != INSIDE_LIVE)
		return;
	__atomic_fetch_add(&live->size_bytes, left_bytes, __ATOMIC_RELAXED);
	__atomic_fetch_add(&live->blocks, left_blocks, __ATOMIC_RELAXED);
	__atomic_fetch_add(&live->entries, left_entries, __ATOMIC_RELAXED);
	left_bytes = left_blocks = left_entries = 0;
}

__attribute__((destructor)) static void end(void)
{
	live__leave(INSIDE_EXITED);
}
