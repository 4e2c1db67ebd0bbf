/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Stacks, unwound by the program's own call frame information and remembered from hit to hit.
 *
 * A step up the stack is a function of (pc, sp, fp), of the file's unwind rules and of two words of
 * stack. So the last stack of a thread is kept with what each step started from and which words it
 * read: where a frame's state is as it was, the step is repeated by reading those words again,
 * without resolving the address or looking up a rule. Nothing is assumed: a caller that changed shows
 * in the words, the next state is another, and the look-ups take over.
 */
#ifndef ALLOCPROF_STACK_BPF_H
#define ALLOCPROF_STACK_BPF_H

#include "gate.bpf.h"
#include "walk.bpf.h"

struct remember {
	struct scratch *scratch;
	__u64 hash;
	__u32 next; /* of the walk's steps, counted down */
	__u32 first;
};

/* Moves the outermost of the new steps behind what is remembered, hashing from the outside in. */
static long remember_step(__u32 index, struct remember *remember)
{
	struct scratch *scratch = remember->scratch;
	struct step *from, *to;

	if (!remember->next || !remember->first)
		return 1;
	remember->next--;
	remember->first--;
	from = &scratch->fresh[depth_index(remember->next)];
	to = &scratch->steps[depth_index(remember->first)];
	*to = *from;
	remember->hash = mix(remember->hash ^ from->frame.offset ^
			     ((__u64)from->frame.module << 48) ^ ((__u64)from->frame.flags << 40));
	to->hash = remember->hash;
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
		.call = 1,
		.cursor = scratch->first,
		.matched = ~0U,
		.end = AP_END_MAX_DEPTH,
		.end_once = 1,
	};
}

/*
 * Walks the stack of the thread that stands at @hit into the scratch, the allocator's caller first:
 * frames, end and hash. The window begins at the stack's top already.
 */
static __always_inline void stack__walk(struct scratch *scratch, struct process *process,
					const struct hit *hit)
{
	struct walk_context context = { .scratch = scratch };
	struct walk *walk = &context.walk;
	struct remember remember = { .scratch = scratch };
	__u64 span;

	walk__begin(walk, scratch, process, hit);
	scratch->left_sp = 0;
	walk->sparing = 1;
	if (hit->return_address)
		bpf_loop(config.max_depth, walk_frame, &context, 0);
	else
		walk->end = AP_END_UNREADABLE;
	/* Not all of it repeated, and what did was not copied. */
	if (walk->again || (walk->matched == 0 && (walk->end_once || walk->end != scratch->end))) {
		walk__begin(walk, scratch, process, hit);
		scratch->left_sp = 0;
		bpf_loop(config.max_depth, walk_frame, &context, 0);
	}
	if (walk->over_fp && walk->end == AP_END_COMPLETE) {
		walk->end = AP_END_FRAME_POINTERS;
		/* The next stack may have the same last frame and no such step. */
		walk->end_once = 1;
	}

	remember.next = walk->n_frames;
	remember.first = AP_MAX_DEPTH;
	remember.hash = mix(walk->end + 1);
	/* The steps further out are in place, with a hash that stands for the same end. */
	if (walk->matched < walk->n_frames && walk->end == scratch->end && !walk->end_once) {
		remember.next = walk->matched;
		remember.first = walk->matched_cursor;
		if (remember.first < AP_MAX_DEPTH)
			remember.hash = scratch->steps[depth_index(remember.first)].hash;
	}
	bpf_loop(AP_MAX_DEPTH, remember_step, &remember, 0);
	scratch->first = remember.first;
	scratch->end = walk->end;
	scratch->end_once = walk->end_once;
	scratch->within = walk->within;
	span = (scratch->left_sp ?: walk->sp) - hit->sp;
	scratch->span_bytes = span < sizeof(scratch->window) ? span : sizeof(scratch->window);
	scratch->record.type = AP_RECORD_STACK;
	scratch->record.n_frames = walk->n_frames;
	scratch->record.process = process->id;
	scratch->record.end = walk->end;
	scratch->record.stack = remember.hash;
}

/* Bytes of stack to copy at first: what the last walk needed, and a little for what is called next. */
static __always_inline __u32 stack__expected_bytes(const struct scratch *scratch)
{
	__u32 bytes = scratch->span_bytes ? scratch->span_bytes + 256 : FIRST_WINDOW_BYTES;

	return (bytes + 63) & ~63U;
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

/* Lays the frames out behind the record, over the window, which the walk has done with. */
static __always_inline void stack__lay_out(struct scratch *scratch)
{
	bpf_loop(AP_MAX_DEPTH, copy_frame, &scratch, 0);
}

#endif
