// SPDX-License-Identifier: GPL-3.0-or-later
/* The stacks of two profiles in a trie. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "array.h"
#include "page_labels.h"
#include "page_trie.h"
#include "profile.h"
#include "stack_view.h"

#define NO_FRAME UINT32_MAX

struct pairs {
	struct page_trie *trie;
	const struct diff *diff;
	struct page_frame *labels; /* of the side that is added, by label of its view */
	__u32 *names;		   /* indexes of frames, by name of the diff; NO_FRAME: none yet */
	__u32 *partners; /* by stack: that of AFTER that the stack of BEFORE is paired with */
	__u32 *nodes;	 /* by stack; 0: none yet */
	__u32 *path;
	size_t room;
};

/* The frame of a name that is no code: the allocator's function, a thread or a process. */
static int add_pair_name(struct pairs *pairs, __u32 name, enum page_kind kind, __u32 *frame)
{
	const struct page_frame added = { .name = pairs->diff->names[name].function, .kind = kind };

	return page_frames__add(&pairs->trie->frames, &added, frame);
}

static int add_pair_label(struct pairs *pairs, __u32 name, __u32 label, __u32 *frame)
{
	struct page_frame added = pairs->labels[label];
	int err;

	*frame = pairs->names[name];
	if (*frame != NO_FRAME)
		return 0;
	added.name = pairs->diff->names[name].function;
	err = page_frames__add(&pairs->trie->frames, &added, frame);
	if (!err)
		pairs->names[name] = *frame;
	return err;
}

/* Fills the path with the frames of @stack, which is that of @count, from the outermost on. */
static int fill_pair_path(struct pairs *pairs, const struct page_input *input,
			  const struct profile_count *count, const struct diff_stack *stack)
{
	const struct diff_options *options = &pairs->diff->options;
	const __u32 *names = diff_stack__frames(pairs->diff, stack), *labels;
	__u32 n_around = options->by_thread + options->by_process, n;
	size_t n_labels;
	int err = array__reserve(&pairs->path, &pairs->room, stack->n_frames, sizeof(*pairs->path));

	labels = stack_view__frames(input->view, count->stack, &n_labels);
	n = stack->n_frames - 1 - n_around;
	for (__u32 i = 0; i < stack->n_frames && !err; i++) {
		__u32 *frame = &pairs->path[stack->n_frames - 1 - i];
		bool is_process = options->by_process && i == stack->n_frames - 1;

		if (!i)
			err = add_pair_name(pairs, names[i], PAGE_KIND_ALLOCATOR, frame);
		else if (i <= n && i <= n_labels)
			err = add_pair_label(pairs, names[i], labels[i - 1], frame);
		else
			err = add_pair_name(pairs, names[i],
					    is_process ? PAGE_KIND_PROCESS : PAGE_KIND_THREAD,
					    frame);
	}
	return err;
}

static int add_count(struct pairs *pairs, const struct page_input *input,
		     const struct profile_count *count, __u32 stack, __u32 *node)
{
	__u32 partner = pairs->partners[stack - 1];
	const struct diff_stack *added = &pairs->diff->stacks[stack - 1];
	int err = 0;

	if (!pairs->nodes[stack - 1] && partner)
		pairs->nodes[stack - 1] = pairs->nodes[partner - 1];
	if (!pairs->nodes[stack - 1]) {
		err = fill_pair_path(pairs, input, count, added);
		if (!err)
			err = page_trie__add(pairs->trie, pairs->path, added->n_frames,
					     &pairs->nodes[stack - 1]);
	}
	if (!err)
		*node = pairs->nodes[stack - 1];
	return err;
}

static int add_side(struct pairs *pairs, enum diff_side side, const struct page_input *input,
		    __u32 **nodes)
{
	const struct profile *profile = input->profile;
	__u32 *made = calloc(profile->n_counts + 1, sizeof(*made));
	int err = 0;

	pairs->labels = page_labels__new(profile, input->view);
	if (!made || !pairs->labels)
		err = -ENOMEM;
	for (size_t i = 0; i < profile->n_counts && !err; i++) {
		__u32 stack = pairs->diff->count_stacks[side][i];

		if (stack)
			err = add_count(pairs, input, &profile->counts[i], stack, &made[i]);
	}
	free(pairs->labels);
	if (err)
		free(made);
	else
		*nodes = made;
	return err;
}

int page_trie__add_diff(struct page_trie *trie, const struct diff *diff,
			const struct page_input inputs[DIFF_SIDES], __u32 *nodes[DIFF_SIDES])
{
	struct pairs pairs = {
		.trie = trie,
		.diff = diff,
		.names = malloc((diff->n_names + 1) * sizeof(*pairs.names)),
		.partners = calloc(diff->n_stacks + 1, sizeof(*pairs.partners)),
		.nodes = calloc(diff->n_stacks + 1, sizeof(*pairs.nodes)),
	};
	__u32 *made[DIFF_SIDES] = { 0 };
	int err = pairs.names && pairs.partners && pairs.nodes ? 0 : -ENOMEM;

	for (size_t i = 0; i < diff->n_names && !err; i++)
		pairs.names[i] = NO_FRAME;
	for (size_t i = 0; i < diff->n_entries && !err; i++) {
		const __u32 *stacks = diff->entries[i].stacks;

		if (stacks[DIFF_BEFORE] && stacks[DIFF_AFTER] != stacks[DIFF_BEFORE])
			pairs.partners[stacks[DIFF_BEFORE] - 1] = stacks[DIFF_AFTER];
	}
	/* The partners of AFTER first. */
	for (int side = DIFF_AFTER; side >= DIFF_BEFORE && !err; side--)
		err = add_side(&pairs, side, &inputs[side], &made[side]);
	free(pairs.names);
	free(pairs.partners);
	free(pairs.nodes);
	free(pairs.path);
	for (int side = 0; side < DIFF_SIDES; side++) {
		if (err)
			free(made[side]);
		else
			nodes[side] = made[side];
	}
	return err;
}
