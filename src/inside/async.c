// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Walks the lists of contexts of Swift's async functions. */
#include "async.h"

#include "code.h"
#include "memory.h"
#include "processor.h"
#include "stack.h"

/* The beginning of a context (swift/ABI/Task.h: struct AsyncContext). */
struct context {
	__u64 parent; /* the caller's; 0: the task begins here */
	__u64 resume; /* the code with which the caller goes on */
};

/* Reads a context. One that a function has, and its callers', are in blocks of the task that runs here. Where a frame may be none, as
 * behind code without a rule, the kernel is asked. */
static bool load(const struct walker *walker, __u64 address, struct context *out)
{
	if (address & 7 || address < LEAST_PAGE)
		return false;
	if (unlikely(walker->end != AP_END_COMPLETE))
		return memory__read(address, out, sizeof(*out));
	return memory__read_kept(address, &out->parent) &&
	       memory__read_kept(address + 8, &out->resume);
}

/* Adds what awaits the function of a step, up to the task's first function. What cannot be read, or is no such list, adds nothing. */
static void add_chain(struct walker *walker, __u32 step)
{
	struct async_stack *stack = walker->async;
	__u64 at, address = walker->steps[step].fp + PROCESSOR_ASYNC_CONTEXT;
	__u32 first = stack->n;

	if (address & 7)
		return;
	if (address >= walker->own.start && address < walker->own.own_end)
		at = stack__word(address);
	else if (!memory__read(address, &at, sizeof(at)))
		return;
	while (at && stack->n < walker->max_depth) {
		struct code_range range;
		struct context context;

		if (!load(walker, at, &context) ||
		    code__find(processor__code_address(context.resume), &range) || !range.module) {
			stack->n = first;
			return;
		}
		stack->frames[stack->n++] = (struct async_frame){
			.offset = processor__code_address(context.resume) + range.bias,
			.module = range.module,
			.step = step,
		};
		at = context.parent;
	}
}

static bool has_async(struct walker *walker)
{
	struct async_stack *made;

	if (likely(walker->async))
		return true;
	made = memory__take_private(sizeof(*made));
	walker->async = made;
	return made;
}

__u64 async__walk(struct walker *walker, __u64 hash)
{
	struct async_stack *stack;

	if (walker->async)
		walker->async->n = 0;
	if (likely(!walker__is_async(walker)) || !has_async(walker))
		return hash;
	stack = walker->async;
	stack->n = 0;
	for (__u32 i = walker->n; i-- > 0 && walker->steps[i].frame.flags & STEP_HAS_ASYNC;)
		/* One that a signal has interrupted may have no frame yet. */
		if (walker->steps[i].frame.flags & STEP_ASYNC &&
		    !(walker->steps[i].frame.flags & AP_FRAME_INTERRUPTED))
			add_chain(walker, i);
	if (!stack->n)
		return hash;
	hash = ap_stack__mix(hash ^ stack->n);
	for (__u32 i = 0; i < stack->n; i++)
		hash = ap_stack__mix(hash ^ stack->frames[i].offset ^
				     (__u64)stack->frames[i].module << 48 ^
				     (__u64)stack->frames[i].step << 32);
	return hash;
}

__u32 async__frames(const struct walker *walker, struct ap_frame *out, __u32 *end)
{
	const struct async_stack *stack = walker->async;
	__u32 n = 0, at = 0, i = walker->n;
	bool is_within = false; /* the frames of step @i are being passed on */

	while ((i > 0 || is_within) && n < walker->max_depth) {
		struct ap_frame frame;

		if (is_within && at < stack->n && stack->frames[at].step == i) {
			frame = (struct ap_frame){
				.module = stack->frames[at].module,
				.flags = AP_FRAME_ASYNC,
				.offset = stack->frames[at].offset,
			};
			at++;
		} else if (is_within) {
			is_within = false;
			continue;
		} else {
			frame = walker->steps[--i].frame;
			is_within = true;
			if (walker->own_module && frame.module == walker->own_module)
				continue;
		}
		if (out) {
			out[n] = frame;
			out[n].flags &= ~STEP_FLAGS;
		}
		n++;
	}
	if (i && out)
		*end = AP_END_MAX_DEPTH;
	return n;
}
