// SPDX-License-Identifier: GPL-3.0-or-later
#include "stack_groups.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "cleanup.h"
#include "profile.h"

#define CHUNK_FRAMES 65536

/* The printed frames of one frame of the profile, innermost first. */
struct expansion {
	__u32 start, n; /* in the builder's list */
};

struct builder {
	struct stack_groups *groups;
	const struct stack_view_options *options;
	struct expansion *expansions; /* by frame id - 1 */
	__u32 *list;
	size_t n_list, list_room;
	__u32 *stack; /* the one under construction */
	size_t stack_room;
};

static bool match_frame(const void *owner, __u32 at, const void *key)
{
	const struct printed_frame *frame = &((const struct stack_groups *)owner)->frames[at - 1];
	const struct printed_frame *wanted = key;

	return frame->module == wanted->module && frame->inlined == wanted->inlined &&
	       !strcmp(frame->text, wanted->text);
}

static int intern(struct stack_groups *groups, const struct printed_frame *wanted, __u32 *index)
{
	__u64 hash = hash_mix(hash_string(groups->seed, wanted->text),
			      wanted->module << 1 | wanted->inlined);
	__u32 at = hash_table__find(&groups->frame_index, hash, match_frame, groups, wanted);
	struct printed_frame frame = *wanted;
	int err;

	if (at) {
		*index = at - 1;
		return 0;
	}
	err = array__reserve(&groups->frames, &groups->frames_room, groups->n_frames + 1,
			     sizeof(frame));
	if (err)
		return err;
	frame.text = strdup(wanted->text);
	if (!frame.text)
		return -ENOMEM;
	groups->frames[groups->n_frames] = frame;
	*index = groups->n_frames++;
	return hash_table__insert(&groups->frame_index, hash, groups->n_frames);
}

int stack_groups__add_frame(struct stack_groups *groups, const char *name, __u32 *frame)
{
	return intern(groups, &(struct printed_frame){ .text = (char *)name }, frame);
}

static int expand_line(struct builder *builder, __u32 module, const struct profile_line *line)
{
	const struct profile *profile = builder->groups->profile;
	_cleanup_(free_ptr) char *text = NULL;
	struct printed_frame frame = {
		.text = profile->functions[line->function - 1].name,
		.module = module,
		.inlined = line->inlined,
	};
	int err;

	if (builder->options->lines && line->file) {
		const char *path = profile->files[line->file - 1].path;
		const char *slash = strrchr(path, '/');

		if (asprintf(&text, "%s (%s:%u)", frame.text, slash ? slash + 1 : path,
			     line->line) < 0) {
			text = NULL;
			return -ENOMEM;
		}
		frame.text = text;
	}
	if (!*frame.text)
		frame.text = (char *)"[unknown]";
	err = array__reserve(&builder->list, &builder->list_room, builder->n_list + 1,
			     sizeof(*builder->list));
	return err ? err : intern(builder->groups, &frame, &builder->list[builder->n_list++]);
}

static int expand_unnamed(struct builder *builder, const struct profile_frame *frame)
{
	_cleanup_(free_ptr) char *name = NULL;
	const struct profile_module *module;
	int err;

	if (frame->module) {
		module = &builder->groups->profile->modules[frame->module - 1];
		if (asprintf(&name, "[%s+0x%llx]", profile_module__basename(module),
			     frame->offset) < 0) {
			name = NULL;
			return -ENOMEM;
		}
	}
	err = array__reserve(&builder->list, &builder->list_room, builder->n_list + 1,
			     sizeof(*builder->list));
	return err ? err
		   : stack_groups__add_frame(builder->groups, name ? name : "[unknown]",
					     &builder->list[builder->n_list++]);
}

static int expand_frames(struct builder *builder)
{
	const struct profile *profile = builder->groups->profile;

	for (size_t i = 0; i < profile->n_frames; i++) {
		const struct profile_frame *frame = &profile->frames[i];
		struct expansion *to = &builder->expansions[i];
		int err = 0;

		to->start = builder->n_list;
		for (__u32 j = 0; j < frame->n_lines && !err; j++)
			err = expand_line(builder, frame->module, &frame->lines[j]);
		if (!frame->n_lines)
			err = expand_unnamed(builder, frame);
		if (err)
			return err;
		to->n = builder->n_list - to->start;
	}
	return 0;
}

/* Writes the printed frames of @stack to builder->stack. */
static int print_stack(struct builder *builder, const struct profile_stack *stack, __u32 *n)
{
	size_t n_frames = 1, at = 0;
	char text[64];
	int err;

	for (__u32 i = 0; i < stack->n_frames; i++)
		n_frames += builder->expansions[stack->frames[i] - 1].n;
	err = array__reserve(&builder->stack, &builder->stack_room, n_frames,
			     sizeof(*builder->stack));
	if (err)
		return err;
	for (__u32 i = 0; i < stack->n_frames; i++) {
		const struct expansion *frames = &builder->expansions[stack->frames[i] - 1];

		memcpy(&builder->stack[at], &builder->list[frames->start],
		       frames->n * sizeof(*builder->stack));
		at += frames->n;
	}
	if (stack->end != AP_END_COMPLETE || !at) {
		snprintf(text, sizeof(text), "[ends early: %s]",
			 profile__stack_end_name(stack->end));
		err = stack_groups__add_frame(builder->groups,
					      stack->end != AP_END_COMPLETE ? text : "[no frames]",
					      &builder->stack[at++]);
	}
	*n = at;
	return err;
}

static bool match_group(const void *owner, __u32 at, const void *key)
{
	const struct stack_group *group = &((const struct stack_groups *)owner)->groups[at - 1];
	const struct stack_group *wanted = key;

	return group->n_frames == wanted->n_frames &&
	       !memcmp(group->frames, wanted->frames, wanted->n_frames * sizeof(*wanted->frames));
}

/* A copy that lives as long as @groups. */
static __u32 *keep_frames(struct stack_groups *groups, const __u32 *frames, __u32 n)
{
	size_t room = n > CHUNK_FRAMES ? n : CHUNK_FRAMES;
	__u32 **chunks, *to;

	if (!groups->n_chunks || groups->chunk_room - groups->chunk_used < n) {
		chunks = reallocarray(groups->chunks, groups->n_chunks + 1, sizeof(*chunks));
		if (!chunks)
			return NULL;
		groups->chunks = chunks;
		chunks[groups->n_chunks] = calloc(room, sizeof(**chunks));
		if (!chunks[groups->n_chunks])
			return NULL;
		groups->n_chunks++;
		groups->chunk_used = 0;
		groups->chunk_room = room;
	}
	to = groups->chunks[groups->n_chunks - 1] + groups->chunk_used;
	groups->chunk_used += n;
	memcpy(to, frames, n * sizeof(*frames));
	return to;
}

static int add_stack(struct builder *builder, const struct profile_stack *stack)
{
	struct stack_groups *groups = builder->groups;
	struct stack_group group = { .id = stack->id };
	__u64 hash;
	__u32 at;
	int err;

	err = print_stack(builder, stack, &group.n_frames);
	if (err)
		return err;
	group.frames = builder->stack;
	hash = hash_bytes(groups->seed, group.frames, group.n_frames * sizeof(*group.frames));
	at = hash_table__find(&groups->group_index, hash, match_group, groups, &group);
	if (!at) {
		err = array__reserve(&groups->groups, &groups->groups_room, groups->n_groups + 1,
				     sizeof(group));
		if (err)
			return err;
		group.frames = keep_frames(groups, group.frames, group.n_frames);
		if (!group.frames)
			return -ENOMEM;
		groups->groups[groups->n_groups] = group;
		at = ++groups->n_groups;
		err = hash_table__insert(&groups->group_index, hash, at);
		if (err)
			return err;
	}
	groups->by_stack[stack->id - 1] = at - 1;
	return 0;
}

static int build(struct builder *builder)
{
	struct stack_groups *groups = builder->groups;
	const struct profile *profile = groups->profile;
	int err;

	groups->by_stack = calloc(profile->n_stacks + 1, sizeof(*groups->by_stack));
	builder->expansions = calloc(profile->n_frames + 1, sizeof(*builder->expansions));
	if (!groups->by_stack || !builder->expansions)
		return -ENOMEM;
	err = expand_frames(builder);
	for (size_t i = 0; i < profile->n_stacks && !err; i++)
		err = add_stack(builder, &profile->stacks[i]);
	return err;
}

struct stack_groups *stack_groups__new(const struct profile *profile,
				       const struct stack_view_options *options)
{
	struct stack_groups *groups = calloc(1, sizeof(*groups));
	struct builder builder = { .groups = groups, .options = options };
	int err;

	if (!groups)
		return NULL;
	groups->profile = profile;
	groups->seed = hash_seed();
	err = build(&builder);
	free(builder.expansions);
	free(builder.list);
	free(builder.stack);
	if (err) {
		stack_groups__free(groups);
		return NULL;
	}
	return groups;
}

void stack_groups__free(struct stack_groups *groups)
{
	if (!groups)
		return;
	for (size_t i = 0; i < groups->n_frames; i++)
		free(groups->frames[i].text);
	free(groups->frames);
	free(groups->groups);
	free(groups->by_stack);
	for (size_t i = 0; i < groups->n_chunks; i++)
		free(groups->chunks[i]);
	free(groups->chunks);
	hash_table__release(&groups->frame_index);
	hash_table__release(&groups->group_index);
	free(groups);
}
