// SPDX-License-Identifier: GPL-3.0-or-later
#include "stack_groups.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "profile.h"
#include "reasons.h"

#define NO_LABEL UINT32_MAX

/* Labels for incomplete ends, by enum ap_stack_end, which are made on first use. */
typedef __u32 ends_t[AP_STACK_ENDS];

int stack_groups__add_label(struct stack_groups *groups, const char *text, __u32 *label)
{
	struct stack_label added = { 0 };
	int err;

	err = array__reserve(&groups->labels, &groups->labels_room, groups->n_labels + 1,
			     sizeof(added));
	if (err)
		return err;
	added.text = strdup(text);
	if (!added.text)
		return -ENOMEM;
	*label = groups->n_labels;
	groups->labels[groups->n_labels++] = added;
	return 0;
}

static int label_end(struct stack_groups *groups, enum ap_stack_end end, ends_t ends)
{
	char text[64];

	if (ends[end] != NO_LABEL)
		return 0;
	snprintf(text, sizeof(text), "[frames are missing: %s]", reason__stack_end(end)->brief);
	return stack_groups__add_label(groups, end == AP_END_COMPLETE ? "[no frames]" : text,
				       &ends[end]);
}

/* Returns whether the outermost frame was reached: with frame pointers only inner frames may be
 * missing. */
static bool has_outermost(const struct profile_stack *stack)
{
	return stack->end == AP_END_COMPLETE || stack->end == AP_END_FRAME_POINTERS;
}

/* Stores the frames of @stack, and one for the missing outer frames if it is incomplete or empty. */
static int get_frames(struct stack_groups *groups, const struct stack_view *view,
		      const struct profile_stack *stack, ends_t ends, struct stack_group *group)
{
	size_t n;
	const __u32 *frames = stack_view__frames(view, stack->id, &n);
	__u32 *longer;
	int err;

	group->frames = frames;
	group->n_frames = n;
	group->n_seen = n;
	group->end = view->shown_types == STACK_TYPES_ONLY ? AP_END_COMPLETE : stack->end;
	if (view->shown_types == STACK_TYPES_ONLY || (has_outermost(stack) && n))
		return 0;
	err = label_end(groups, stack->end, ends);
	if (!err)
		err = array__reserve(&groups->chunks, &groups->chunks_room, groups->n_chunks + 1,
				     sizeof(*groups->chunks));
	if (err)
		return err;
	longer = calloc(n + 1, sizeof(*longer));
	if (!longer)
		return -ENOMEM;
	memcpy(longer, frames, n * sizeof(*longer));
	longer[n] = ends[stack->end];
	/* The type stays the outermost one. */
	if (view->shown_types == STACK_TYPES_OUTERMOST) {
		longer[n] = frames[n - 1];
		longer[n - 1] = ends[stack->end];
	}
	groups->chunks[groups->n_chunks++] = longer;
	group->frames = longer;
	group->n_frames = n + 1;
	return 0;
}

static bool match_group(const void *owner, __u32 at, const void *key)
{
	const struct stack_group *group = &((const struct stack_groups *)owner)->groups[at - 1];
	const struct stack_group *wanted = key;

	return group->n_frames == wanted->n_frames && group->end == wanted->end &&
	       !memcmp(group->frames, wanted->frames, wanted->n_frames * sizeof(*wanted->frames));
}

static int add_stack(struct stack_groups *groups, const struct stack_view *view,
		     const struct profile_stack *stack, ends_t ends)
{
	struct stack_group group = { .id = stack->id };
	__u64 hash;
	__u32 at;
	int err;

	err = get_frames(groups, view, stack, ends, &group);
	if (err)
		return err;
	hash = hash_bytes(groups->seed, group.frames, group.n_frames * sizeof(*group.frames));
	at = hash_table__find(&groups->index, hash, match_group, groups, &group);
	if (!at) {
		err = array__reserve(&groups->groups, &groups->groups_room, groups->n_groups + 1,
				     sizeof(group));
		if (err)
			return err;
		groups->groups[groups->n_groups] = group;
		at = ++groups->n_groups;
		err = hash_table__insert(&groups->index, hash, at);
		if (err)
			return err;
	}
	groups->by_stack[stack->id - 1] = at - 1;
	return 0;
}

/* A line of a text that has several. */
struct line {
	const char *text;
	size_t size;
};

/* Compares a line. @id is the line's offset in the text @lines, plus 1. */
static bool match_line(const void *lines, __u32 id, const void *key)
{
	const char *text = (const char *)lines + id - 1;
	const struct line *wanted = key;

	return !strncmp(text, wanted->text, wanted->size) &&
	       (text[wanted->size] == '\n' || !text[wanted->size]);
}

/* Adds each distinct line of @lines to @table. */
static int index_lines(const char *lines, __u64 seed, struct hash_table *table)
{
	const char *at = lines;
	int err = 0;

	while (*at && !err) {
		const struct line line = { at, strcspn(at, "\n") };
		__u64 hash = hash_bytes(seed, line.text, line.size);

		if (at - lines >= UINT32_MAX)
			return -ENOMEM;
		if (line.size && !hash_table__find(table, hash, match_line, lines, &line))
			err = hash_table__insert(table, hash, at - lines + 1);
		at += line.size + (at[line.size] == '\n');
	}
	return err;
}

/* Marks the modules that were seen to have no unwind table, since each printed stack is searched
 * for one. */
static int mark_modules(struct stack_groups *groups, const struct profile *profile)
{
	const char *lines = profile__meta(profile, "no_unwind_table") ?: "";
	struct hash_table table = { 0 };
	int err;

	groups->lacks_table = calloc(profile->n_modules + 1, sizeof(*groups->lacks_table));
	err = groups->lacks_table ? index_lines(lines, groups->seed, &table) : -ENOMEM;
	for (size_t i = 0; i < profile->n_modules && !err; i++) {
		const char *path = profile->modules[i].path;
		const struct line line = { path, strlen(path) };

		groups->lacks_table[i] =
			hash_table__find(&table, hash_bytes(groups->seed, line.text, line.size),
					 match_line, lines, &line) != 0;
	}
	hash_table__release(&table);
	return err;
}

static int build(struct stack_groups *groups, const struct profile *profile,
		 const struct stack_view *view)
{
	ends_t ends;
	int err;

	groups->by_stack = calloc(profile->n_stacks + 1, sizeof(*groups->by_stack));
	err = array__reserve(&groups->labels, &groups->labels_room, view->n_labels + 1,
			     sizeof(*groups->labels));
	if (!groups->by_stack || err)
		return -ENOMEM;
	if (view->n_labels)
		memcpy(groups->labels, view->labels, view->n_labels * sizeof(*groups->labels));
	groups->n_labels = groups->n_view_labels = view->n_labels;
	groups->view = view;
	for (int i = 0; i < AP_STACK_ENDS; i++)
		ends[i] = NO_LABEL;
	for (size_t i = 0; i < profile->n_stacks && !err; i++)
		err = add_stack(groups, view, &profile->stacks[i], ends);
	groups->n_end_labels = groups->n_labels - groups->n_view_labels;
	return err;
}

struct stack_groups *stack_groups__new(const struct profile *profile, const struct stack_view *view)
{
	struct stack_groups *groups = calloc(1, sizeof(*groups));

	if (!groups)
		return NULL;
	groups->seed = hash_seed();
	if (build(groups, profile, view) || mark_modules(groups, profile)) {
		stack_groups__free(groups);
		return NULL;
	}
	return groups;
}

const char *stack_groups__without_table(const struct stack_groups *groups,
					const struct stack_group *group,
					const struct profile *profile)
{
	const struct profile_stack *stack = &profile->stacks[group->id - 1];

	for (__u32 i = 0; i < stack->n_frames; i++) {
		const struct profile_frame *frame = &profile->frames[stack->frames[i] - 1];

		if (!frame->module)
			return "[unknown]";
		if (groups->lacks_table[frame->module - 1])
			return profile_module__basename(&profile->modules[frame->module - 1]);
	}
	return NULL;
}

void stack_groups__free(struct stack_groups *groups)
{
	if (!groups)
		return;
	for (size_t i = groups->n_view_labels; i < groups->n_labels; i++)
		free(groups->labels[i].text);
	free(groups->labels);
	free(groups->groups);
	free(groups->by_stack);
	free(groups->lacks_table);
	for (size_t i = 0; i < groups->n_chunks; i++)
		free(groups->chunks[i]);
	free(groups->chunks);
	hash_table__release(&groups->index);
	free(groups);
}
