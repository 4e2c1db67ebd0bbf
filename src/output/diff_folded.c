// SPDX-License-Identifier: GPL-3.0-or-later
/* The difference of two profiles as folded stacks. */
#include <errno.h>
#include <stdlib.h>

#include "diff_output.h"
#include "folded_lines.h"
#include "profile.h"

struct diff_fold {
	const struct diff *diff;
	/* Its names: each one of the diff twice, followed by ';', and by ' ' as the last of a line. Its
	 * lines: entries by index. */
	struct folded_lines folded;
};

static char *make_entry_name(size_t index, const void *owner)
{
	const struct diff_fold *fold = owner;

	return folded_name__new(fold->diff->names[index / 2].function, index % 2 ? ' ' : ';');
}

static __u32 entry_rank_at(const void *owner, __u32 line, size_t at)
{
	const struct diff_fold *fold = owner;
	const struct diff *diff = fold->diff;
	const struct diff_entry *entry = &diff->entries[line];
	__u32 number =
		entry->stacks[DIFF_AFTER] ? entry->stacks[DIFF_AFTER] : entry->stacks[DIFF_BEFORE];
	const struct diff_stack *stack = &diff->stacks[number - 1];
	const __u32 *frames = diff_stack__frames(diff, stack);

	if (at >= stack->n_frames)
		return FOLDED_END;
	return fold->folded.names
		.ranks[2 * (size_t)frames[stack->n_frames - 1 - at] + (at + 1 == stack->n_frames)];
}

static void add_entry_costs(const void *owner, __u32 line, __u64 *costs)
{
	const struct diff_fold *fold = owner;

	for (int side = 0; side < DIFF_SIDES; side++)
		costs[side] = profile__add_up(
			costs[side],
			diff_entry__cost(fold->diff, &fold->diff->entries[line], side).median);
}

static void collect_entries(struct diff_fold *fold)
{
	const struct diff *diff = fold->diff;

	for (size_t i = 0; i < diff->n_entries; i++) {
		const struct diff_entry *entry = &diff->entries[i];

		if (diff_entry__cost(diff, entry, DIFF_BEFORE).median ||
		    diff_entry__cost(diff, entry, DIFF_AFTER).median)
			fold->folded.order[fold->folded.n++] = i;
	}
}

int diff_output__folded(const struct diff *diff, FILE *to)
{
	struct diff_fold fold = {
		.diff = diff,
		.folded = { .rank = entry_rank_at,
			    .add = add_entry_costs,
			    .owner = &fold,
			    .n_costs = DIFF_SIDES },
	};
	int err = folded_lines__init(&fold.folded, diff->n_entries, 2 * diff->n_names,
				     make_entry_name);

	if (!err) {
		collect_entries(&fold);
		err = folded_lines__print(&fold.folded, to);
	}
	folded_lines__release(&fold.folded);
	return err;
}
