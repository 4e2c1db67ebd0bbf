// SPDX-License-Identifier: GPL-3.0-or-later
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "diff_internal.h"
#include "folded_name.h"
#include "profile.h"

/* As in fold.c, lines are compared by ranks of names and built only when printed. */
struct line {
	const struct diff_stack *stack;
	__u64 costs[DIFF_SIDES];
};

struct fold {
	const struct diff *diff;
	/* Each name of the diff twice: followed by ';', and by ' ' as the last of a line. */
	char **names;
	__u32 *order; /* indexes into names, sorted */
	__u32 *ranks; /* by index */
	struct line *lines;
	size_t n_lines;
};

static int compare_names(const void *a, const void *b, void *context)
{
	const struct fold *fold = context;

	return strcmp(fold->names[*(const __u32 *)a], fold->names[*(const __u32 *)b]);
}

/* The rank of a name, as the last of a line or not. */
static __u32 rank_of(const struct fold *fold, __u32 name, bool is_last)
{
	return fold->ranks[2 * (size_t)name + is_last];
}

static int rank_names(struct fold *fold)
{
	const struct diff *diff = fold->diff;
	size_t n = 2 * diff->n_names;
	__u32 rank = 0;

	if (n > UINT32_MAX)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		fold->names[i] = folded_name__new(diff->names[i / 2].function, i % 2 ? ' ' : ';');
		if (!fold->names[i])
			return -ENOMEM;
		fold->order[i] = i;
	}
	qsort_r(fold->order, n, sizeof(*fold->order), compare_names, fold);
	for (size_t i = 0; i < n; i++) {
		if (i && strcmp(fold->names[fold->order[i]], fold->names[fold->order[i - 1]]))
			rank = i;
		fold->ranks[fold->order[i]] = rank;
	}
	return 0;
}

/* The rank of the name at @at, counted from the root. */
static __u32 rank_at(const struct fold *fold, const struct diff_stack *stack, __u32 at)
{
	const __u32 *frames = diff_stack__frames(fold->diff, stack);

	return rank_of(fold, frames[stack->n_frames - 1 - at], at == stack->n_frames - 1);
}

static int compare_lines(const void *left, const void *right, void *context)
{
	const struct line *a = left, *b = right;
	const struct fold *fold = context;

	/* A last name differs from any other, so lines of unequal length differ within the loop. */
	for (__u32 at = 0; at < a->stack->n_frames && at < b->stack->n_frames; at++) {
		__u32 rank_a = rank_at(fold, a->stack, at), rank_b = rank_at(fold, b->stack, at);

		if (rank_a != rank_b)
			return rank_a < rank_b ? -1 : 1;
	}
	return 0;
}

static void collect_lines(struct fold *fold)
{
	const struct diff *diff = fold->diff;

	for (size_t i = 0; i < diff->n_entries; i++) {
		const struct diff_entry *entry = &diff->entries[i];
		__u32 stack = entry->stacks[DIFF_AFTER] ? entry->stacks[DIFF_AFTER]
							: entry->stacks[DIFF_BEFORE];
		struct line line = { .stack = &diff->stacks[stack - 1] };

		for (int side = 0; side < DIFF_SIDES; side++)
			line.costs[side] = diff_entry__cost(diff, entry, side).median;
		if (line.costs[DIFF_BEFORE] || line.costs[DIFF_AFTER])
			fold->lines[fold->n_lines++] = line;
	}
}

static int print_lines(const struct fold *fold, FILE *to)
{
	for (size_t i = 0; i < fold->n_lines && !ferror(to);) {
		const struct line *first = &fold->lines[i];
		__u64 costs[DIFF_SIDES] = { 0 };

		for (; i < fold->n_lines && !compare_lines(first, &fold->lines[i], (void *)fold);
		     i++) {
			for (int side = 0; side < DIFF_SIDES; side++)
				costs[side] =
					profile__add_up(costs[side], fold->lines[i].costs[side]);
		}
		errno = 0;
		for (__u32 at = 0; at < first->stack->n_frames; at++)
			fputs_unlocked(fold->names[fold->order[rank_at(fold, first->stack, at)]],
				       to);
		fprintf(to, "%llu %llu\n", costs[DIFF_BEFORE], costs[DIFF_AFTER]);
	}
	if (ferror(to))
		return errno ? -errno : -EIO;
	return fflush(to) ? -errno : 0;
}

int diff__write_folded(const struct diff *diff, FILE *to)
{
	struct fold fold = { .diff = diff };
	int err = -ENOMEM;

	fold.names = calloc(2 * diff->n_names + 1, sizeof(*fold.names));
	fold.order = calloc(2 * diff->n_names + 1, sizeof(*fold.order));
	fold.ranks = calloc(2 * diff->n_names + 1, sizeof(*fold.ranks));
	fold.lines = calloc(diff->n_entries + 1, sizeof(*fold.lines));
	if (!fold.names || !fold.order || !fold.ranks || !fold.lines)
		goto out;
	err = rank_names(&fold);
	if (err)
		goto out;
	collect_lines(&fold);
	if (fold.n_lines)
		qsort_r(fold.lines, fold.n_lines, sizeof(*fold.lines), compare_lines, &fold);
	err = print_lines(&fold, to);
out:
	for (size_t i = 0; fold.names && i < 2 * diff->n_names; i++)
		free(fold.names[i]);
	free(fold.names);
	free(fold.order);
	free(fold.ranks);
	free(fold.lines);
	return err;
}
