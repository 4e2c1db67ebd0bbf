// SPDX-License-Identifier: GPL-3.0-or-later
#include "folded.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "filter.h"
#include "folded_names.h"
#include "profile.h"
#include "stack_view.h"

/* Lines are compared as lists of ranks, without building them; a million lines cost 23 MiB. */
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
	/* The view's labels, then processes, threads, functions. */
	struct folded_names names;
	struct line *lines;
	size_t n_lines;
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

static int compare_ranks(__u32 a, __u32 b)
{
	return a < b ? -1 : a > b;
}

/* The rank of name @at of @n frames, counted from the root; after the last it is the leaf's. */
static __u32 rank_at(const struct fold *fold, const struct line *line, const __u32 *frames,
		     size_t n, size_t at)
{
	return at < n ? fold->names.ranks[frames[n - 1 - at]] : line->leaf;
}

static int compare_stacks(const struct fold *fold, const struct line *a, const struct line *b)
{
	size_t n_a, n_b;
	const __u32 *frames_a = stack_view__frames(fold->view, a->stack, &n_a);
	const __u32 *frames_b = stack_view__frames(fold->view, b->stack, &n_b);
	size_t shorter = n_a < n_b ? n_a : n_b;
	int order = 0;

	/* A leaf differs from any frame by its terminator, so lines of unequal length differ within
	 * the loop. */
	for (size_t at = 0; at <= shorter && !order; at++)
		order = compare_ranks(rank_at(fold, a, frames_a, n_a, at),
				      rank_at(fold, b, frames_b, n_b, at));
	return order;
}

static int compare_lines(const void *left, const void *right, void *context)
{
	const struct line *a = left, *b = right;
	const struct fold *fold = context;
	int order = compare_ranks(a->comm, b->comm);

	if (!order)
		order = compare_ranks(a->thread, b->thread);
	return order ? order : compare_stacks(fold, a, b);
}

static void collect_lines(struct fold *fold)
{
	const struct folded_options *options = fold->options;
	const struct profile *profile = fold->profile;

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
		fold->lines[fold->n_lines++] = (struct line){
			.comm = options->no_comm
					? 0
					: fold->names.ranks[process_name(fold, count->process)],
			.thread = options->by_thread
					  ? fold->names.ranks[thread_name(fold, count->thread)]
					  : 0,
			.leaf = fold->names.ranks[function_name(fold, count->function)],
			.stack = count->stack,
			.cost = cost,
		};
	}
}

static void print_name(const struct fold *fold, __u32 rank, FILE *to)
{
	fputs_unlocked(folded_names__text(&fold->names, rank), to);
}

static void print_line(const struct fold *fold, const struct line *line, __u64 cost, FILE *to)
{
	size_t n;
	const __u32 *frames = stack_view__frames(fold->view, line->stack, &n);

	if (!fold->options->no_comm)
		print_name(fold, line->comm, to);
	if (fold->options->by_thread)
		print_name(fold, line->thread, to);
	for (size_t at = 0; at <= n; at++)
		print_name(fold, rank_at(fold, line, frames, n, at), to);
	fprintf(to, "%llu\n", cost);
}

static int print_lines(const struct fold *fold, FILE *to)
{
	for (size_t i = 0; i < fold->n_lines && !ferror(to);) {
		const struct line *first = &fold->lines[i];
		__u64 cost = 0;

		for (; i < fold->n_lines && !compare_lines(first, &fold->lines[i], (void *)fold);
		     i++) {
			if (__builtin_add_overflow(cost, fold->lines[i].cost, &cost))
				cost = UINT64_MAX;
		}
		errno = 0;
		print_line(fold, first, cost, to);
	}
	if (ferror(to))
		return errno ? -errno : -EIO;
	return fflush(to) ? -errno : 0;
}

int folded__write(const struct profile *profile, const struct stack_view *view,
		  const struct folded_options *options, FILE *to)
{
	struct fold fold = { .profile = profile, .view = view, .options = options };
	int err = folded_names__make(&fold.names, function_name(&fold, AP_FUNCTIONS), make_name,
				     &fold);

	if (err)
		goto out;
	fold.lines = calloc(profile->n_counts + 1, sizeof(*fold.lines));
	if (!fold.lines) {
		err = -ENOMEM;
		goto out;
	}
	collect_lines(&fold);
	qsort_r(fold.lines, fold.n_lines, sizeof(*fold.lines), compare_lines, &fold);
	err = print_lines(&fold, to);
out:
	free(fold.lines);
	folded_names__release(&fold.names);
	return err;
}
