// SPDX-License-Identifier: GPL-3.0-or-later
/* The stacks of a profile in a trie. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "array.h"
#include "cleanup.h"
#include "page_labels.h"
#include "page_trie.h"
#include "profile.h"
#include "stack_groups.h"

#define NO_FRAME UINT32_MAX

struct stacks {
	struct page_trie *trie;
	const struct page_input *input;
	/* Indexes of frames, by label of the groups, process, thread, function; NO_FRAME until one
	 * is needed. */
	__u32 *labels, *processes, *threads, *functions;
	struct page_frame *frames; /* by label of the view */
	__u32 *path;		   /* the frames of the stack that is added */
	size_t room;
};

static __u32 *new_indexes(size_t n)
{
	__u32 *indexes = malloc((n + 1) * sizeof(*indexes));

	for (size_t i = 0; indexes && i < n; i++)
		indexes[i] = NO_FRAME;
	return indexes;
}

static int add_label(struct stacks *stacks, __u32 at)
{
	const struct stack_label *label = &stacks->input->groups->labels[at];
	const struct page_frame missing = { .name = label->text, .kind = PAGE_KIND_MISSING };
	bool is_frame = at < stacks->input->groups->n_view_labels;

	if (stacks->labels[at] != NO_FRAME)
		return 0;
	return page_frames__add(&stacks->trie->frames, is_frame ? &stacks->frames[at] : &missing,
				&stacks->labels[at]);
}

static int add_name(struct stacks *stacks, const char *name, enum page_kind kind, __u32 *index)
{
	const struct page_frame frame = { .name = *name ? name : "[unknown]", .kind = kind };

	return *index == NO_FRAME ? page_frames__add(&stacks->trie->frames, &frame, index) : 0;
}

/* Makes the frames of @count, and puts them into the path. */
static int fill_path(struct stacks *stacks, const struct profile_count *count, size_t *n)
{
	const struct stack_groups *groups = stacks->input->groups;
	const struct profile *profile = stacks->input->profile;
	const struct stack_group *group = &groups->groups[groups->by_stack[count->stack - 1]];
	__u32 *process = &stacks->processes[count->process - 1];
	__u32 *thread = &stacks->threads[count->thread - 1];
	__u32 *function = &stacks->functions[count->function];
	int err = array__reserve(&stacks->path, &stacks->room, (size_t)group->n_frames + 3,
				 sizeof(*stacks->path));

	*n = 0;
	if (!err && !stacks->trie->options.no_comm) {
		err = add_name(stacks, profile->processes[count->process - 1].comm,
			       PAGE_KIND_PROCESS, process);
		stacks->path[(*n)++] = *process;
	}
	if (!err && stacks->trie->options.by_thread) {
		err = add_name(stacks, profile->threads[count->thread - 1].name, PAGE_KIND_THREAD,
			       thread);
		stacks->path[(*n)++] = *thread;
	}
	for (__u32 i = group->n_frames; i && !err; i--) {
		err = add_label(stacks, group->frames[i - 1]);
		stacks->path[(*n)++] = stacks->labels[group->frames[i - 1]];
	}
	if (!err) {
		err = add_name(stacks, source_names__function(&profile->sources, count->function),
			       PAGE_KIND_ALLOCATOR, function);
		stacks->path[(*n)++] = *function;
	}
	return err;
}

static int add_counts(struct stacks *stacks, __u32 *nodes)
{
	const struct profile *profile = stacks->input->profile;
	int err = 0;

	for (size_t i = 0; i < profile->n_counts && !err; i++) {
		const struct profile_count *count = &profile->counts[i];
		const struct selection *selected = &stacks->input->counts[i];
		size_t n;

		if (profile__function_frees(count->function) ||
		    (!selected->allocations && !selected->size_bytes))
			continue;
		err = fill_path(stacks, count, &n);
		if (!err)
			err = page_trie__add(stacks->trie, stacks->path, n, &nodes[i]);
	}
	return err;
}

int page_trie__add_profile(struct page_trie *trie, const struct page_input *input, __u32 **nodes)
{
	const struct profile *profile = input->profile;
	__u32 *made = calloc(profile->n_counts + 1, sizeof(*made));
	struct stacks stacks = {
		.trie = trie,
		.input = input,
		.labels = new_indexes(input->groups->n_labels),
		.processes = new_indexes(profile->n_processes),
		.threads = new_indexes(profile->n_threads),
		.functions = new_indexes(AP_FUNCTIONS),
		.frames = page_labels__new(profile, input->view),
	};
	int err = -ENOMEM;

	if (made && stacks.labels && stacks.processes && stacks.threads && stacks.functions &&
	    stacks.frames)
		err = add_counts(&stacks, made);
	free(stacks.labels);
	free(stacks.processes);
	free(stacks.threads);
	free(stacks.functions);
	free(stacks.frames);
	free(stacks.path);
	if (err)
		free(made);
	else
		*nodes = made;
	return err;
}
