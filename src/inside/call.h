/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A call of an allocator's function, from its entry on. */
#ifndef ALLOCPROF_INSIDE_CALL_H
#define ALLOCPROF_INSIDE_CALL_H

#include "blocks.h"
#include "code.h"
#include "counting.h"
#include "domains.h"
#include "live.h"
#include "objects.h"
#include "own.h"
#include "process.h"
#include "regions.h"
#include "stack.h"
#include "stubs.h"

/* It is passed by value, so that the fields that are compile-time constants, such as the function,
 * cost nothing. */
struct call {
	enum ap_function function;
	bool overflows; /* count times size overflows; @size is 0 then */
	__u64 size, pointer;
};

/* Records a call. With --live it goes into a record, whose number is returned; else it is counted
 * under its stack, and 0 is returned. */
__u32 call__record(struct thread *current, enum ap_function function, __u64 size_bytes,
		   __u32 weight, const __u64 *frame);

/* Stored in place of a record's number for a call that is not counted because the allocator itself
 * made it, it was made after the measurement, or it is not sampled and ends no block. */
#define MARK_INTERNAL 0xffffffff

/* Stored in place of a record's number for a call outside of the measured window, of which only
 * the block that it ends matters. */
#define MARK_OUTSIDE 0xfffffffe

static const struct live_mark mark_internal = { MARK_INTERNAL, 0 };

/* Called for a call outside of the measured window. */
struct live_mark call__stay_outside(struct thread *thread, struct call call);

/* Counts the call if a function of --within has made it. */
struct live_mark call__enter_within(struct thread *thread, struct call call, const __u64 *frame);

/* Counts a call of a function that is only counted. */
void call__count_only(enum ap_function function, const __u64 *frame);

/* Returns whether one of an allocator's own functions has made the call. @number is the number of
 * the called function. The arguments are in registers: if a struct call had an address, its constants would be
 * in memory also where no allocator has functions of its own. */
bool call__is_of_allocator(struct thread *thread, enum ap_function function, __u64 size,
			   __u64 pointer, const __u64 *frame, __u32 number);

/* Returns whether the call was made beneath one of a domain's functions, which counts. */
bool call__is_beneath(const struct thread *thread, const __u64 *frame);

/* Called with --live when the counted function has returned @block, or NULL. Returns @block.
 * @frame is that of the called function, here and in the next function. */
void *call__returned(struct live_mark mark, void *block, __u64 size, const __u64 *frame);

/* Called with --live when a program calls a function that frees @block. */
void call__freed(struct live_mark mark, __u32 function, void *block, const __u64 *frame);

static inline __attribute__((always_inline)) void call__count(struct ap_site_counts *counts,
							      struct call call)
{
	ap_site_counts__add(counts, call.function, call.size, call.pointer, call.overflows);
}

/* Notes a call that asks for more than any process can have. */
static inline __attribute__((always_inline)) void call__note_impossible(struct thread *thread,
									struct call call)
{
	if (unlikely(ap_call__is_impossible(call.function, call.size, call.overflows)))
		counter__add(&thread->shared->stats[AP_STAT_IMPOSSIBLE], 1);
}

/* Counts the call in the set of regions that the thread has open. */
void call__count_in_regions(struct thread *thread, struct call call, const __u64 *frame);

/* With sampling and --live: returns whether a call that is not counted may end a followed block. */
static inline __attribute__((always_inline)) bool call__may_end(struct thread *thread,
								struct call call)
{
	if (AP_FREEING >> call.function & 1)
		return !call.pointer || blocks__may_have(call.pointer);
	if (AP_REALLOCATING >> call.function & 1 && call.pointer && !call.overflows) {
		if (unlikely(blocks__may_have(call.pointer)) && blocks__has(call.pointer))
			return true;
		/* A call of realloc() with a size of 0 frees, and allocates nothing. */
		if (!call.size)
			return false;
	}
	/* The thread's earlier blocks are no longer temporary. The call is assumed to succeed. */
	thread->sequence++;
	return false;
}

/* Called for a call that is not sampled. */
static inline __attribute__((always_inline)) struct live_mark call__pass(struct thread *thread,
									 struct call call)
{
	counter__add(&thread->shared->stats[AP_STAT_EVENTS], 1);
	counter__add(&thread->shared->stats[AP_STAT_NOT_SAMPLED], 1);
	if (process.mode == INSIDE_LIVE && call__may_end(thread, call))
		return (struct live_mark){ 0, 0 };
	return mark_internal;
}

/* Called for a call whose function is not among the recorded ones: it may still end a block. */
static inline __attribute__((always_inline)) struct live_mark
call__leave_unrecorded(struct call call)
{
	if (AP_FREEING >> call.function & 1 && process.samples && call.pointer &&
	    !blocks__may_have(call.pointer))
		return mark_internal;
	return (struct live_mark){ 0, 1 };
}

/* Counts a call whose function is recorded. */
static inline __attribute__((always_inline)) struct live_mark
call__enter(struct call call, const __u64 *frame, __u32 number)
{
	struct thread *thread = thread__current();
	__u32 weight = 1;

	if (unlikely(!thread))
		return mark_internal;
	if (process.walks) {
		code__check_unloaded(frame[1]);
		if ((AP_FREEING | AP_REALLOCATING) >> call.function & 1 &&
		    unlikely(stack__may_unmap(call.pointer)))
			stack__freed(call.pointer);
	}
	if (unlikely(frame[1] - next_bodies.start <= next_bodies.size) && next__is_body(frame[1])) {
		counter__add(&thread__counts(thread, call.function)->internal, 1);
		return mark_internal;
	}
	if (unlikely(own_functions.n_allocating || domains__any()) &&
	    call__is_of_allocator(thread, call.function, call.size, call.pointer, frame, number)) {
		counter__add(&thread__counts(thread, call.function)->internal, 1);
		return mark_internal;
	}
	if (unlikely(process.header->gate != INSIDE_OPEN))
		return call__stay_outside(thread, call);
	if (unlikely(process.within))
		return call__enter_within(thread, call, frame);
	call__count(thread__counts(thread, call.function), call);
	call__note_impossible(thread, call);
	if (unlikely(thread->regions))
		call__count_in_regions(thread, call, frame);
	if (!(process.recorded >> call.function & 1))
		return call__leave_unrecorded(call);
	if (process.samples) {
		weight = sample__draw(thread, call.size);
		if (likely(!weight))
			return call__pass(thread, call);
	}
	return (struct live_mark){ call__record(thread, call.function, call.size, weight, frame),
				   weight };
}

/* Returns whether the call's result has to be reported. */
static inline bool mark__is_followed(struct live_mark mark)
{
	return unlikely(process.mode == INSIDE_LIVE) && mark.record != MARK_INTERNAL;
}

static inline struct live_mark mark__counted(struct live_mark mark)
{
	return mark.record == MARK_OUTSIDE ? (struct live_mark){ 0, 0 } : mark;
}

/* Claims the thread for a call or, if a signal has interrupted another call of the thread, a
 * stand-in: the caller owns the result until thread__release(). Returns NULL if there is no memory
 * in which the call can be counted. @frame is that of the function that the program has called. */
static inline struct thread *thread__claim(struct thread *thread, struct claim *claim,
					   const __u64 *frame)
{
	__u64 address = claim__sign(claim, frame);

	if (unlikely(thread->claims[0]))
		return thread__stand_in(thread, claim);
	__atomic_store_n(&thread->claims[0], address, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	return thread;
}

static inline void thread__release(struct thread *thread, struct claim *claim)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (unlikely(thread->lent))
		thread__give_back(thread);
	else
		__atomic_store_n(&thread->claims[0], 0, __ATOMIC_RELEASE);
	claim__end(claim);
}

#endif
