/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Stack unwinding by call frame information, with a cache of the thread's last walk.
 *
 * A step up the stack is a function of (pc, sp, fp), the file's unwind rules and two words of
 * stack. The cache has each step's initial state and the addresses of these words. A step that
 * starts from the same state is repeated by reading the words again, without resolving the address
 * or looking up a rule. A caller that changed shows in the words: the next state differs, and the
 * walk continues with look-ups.
 */
#ifndef ALLOCPROF_STACK_BPF_H
#define ALLOCPROF_STACK_BPF_H

#include "fault.bpf.h"
#include "hit.bpf.h"
#include "python.bpf.h"
#include "waits.bpf.h"
#include "walk.bpf.h"

struct caching {
	struct scratch *scratch;
	__u64 hash;
	__u32 next; /* in the walk's steps; counts down */
	__u32 first;
};

/* How often one walk begins again with pages that were read in, and how many pages at a time. Both
 * are small, since the verifier follows each pass and page by itself. */
#define FAULTS_PER_WALK 2
#define PAGES_PER_FAULT 16

/* Moves the outermost of the new steps into the cache, and hashes from the outermost frame
 * inwards. */
static long cache_step(__u32 index, struct caching *caching)
{
	struct scratch *scratch = caching->scratch;
	struct step *from, *to;

	if (!caching->next || !caching->first)
		return 1;
	caching->next--;
	caching->first--;
	from = &scratch->fresh[depth_index(caching->next)];
	to = &scratch->steps[depth_index(caching->first)];
	*to = *from;
	caching->hash =
		ap_stack__mix(caching->hash ^ from->frame.offset ^
			      ((__u64)from->frame.module << 48) ^ ((__u64)from->frame.flags << 40));
	to->hash = caching->hash;
	return 0;
}

static __always_inline void walk__begin(struct walk *walk, const struct scratch *scratch,
					const struct process *process, const struct hit *hit)
{
	*walk = (struct walk){
		.pid = process->pid,
		.pc = hit->return_address,
		.sp = arch__caller_sp(hit->sp),
		.fp = hit->fp,
		.link = hit->in_caller ? arch__link() : 0,
		.call = 1,
		.cursor = scratch->first,
		.matched = ~0U,
		/* A stack that is to have no frames is complete as it is. */
		.end = config.max_depth ? AP_END_MAX_DEPTH : AP_END_COMPLETE,
		.end_once = 1,
		.locked = hit->locked,
	};
}

/* Reads in the page that the last read found absent, and the next ones. Returns false if there is
 * none, or if as many hits as are permitted already hold a scratch for that long. */
static __noinline int fault__take(struct scratch *scratch)
{
	__u32 n = 0;

	if (!config.may_fault)
		return 0;
	if (__sync_fetch_and_add(&waits.n_faulting, 1) < waits.most_faulting)
		while (n < PAGES_PER_FAULT &&
		       !word__read(&scratch->absent_word, scratch->absent + n * 4096, true))
			n++;
	__sync_fetch_and_add(&waits.n_faulting, -1);
	return n != 0;
}

/* Returns how many bytes of stack to copy at first: those that the last walk read, and 256 bytes
 * for deeper calls. */
static __always_inline __u32 stack__expected_bytes(const struct scratch *scratch)
{
	__u32 bytes = scratch->span_bytes ? scratch->span_bytes + 256 : FIRST_WINDOW_BYTES;

	return (bytes + 63) & ~63U;
}

/* Reads as much of the stack as the last walk did, from where calls leave the return address on.
 * @faults: as in word__read(). Returns false if the stack cannot be read. */
static __always_inline bool stack__read(struct scratch *scratch, const struct hit *hit, bool faults)
{
	__u32 bytes = stack__expected_bytes(scratch);

	if (!window__fill(scratch, hit->sp, bytes))
		return true;
	return faults && fault__take(scratch) && !window__fill(scratch, hit->sp, bytes);
}

/* Reads the top of the stack, and the return address of @hit. */
static __always_inline void stack__enter(struct scratch *scratch, struct hit *hit)
{
	bool is_read = stack__read(scratch, hit, true);

	if (ARCH_HAS_LINK)
		hit->return_address = hit__real_return(hit, arch__link(), scratch->trampoline);
	else if (is_read)
		hit->return_address =
			hit__real_return(hit, scratch->window[0], scratch->trampoline);
	else if (!config.sample) /* with sampling hit__is_chosen() has counted it */
		stat__add(AP_STAT_CALLS_UNREAD);
}

/* Finds the frames of @hit's stack. */
static __always_inline void stack__unwind(struct scratch *scratch, struct process *process,
					  const struct hit *hit)
{
	struct walk *walk = &scratch->walk;

	walk__begin(walk, scratch, process, hit);
	scratch->left_sp = 0;
	walk->sparing = 1;
	if (hit->return_address)
		walk__frames(scratch);
	else
		walk->end = AP_END_UNREADABLE;
	/* Not all steps were cached, and the cached ones have not been copied, so the walk is
	 * repeated. */
	if (walk->again || (walk->matched == 0 && (walk->end_once || walk->end != scratch->end))) {
		walk__begin(walk, scratch, process, hit);
		scratch->left_sp = 0;
		walk__frames(scratch);
	}
	if (walk->over_fp && walk->end == AP_END_COMPLETE) {
		walk->end = AP_END_FRAME_POINTERS;
		/* The next stack may have the same last frame without such a step, so the end must
		 * not be reused. */
		walk->end_once = 1;
	}
}

/*
 * Walks the stack of @hit, beginning at the allocator's caller, and stores frames, end and hash in
 * the scratch. The window holds the top of the stack already.
 */
static __always_inline void stack__walk(struct scratch *scratch, struct process *process,
					const struct hit *hit, bool faults)
{
	struct walk *walk = &scratch->walk;
	struct caching caching = { .scratch = scratch };
	__u64 span;

	for (int i = 0;; i++) {
		stack__unwind(scratch, process, hit);
		if (!faults || i == FAULTS_PER_WALK || walk->end != AP_END_UNREADABLE ||
		    !fault__take(scratch))
			break;
	}
	caching.next = walk->n_frames;
	caching.first = AP_MAX_DEPTH;
	caching.hash = ap_stack__mix(walk->end + 1);
	/* The outer steps are cached, with hashes for the same end. */
	if (walk->matched < walk->n_frames && walk->end == scratch->end && !walk->end_once) {
		caching.next = walk->matched;
		caching.first = walk->matched_cursor;
		if (caching.first < AP_MAX_DEPTH)
			caching.hash = scratch->steps[depth_index(caching.first)].hash;
	}
	bpf_loop(AP_MAX_DEPTH, cache_step, &caching, 0);
	scratch->first = caching.first;
	scratch->end = walk->end;
	scratch->end_once = walk->end_once;
	scratch->within = walk->within;
	span = (scratch->left_sp ?: walk->sp) - hit->sp;
	scratch->span_bytes = span < sizeof(scratch->window) ? span : sizeof(scratch->window);
	scratch->record.type = AP_RECORD_STACK;
	scratch->record.n_frames = walk->n_frames;
	scratch->record.process = process->id;
	scratch->record.end = walk->end;
	scratch->record.stack = caching.hash;
	if (scratch->python.module)
		python__walk(scratch);
}

static long copy_frame(__u32 index, struct scratch **scratch_at)
{
	struct scratch *scratch = *scratch_at;
	__u32 from = scratch->first + index;

	if (from >= AP_MAX_DEPTH || index >= AP_MAX_DEPTH)
		return 1;
	scratch->frames[depth_index(index)] = scratch->steps[depth_index(from)].frame;
	return 0;
}

/* Copies the frames behind the record, over the window, which is not needed any more. */
static __always_inline void stack__lay_out(struct scratch *scratch)
{
	bpf_loop(AP_MAX_DEPTH, copy_frame, &scratch, 0);
	if (scratch->python.module)
		python__lay_out(scratch);
}

#endif
