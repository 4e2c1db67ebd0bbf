// SPDX-License-Identifier: GPL-3.0-or-later
#include "fold.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "filter.h"
#include "folded_name.h"
#include "profile.h"
#include "stack_view.h"

/*
 * Lines are compared as lists of ranks, without building them; a million lines cost 23 MiB. Names
 * contain neither ';' nor ' ', so lines sort by their names, each with its terminating character.
 */
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
	const struct fold_options *options;
	/* By index: the view's labels, then processes, threads, functions; each with its terminator
	 * ';' or ' '. */
	char **names;
	__u32 *order; /* indexes into names, sorted */
	__u32 *ranks; /* by index */
	size_t n_names;
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

static int name_all(struct fold *fold)
{
	const struct profile *profile = fold->profile;
	char **to = fold->names;

	for (size_t i = 0; i < fold->view->n_labels; i++)
		*to++ = label_name(&fold->view->labels[i]);
	for (size_t i = 0; i < profile->n_processes; i++)
		*to++ = folded_name__new(profile->processes[i].comm, ';');
	for (size_t i = 0; i < profile->n_threads; i++)
		*to++ = folded_name__new(profile->threads[i].name, ';');
	for (int i = 0; i < AP_FUNCTIONS; i++)
		*to++ = folded_name__new(source_names__function(&profile->sources, i), ' ');
	for (size_t i = 0; i < fold->n_names; i++) {
		if (!fold->names[i])
			return -ENOMEM;
	}
	return 0;
}

static int compare_names(const void *a, const void *b, void *context)
{
	const struct fold *fold = context;

	return strcmp(fold->names[*(const __u32 *)a], fold->names[*(const __u32 *)b]);
}

/* Equal names get equal ranks. */
static void rank_all(struct fold *fold)
{
	__u32 rank = 0;

	for (size_t i = 0; i < fold->n_names; i++)
		fold->order[i] = i;
	qsort_r(fold->order, fold->n_names, sizeof(*fold->order), compare_names, fold);
	for (size_t i = 0; i < fold->n_names; i++) {
		if (i && strcmp(fold->names[fold->order[i]], fold->names[fold->order[i - 1]]))
			rank = i;
		fold->ranks[fold->order[i]] = rank;
	}
}

static int compare_ranks(__u32 a, __u32 b)
{
	return a < b ? -1 : a > b;
}

/* The rank of name @at of @n frames, counted from the root; after the last it is the leaf's. */
static __u32 rank_at(const struct fold *fold, const struct line *line, const __u32 *frames,
		     size_t n, size_t at)
{
	return at < n ? fold->ranks[frames[n - 1 - at]] : line->leaf;
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
	const struct fold_options *options = fold->options;
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
			.comm = options->no_comm ? 0
						 : fold->ranks[process_name(fold, count->process)],
			.thread = options->by_thread ? fold->ranks[thread_name(fold, count->thread)]
						     : 0,
			.leaf = fold->ranks[function_name(fold, count->function)],
			.stack = count->stack,
			.cost = cost,
		};
	}
}

static void print_name(const struct fold *fold, __u32 rank, FILE *to)
{
	fputs_unlocked(fold->names[fold->order[rank]], to);
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

int fold__write(const struct profile *profile, const struct stack_view *view,
		const struct fold_options *options, FILE *to)
{
	struct fold fold = { .profile = profile, .view = view, .options = options };
	int err = -ENOMEM;

	fold.n_names = function_name(&fold, AP_FUNCTIONS);
	if (fold.n_names > UINT32_MAX)
		return -ENOMEM;
	fold.names = calloc(fold.n_names, sizeof(*fold.names));
	fold.order = calloc(fold.n_names, sizeof(*fold.order));
	fold.ranks = calloc(fold.n_names, sizeof(*fold.ranks));
	fold.lines = calloc(profile->n_counts + 1, sizeof(*fold.lines));
	if (!fold.names || !fold.order || !fold.ranks || !fold.lines)
		goto out;
	err = name_all(&fold);
	if (err)
		goto out;
	rank_all(&fold);
	collect_lines(&fold);
	qsort_r(fold.lines, fold.n_lines, sizeof(*fold.lines), compare_lines, &fold);
	err = print_lines(&fold, to);
out:
	for (size_t i = 0; fold.names && i < fold.n_names; i++)
		free(fold.names[i]);
	free(fold.names);
	free(fold.order);
	free(fold.ranks);
	free(fold.lines);
	return err;
}
