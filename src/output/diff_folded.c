// SPDX-License-Identifier: GPL-3.0-or-later
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "diff_output.h"
#include "folded_names.h"
#include "profile.h"

/* As in folded.c, lines are compared by ranks of names and built only when printed. */
struct line {
	const struct diff_stack *stack;
	__u64 costs[DIFF_SIDES];
};

struct fold {
	const struct diff *diff;
	/* Each name of the diff twice: followed by ';', and by ' ' as the last of a line. */
	struct folded_names names;
	struct line *lines;
	size_t n_lines;
};

/* The rank of a name, as the last of a line or not. */
static __u32 rank_of(const struct fold *fold, __u32 name, bool is_last)
{
	return fold->names.ranks[2 * (size_t)name + is_last];
}

static char *make_name(size_t index, const void *context)
{
	const struct diff *diff = context;

	return folded_name__new(diff->names[index / 2].function, index % 2 ? ' ' : ';');
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
			fputs_unlocked(
				folded_names__text(&fold->names, rank_at(fold, first->stack, at)),
				to);
		fprintf(to, "%llu %llu\n", costs[DIFF_BEFORE], costs[DIFF_AFTER]);
	}
	if (ferror(to))
		return errno ? -errno : -EIO;
	return fflush(to) ? -errno : 0;
}

int diff_output__folded(const struct diff *diff, FILE *to)
{
	struct fold fold = { .diff = diff };
	int err = folded_names__make(&fold.names, 2 * diff->n_names, make_name, diff);

	if (err)
		goto out;
	fold.lines = calloc(diff->n_entries + 1, sizeof(*fold.lines));
	if (!fold.lines) {
		err = -ENOMEM;
		goto out;
	}
	collect_lines(&fold);
	if (fold.n_lines)
		qsort_r(fold.lines, fold.n_lines, sizeof(*fold.lines), compare_lines, &fold);
	err = print_lines(&fold, to);
out:
	free(fold.lines);
	folded_names__release(&fold.names);
	return err;
}
