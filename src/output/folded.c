// SPDX-License-Identifier: GPL-3.0-or-later
#include "folded.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "cleanup.h"
#include "filter.h"
#include "folded_lines.h"
#include "profile.h"
#include "stack_view.h"

struct line {
	__u32 comm; /* ranks */
	__u32 thread;
	__u32 leaf;
	__u32 stack; /* id */
	__u64 cost;
};

struct fold {
	const struct profile *profile;
	const struct stack_view *view;
	const struct folded_options *options;
	struct folded_lines
		folded; /* its names: the view's labels, then processes, threads, functions */
	struct line *lines;
};

static size_t process_name(const struct fold *fold, __u32 process)
{
	return fold->view->n_labels + process - 1;
}

static size_t thread_name(const struct fold *fold, __u32 thread)
{
	return process_name(fold, fold->profile->n_processes + 1) + thread - 1;
}

static size_t function_name(const struct fold *fold, enum ap_function function)
{
	return thread_name(fold, fold->profile->n_threads + 1) + function;
}

/* stackcollapse-perf.pl appends "_[i]" to inlined functions; flamegraph.pl recognizes it. */
static char *label_name(const struct stack_label *label)
{
	_cleanup_(free_ptr) char *marked = NULL;

	if (!label->inlined)
		return folded_name__new(label->text, ';');
	if (asprintf(&marked, "%s_[i]", label->text) < 0) {
		marked = NULL;
		return NULL;
	}
	return folded_name__new(marked, ';');
}

/* The name @index, with its terminator ';', or ' ' after the innermost. */
static char *make_name(size_t index, const void *context)
{
	const struct fold *fold = context;
	const struct profile *profile = fold->profile;

	if (index < fold->view->n_labels)
		return label_name(&fold->view->labels[index]);
	index -= fold->view->n_labels;
	if (index < profile->n_processes)
		return folded_name__new(profile->processes[index].comm, ';');
	index -= profile->n_processes;
	if (index < profile->n_threads)
		return folded_name__new(profile->threads[index].name, ';');
	index -= profile->n_threads;
	return folded_name__new(source_names__function(&profile->sources, index), ' ');
}

static __u32 rank_at(const void *owner, __u32 number, size_t at)
{
	const struct fold *fold = owner;
	const struct line *line = &fold->lines[number];
	const __u32 *frames;
	size_t n;

	if (!fold->options->no_comm && !at--)
		return line->comm;
	if (fold->options->by_thread && !at--)
		return line->thread;
	frames = stack_view__frames(fold->view, line->stack, &n);
	if (at < n)
		return fold->folded.names.ranks[frames[n - 1 - at]];
	return at == n ? line->leaf : FOLDED_END;
}

static void add_cost(const void *owner, __u32 number, __u64 *costs)
{
	const struct fold *fold = owner;

	if (__builtin_add_overflow(*costs, fold->lines[number].cost, costs))
		*costs = UINT64_MAX;
}

static void collect_lines(struct fold *fold)
{
	const struct folded_options *options = fold->options;
	const struct profile *profile = fold->profile;
	const __u32 *ranks = fold->folded.names.ranks;

	for (size_t i = 0; i < profile->n_counts; i++) {
		const struct profile_count *count = &profile->counts[i];
		struct selection selection;
		__u64 cost;

		if (options->counts)
			selection = options->counts[i];
		else
			filter__whole(profile, NULL, count, &selection);
		cost = cost__of(options->cost, &selection);

		if (profile__function_frees(count->function) || !cost)
			continue;
		fold->folded.order[fold->folded.n] = fold->folded.n;
		fold->lines[fold->folded.n++] = (struct line){
			.comm = ranks[process_name(fold, count->process)],
			.thread = ranks[thread_name(fold, count->thread)],
			.leaf = ranks[function_name(fold, count->function)],
			.stack = count->stack,
			.cost = cost,
		};
	}
}

int folded__write(const struct profile *profile, const struct stack_view *view,
		  const struct folded_options *options, FILE *to)
{
	struct fold fold = {
		.profile = profile,
		.view = view,
		.options = options,
		.folded = { .rank = rank_at, .add = add_cost, .owner = &fold, .n_costs = 1 },
	};
	int err = folded_lines__init(&fold.folded, profile->n_counts,
				     function_name(&fold, AP_FUNCTIONS), make_name);

	fold.lines = calloc(profile->n_counts + 1, sizeof(*fold.lines));
	if (!fold.lines)
		err = -ENOMEM;
	if (!err) {
		collect_lines(&fold);
		err = folded_lines__print(&fold.folded, to);
	}
	free(fold.lines);
	folded_lines__release(&fold.folded);
	return err;
}
