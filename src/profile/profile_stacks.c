// SPDX-License-Identifier: GPL-3.0-or-later
/* Keeps the frames and stacks of a profile, each once. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "hash_table.h"
#include "profile.h"
#include "profile_internal.h"

static bool match_frame(const void *owner, __u32 id, const void *key)
{
	const struct profile_frame *frame = &((const struct profile *)owner)->frames[id - 1];
	const struct profile_frame *wanted = key;

	return frame->module == wanted->module && frame->offset == wanted->offset &&
	       frame->place == wanted->place;
}

static __u64 hash_frame(const struct profile *profile, const struct profile_frame *frame)
{
	return hash_mix(hash_mix(profile->index->seed, (__u64)frame->module << 2 | frame->place),
			frame->offset);
}

static int append_frame(struct profile *profile, struct profile_frame frame, __u32 *id)
{
	struct profile_index *index = profile->index;
	int err;

	frame.id = profile->n_frames + 1;
	err = profile_index__append(&index->frames, hash_frame(profile, &frame), &profile->frames,
				    &index->frames_room, &profile->n_frames, &frame, sizeof(frame));
	if (!err)
		*id = frame.id;
	return err;
}

const struct profile_frame *profile__find_frame(const struct profile *profile, __u32 module,
						__u64 offset, enum profile_place place)
{
	const struct profile_frame frame = {
		.module = module,
		.offset = offset,
		.place = place,
	};
	__u32 found = hash_table__find(&profile->index->frames, hash_frame(profile, &frame),
				       match_frame, profile, &frame);

	return found ? &profile->frames[found - 1] : NULL;
}

int profile__add_frame(struct profile *profile, __u32 module, __u64 offset,
		       enum profile_place place, __u32 *id)
{
	const struct profile_frame frame = {
		.module = module,
		.offset = offset,
		.place = place,
	};
	const struct profile_frame *found;

	if (module > profile->n_modules)
		return -EINVAL;
	found = profile__find_frame(profile, module, offset, place);
	if (!found)
		return append_frame(profile, frame, id);
	*id = found->id;
	return 0;
}

int profile__add_tail_call(struct profile *profile, __u32 module, __u64 offset, __u32 *id)
{
	const struct profile_frame frame = { .module = module,
					     .offset = offset,
					     .tail_call = true };
	const struct profile_frame *found;

	if (!module || module > profile->n_modules)
		return -EINVAL;
	found = profile__find_frame(profile, module, offset, PROFILE_PLACE_CALL);
	if (!found)
		return append_frame(profile, frame, id);
	if (!found->tail_call)
		return -EEXIST;
	*id = found->id;
	return 0;
}

int profile__add_other_frame(struct profile *profile, __u64 address, enum profile_place place,
			     __u32 *id)
{
	const struct profile_frame frame = {
		.id = profile->n_frames + 1,
		.offset = address,
		.place = place,
	};
	int err;

	/* All frames at one address have the same hash, and only the first is found, so only that
	 * one is in the table. */
	if (!profile__find_frame(profile, 0, address, place))
		return append_frame(profile, frame, id);
	err = profile_index__reserve(&profile->frames, &profile->index->frames_room,
				     profile->n_frames, sizeof(frame));
	if (err)
		return err;
	profile->frames[profile->n_frames++] = frame;
	*id = frame.id;
	return 0;
}

int profile__set_frame_lines(struct profile *profile, __u32 frame, const struct profile_line *lines,
			     __u32 n_lines)
{
	struct profile_line *copy = NULL;

	if (!frame || frame > profile->n_frames)
		return -EINVAL;
	for (__u32 i = 0; i < n_lines; i++) {
		if (!lines[i].function || lines[i].function > profile->n_functions ||
		    lines[i].file > profile->n_files || lines[i].inlined != (i + 1 < n_lines))
			return -EINVAL;
	}
	if (n_lines) {
		copy = array__copy(lines, n_lines, sizeof(*copy));
		if (!copy)
			return -ENOMEM;
	}
	free(profile->frames[frame - 1].lines);
	profile->frames[frame - 1].lines = copy;
	profile->frames[frame - 1].n_lines = n_lines;
	return 0;
}

const struct profile_function *profile__frame_function(const struct profile *profile,
						       const struct profile_frame *frame)
{
	if (!frame->n_lines)
		return NULL;
	return &profile->functions[frame->lines[frame->n_lines - 1].function - 1];
}

static bool is_tail_call(const struct profile *profile, __u32 frame)
{
	return profile->frames[frame - 1].tail_call;
}

/* Returns whether two stacks have the same frames, apart from frames of tail calls. */
static bool has_same_frames(const struct profile *profile, const struct profile_stack *a,
			    const struct profile_stack *b)
{
	__u32 i = 0, j = 0;

	for (;;) {
		while (i < a->n_frames && is_tail_call(profile, a->frames[i]))
			i++;
		while (j < b->n_frames && is_tail_call(profile, b->frames[j]))
			j++;
		if (i == a->n_frames || j == b->n_frames)
			return i == a->n_frames && j == b->n_frames;
		if (a->frames[i++] != b->frames[j++])
			return false;
	}
}

static bool match_stack(const void *owner, __u32 id, const void *key)
{
	const struct profile_stack *stack = &((const struct profile *)owner)->stacks[id - 1];
	const struct profile_stack *wanted = key;

	return stack->end == wanted->end && has_same_frames(owner, stack, wanted);
}

static __u64 hash_stack(const struct profile *profile, const __u32 *frames, size_t n_frames,
			enum ap_stack_end end)
{
	__u64 hash = hash_mix(profile->index->seed, end);

	for (size_t i = 0; i < n_frames; i++)
		if (!is_tail_call(profile, frames[i]))
			hash = hash_mix(hash, frames[i]);
	return hash;
}

/* Returns whether @frames can be those of a stack. */
static bool are_frames(const struct profile *profile, const __u32 *frames, size_t n_frames)
{
	if (n_frames > AP_MAX_DEPTH)
		return false;
	for (size_t i = 0; i < n_frames; i++)
		if (!frames[i] || frames[i] > profile->n_frames)
			return false;
	return true;
}

static __u32 *copy_frames(struct profile *profile, const __u32 *frames, size_t n_frames)
{
	__u32 *copy = arena__alloc(&profile->index->stack_frames, n_frames * sizeof(*copy));

	if (copy && n_frames)
		memcpy(copy, frames, n_frames * sizeof(*copy));
	return copy;
}

int profile__add_stack(struct profile *profile, const __u32 *frames, size_t n_frames,
		       enum ap_stack_end end, __u32 *id)
{
	struct profile_index *index = profile->index;
	struct profile_stack stack = { .end = end,
				       .n_frames = n_frames,
				       .frames = (__u32 *)frames };
	__u64 hash;
	__u32 found;

	if (!are_frames(profile, frames, n_frames) || (unsigned int)end >= AP_STACK_ENDS)
		return -EINVAL;
	hash = hash_stack(profile, frames, n_frames, end);
	found = hash_table__find(&index->stacks, hash, match_stack, profile, &stack);
	if (found) {
		*id = found;
		return 0;
	}
	stack.id = profile->n_stacks + 1;
	stack.frames = copy_frames(profile, frames, n_frames);
	if (!stack.frames ||
	    profile_index__append(&index->stacks, hash, &profile->stacks, &index->stacks_room,
				  &profile->n_stacks, &stack, sizeof(stack)))
		return -ENOMEM;
	*id = stack.id;
	return 0;
}

int profile__set_stack_frames(struct profile *profile, __u32 stack, const __u32 *frames,
			      size_t n_frames)
{
	const struct profile_stack wanted = { .n_frames = n_frames, .frames = (__u32 *)frames };
	__u32 *copy;

	if (!stack || stack > profile->n_stacks || !n_frames ||
	    !are_frames(profile, frames, n_frames) ||
	    !has_same_frames(profile, &profile->stacks[stack - 1], &wanted))
		return -EINVAL;
	copy = copy_frames(profile, frames, n_frames);
	if (!copy)
		return -ENOMEM;
	profile->stacks[stack - 1].frames = copy;
	profile->stacks[stack - 1].n_frames = (__u32)n_frames;
	return 0;
}
