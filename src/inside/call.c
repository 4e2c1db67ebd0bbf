// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "call.h"

#include "blocks.h"
#include "code.h"
#include "interface_abi.h"
#include "stacks.h"
#include "walk.h"

void call__count_in_regions(struct thread *thread, struct call call, const __u64 *frame)
{
	struct inside_region_counts *counts = regions__at_call(thread, frame__entry_sp(frame));

	if (counts)
		call__count(&counts->functions[call.function], call);
}

/* Records a call. With --live it goes into a record, whose number is returned; else it is counted
 * under its stack, and 0 is returned. */
__u32 call__record(struct thread *current, enum ap_function function, __u64 size_bytes,
		   __u32 weight, const __u64 *frame)
{
	struct claim claim;
	struct thread *thread = thread__claim(current, &claim, frame);
	__u32 number = 0;

	if (unlikely(!thread)) {
		counter__add(&current->shared->stats[AP_STAT_EVENTS], 1);
		counter__add(&current->shared->stats[AP_STAT_LOST + AP_LOST_NO_SCRATCH], 1);
		return 0;
	}
	if (process.mode == INSIDE_LIVE)
		number = live__call(thread, function, size_bytes, weight,
				    process.has_stacks ? stacks__walk(thread, frame) : 0);
	else
		stacks__count(thread, function, size_bytes, weight, frame);
	thread__release(thread, &claim);
	return number;
}

static struct live_mark leave_out(struct thread *thread, struct call call)
{
	if (process.samples && process.mode == INSIDE_LIVE && !call__may_end(thread, call))
		return mark_internal;
	return (struct live_mark){ MARK_OUTSIDE, 0 };
}

struct live_mark call__stay_outside(struct thread *thread, struct call call)
{
	return process.header->gate == INSIDE_CLOSED ? leave_out(thread, call) : mark_internal;
}

/* Returns whether a function of --within has made the call, of which nothing is counted yet. */
static bool is_within(struct thread *current, struct call call, const __u64 *frame)
{
	bool is_wanted = process.header->settings.recorded >> call.function & 1;
	__u64 *stats = current->shared->stats;
	struct thread *thread;
	struct claim claim;
	bool is, is_whole;

	/* Stacks of frees are not recorded, so there is nothing to walk for them. */
	if (process.has_stacks && AP_FREEING >> call.function & 1)
		return false;
	thread = thread__claim(current, &claim, frame);
	if (!thread) {
		if (is_wanted && process.has_stacks)
			counter__add(&stats[AP_STAT_EVENTS], 1);
		if (is_wanted)
			counter__add(&stats[AP_STAT_LOST + AP_LOST_NO_SCRATCH], 1);
		return false;
	}
	stacks__walk(thread, frame);
	is = walker__is_within(thread->walker);
	is_whole = thread->walker->end == AP_END_COMPLETE;
	thread__release(thread, &claim);
	if (!is && !is_whole && is_wanted)
		counter__add(&stats[AP_STAT_UNDECIDED], 1);
	return is;
}

/* With --within a call that is not sampled is not counted at all, since its stack is not walked. */
struct live_mark call__enter_within(struct thread *thread, struct call call, const __u64 *frame)
{
	bool is_recorded = process.recorded >> call.function & 1;
	__u32 weight = 1;

	if (is_recorded && process.samples)
		weight = sample__draw(thread, call.size);
	if (!weight || !is_within(thread, call, frame))
		return leave_out(thread, call);
	call__count(thread__counts(thread, call.function), call);
	call__note_impossible(thread, call);
	if (thread->regions)
		call__count_in_regions(thread, call, frame);
	if (!is_recorded)
		return (struct live_mark){ 0, 1 };
	return (struct live_mark){ call__record(thread, call.function, call.size, weight, frame),
				   weight };
}

void call__count_only(enum ap_function function, const __u64 *frame)
{
	struct thread *thread = thread__current();
	struct inside_region_counts *of_set;
	__u32 definition = ap_function__definition(function);

	if (unlikely(!thread || process.header->gate != INSIDE_OPEN ||
		     definition >= AP_MAX_DEFINITIONS))
		return;
	if (unlikely(process.within) &&
	    !is_within(thread, (struct call){ .function = function }, frame))
		return;
	counter__add(&thread->shared->counted[definition], 1);
	of_set =
		unlikely(thread->regions) ? regions__at_call(thread, frame__entry_sp(frame)) : NULL;
	if (of_set)
		counter__add(&of_set->counted[definition], 1);
	if (process.recorded >> function & 1)
		call__record(thread, function, 0, 1, frame);
}

/* How many bytes a function that ends in a jump to another one may round the size down. It may
 * round it up by any number. */
#define JUMP_BYTES_LOST 1

/* How much of a function's frame is searched for its return address. */
#define SAVED_WORDS 128

/* Returns whether the frame of the last counted call, which is above @sp, has its return address.
 * If so much of the stack does not have it, the frame is large. */
static bool is_saved(const struct last_call *last, __u64 sp)
{
	__u64 words[SAVED_WORDS], size = last->sp - sp;

	if (size > sizeof(words))
		size = sizeof(words);
	if (!memory__read(last->sp - size, words, size))
		return true;
	for (__u32 i = 0; i < size / sizeof(words[0]); i++)
		if (processor__code_address(words[i]) == last->return_address)
			return true;
	return size == sizeof(words);
}

/*
 * Returns whether the last counted call is still running: its return address is on the stack until
 * its caller makes another call. If the stack cannot be read, the call is assumed to be running.
 */
static bool is_within_last(const struct last_call *last, const __u64 *frame)
{
	__u64 slot = last->sp - sizeof(slot), return_address;

	if (last->sp <= frame__sp(frame))
		return false;
	if (FRAME_SAVES_LINK)
		return is_saved(last, frame__sp(frame));
	/* If both are in one page of the stack, that page is mapped and can be read directly. */
	if (((__u64)frame ^ slot) < LEAST_PAGE)
		return *(const __u64 *)slot == last->return_address;
	return !memory__read(slot, &return_address, sizeof(return_address)) ||
	       return_address == last->return_address;
}

bool call__is_beneath(const struct thread *thread, const __u64 *frame)
{
	return thread->outermost.sp && is_within_last(&thread->outermost, frame);
}

/* Returns whether one of an allocator's own functions has made the call. @number is the number of
 * the called function. */
bool call__is_of_allocator(struct thread *thread, enum ap_function function, __u64 size,
			   __u64 pointer, const __u64 *frame, __u32 number)
{
	struct last_call *last = &thread->last_call;
	bool is_jump =
		last->sp == frame__sp(frame) && last->return_address == frame[1] &&
		last->function != number && last->pointer == pointer &&
		(AP_FREEING >> function & 1 || (__s64)(last->size_bytes - size) <= JUMP_BYTES_LOST);

	if (domains__any()) {
		if (call__is_beneath(thread, frame))
			return true;
		/* By one word of a program different domains' functions may be called in turn. */
		if (number < OWN_FUNCTIONS &&
		    own_functions.list[number].row->kind == INTERFACE_DOMAIN)
			return false;
		domains__check(frame[1]);
		if (!own_functions.n_allocating)
			return false;
	}
	if (own__is_body(frame[1]) || (own__is_inner(frame[1]) && is_within_last(last, frame)))
		return true;
	/* When a loop calls such a chain of functions again, its first function is called again,
	 * and its number must still be the one in @last. */
	*last = (struct last_call){ frame__sp(frame), frame[1], pointer, size,
				    is_jump ? last->function : number };
	return is_jump;
}

void *call__returned(struct live_mark mark, void *block, __u64 size, const __u64 *frame)
{
	struct claim claim;
	struct thread *current = thread__current(),
		      *thread = current ? thread__claim(current, &claim, frame) : NULL;

	if (!thread) {
		live__lose(current, mark__counted(mark), NULL);
		return block;
	}
	live__return(thread, mark__counted(mark), (__u64)block, size);
	thread__release(thread, &claim);
	return block;
}

void call__freed(struct live_mark mark, __u32 function, void *block, const __u64 *frame)
{
	static const struct live_mark mark_none;
	struct ap_block lost;
	struct claim claim;
	struct thread *current = thread__current(),
		      *thread = current ? thread__claim(current, &claim, frame) : NULL;

	if (!thread) {
		if (block && blocks__take((__u64)block, &lost))
			live__lose(current, mark_none, &lost);
		return;
	}
	live__free(thread, function, (__u64)block, mark.record == MARK_OUTSIDE);
	thread__release(thread, &claim);
}
