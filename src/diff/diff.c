// SPDX-License-Identifier: GPL-3.0-or-later
#include "diff.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "diff_align.h"
#include "diff_internal.h"
#include "diff_pair.h"
#include "error.h"
#include "filter.h"
#include "profile.h"

static const char *const section_names[DIFF_SECTIONS] = {
	[DIFF_ONLY_BEFORE] = "only_in_before",
	[DIFF_ONLY_AFTER] = "only_in_after",
	[DIFF_CHANGED] = "changed",
	[DIFF_PAIRED] = "paired",
	[DIFF_ALIKE] = "alike",
	[DIFF_BELOW_MIN] = "below_min",
};

const char *diff__section_name(enum diff_section section)
{
	return (unsigned int)section < DIFF_SECTIONS ? section_names[section] : "unknown";
}

__s64 diff__difference(const __u64 costs[DIFF_SIDES])
{
	/* No overflow: both are at most PROFILE_MAX. */
	return (__s64)costs[DIFF_AFTER] - (__s64)costs[DIFF_BEFORE];
}

struct diff_cost diff_entry__cost(const struct diff *diff, const struct diff_entry *entry,
				  enum diff_side side)
{
	if (!entry->stacks[side])
		return (struct diff_cost){ 0 };
	return diff->stacks[entry->stacks[side] - 1].costs[side];
}

int diff__compare_stacks(const struct diff *diff, __u32 a, __u32 b)
{
	const struct diff_stack *stack_a = &diff->stacks[a], *stack_b = &diff->stacks[b];
	const __u32 *frames_a = diff_stack__frames(diff, stack_a);
	const __u32 *frames_b = diff_stack__frames(diff, stack_b);

	for (__u32 i = 0; i < stack_a->n_frames && i < stack_b->n_frames; i++) {
		if (frames_a[i] != frames_b[i])
			return frames_a[i] < frames_b[i] ? -1 : 1;
	}
	if (stack_a->n_frames != stack_b->n_frames)
		return stack_a->n_frames < stack_b->n_frames ? -1 : 1;
	return 0;
}

static __u64 magnitude(__s64 difference)
{
	return difference < 0 ? -(__u64)difference : (__u64)difference;
}

/* Unchanged stacks have no difference, so the minimum does not apply to them. */
static enum diff_section section_of(const struct diff *diff, const struct diff_entry *entry)
{
	__u32 before = entry->stacks[DIFF_BEFORE], after = entry->stacks[DIFF_AFTER];

	if (before == after && !entry->difference)
		return DIFF_ALIKE;
	if (magnitude(entry->difference) < diff->options.min)
		return DIFF_BELOW_MIN;
	if (!after)
		return DIFF_ONLY_BEFORE;
	if (!before)
		return DIFF_ONLY_AFTER;
	return before == after ? DIFF_CHANGED : DIFF_PAIRED;
}

bool diff_profile__has_range(const struct diff_profile *profile)
{
	return profile->n_runs > 1 || profile->is_sampled;
}

/* Whether the ranges of both sides' runs overlap. */
static bool is_noise(const struct diff *diff, const struct diff_entry *entry)
{
	struct diff_cost before = diff_entry__cost(diff, entry, DIFF_BEFORE);
	struct diff_cost after = diff_entry__cost(diff, entry, DIFF_AFTER);

	if (!diff_profile__has_range(&diff->profiles[DIFF_BEFORE]) &&
	    !diff_profile__has_range(&diff->profiles[DIFF_AFTER]))
		return false;
	return before.median != after.median && before.min <= after.max && after.min <= before.max;
}

static void add_entry(struct diff *diff, __u32 before, __u32 after, __u16 similarity)
{
	struct diff_entry *entry = &diff->entries[diff->n_entries++];
	__u64 costs[DIFF_SIDES];

	*entry = (struct diff_entry){ .stacks = { before, after }, .similarity = similarity };
	for (int side = 0; side < DIFF_SIDES; side++)
		costs[side] = diff_entry__cost(diff, entry, side).median;
	entry->difference = diff__difference(costs);
	entry->section = section_of(diff, entry);
	entry->is_noise = is_noise(diff, entry);
}

static int compare_entries(const void *left, const void *right, void *context)
{
	const struct diff_entry *a = left, *b = right;
	const struct diff *diff = context;
	__u64 cost_a = diff_entry__cost(diff, a, DIFF_AFTER).median;
	__u64 cost_b = diff_entry__cost(diff, b, DIFF_AFTER).median;
	enum diff_side side_a = a->stacks[DIFF_AFTER] ? DIFF_AFTER : DIFF_BEFORE;
	enum diff_side side_b = b->stacks[DIFF_AFTER] ? DIFF_AFTER : DIFF_BEFORE;

	if (a->section != b->section)
		return a->section < b->section ? -1 : 1;
	if (magnitude(a->difference) != magnitude(b->difference))
		return magnitude(a->difference) > magnitude(b->difference) ? -1 : 1;
	if (cost_a != cost_b)
		return cost_a > cost_b ? -1 : 1;
	return diff__compare_stacks(diff, a->stacks[side_a] - 1, b->stacks[side_b] - 1);
}

static void sum_sections(struct diff *diff)
{
	for (size_t i = 0; i < diff->n_entries; i++) {
		const struct diff_entry *entry = &diff->entries[i];
		struct diff_sum *sum = &diff->sections[entry->section];

		if (!sum->n++)
			sum->first = i;
		for (int side = 0; side < DIFF_SIDES; side++)
			sum->costs[side] = diff__add_up(diff, sum->costs[side],
							diff_entry__cost(diff, entry, side).median);
	}
}

static int make_entries(struct diff *diff)
{
	_cleanup_(free_ptr) bool *is_paired = calloc(diff->n_stacks + 1, sizeof(*is_paired));
	_cleanup_(free_ptr) struct diff_pair *pairs = NULL;
	size_t n_pairs = 0;
	int err = 0;

	diff->entries = calloc(diff->n_stacks + 1, sizeof(*diff->entries));
	if (!is_paired || !diff->entries)
		return -ENOMEM;
	if (!diff->options.no_pairing) {
		diff->aligner = diff_aligner__new(diff);
		err = diff->aligner
			      ? diff_pair__find(diff, &pairs, &n_pairs, &diff->stopped_pairing)
			      : -ENOMEM;
	}
	if (err)
		return err;
	for (size_t i = 0; i < n_pairs; i++) {
		__u32 before = pairs[i].stacks[DIFF_BEFORE], after = pairs[i].stacks[DIFF_AFTER];

		is_paired[before] = is_paired[after] = true;
		add_entry(diff, before + 1, after + 1, pairs[i].similarity);
	}
	for (size_t i = 0; i < diff->n_stacks; i++) {
		const struct diff_stack *stack = &diff->stacks[i];

		if (!is_paired[i])
			add_entry(diff, stack->is_in[DIFF_BEFORE] ? i + 1 : 0,
				  stack->is_in[DIFF_AFTER] ? i + 1 : 0, 1000);
	}
	if (diff->n_entries)
		qsort_r(diff->entries, diff->n_entries, sizeof(*diff->entries), compare_entries,
			diff);
	sum_sections(diff);
	return 0;
}

int diff__new(const struct diff_input inputs[DIFF_SIDES], const struct diff_options *options,
	      struct diff **diff, struct error *error)
{
	struct diff *created;
	int err;

	for (int side = 0; side < DIFF_SIDES; side++) {
		err = filter__check_cost(inputs[side].profile, options->cost, error);
		if (err)
			return err;
	}
	created = calloc(1, sizeof(*created));
	if (created) {
		created->options = *options;
		err = diff__read_stacks(created, inputs);
		if (!err)
			err = make_entries(created);
		if (!err) {
			*diff = created;
			return 0;
		}
	}
	diff__free(created);
	return error__set(error, -ENOMEM, "cannot compare: out of memory");
}

void diff__free(struct diff *diff)
{
	if (!diff)
		return;
	for (size_t i = 0; i < diff->n_names; i++) {
		free(diff->names[i].function);
		free(diff->names[i].module);
	}
	for (int side = 0; side < DIFF_SIDES; side++)
		free(diff->count_stacks[side]);
	free(diff->names);
	free(diff->frames);
	free(diff->stacks);
	free(diff->entries);
	diff_aligner__free(diff->aligner);
	free(diff);
}

static void mark(const struct diff *diff, struct diff_mark *to, __u32 name, bool before, bool after)
{
	*to = (struct diff_mark){ &diff->names[name], { before, after } };
}

/* Merges both stacks' frames; replaced frames come before those that replace them. */
static size_t weave(const struct diff *diff, const __u32 *before, const __u32 *after,
		    const enum diff_edit *edits, size_t n_edits, struct diff_mark *marks)
{
	size_t n = 0, i = 0, j = 0, at = 0;

	while (at < n_edits) {
		size_t from = at, from_j = j;

		if (edits[at] == DIFF_EDIT_SAME && before[i] == after[j]) {
			mark(diff, &marks[n++], before[i], true, true);
			i++;
			j++;
			at++;
			continue;
		}
		for (; at < n_edits && (edits[at] != DIFF_EDIT_SAME || before[i] != after[j]);
		     at++) {
			if (edits[at] != DIFF_EDIT_B_ONLY)
				mark(diff, &marks[n++], before[i++], true, false);
			j += edits[at] != DIFF_EDIT_A_ONLY;
		}
		for (j = from_j; from < at; from++) {
			if (edits[from] != DIFF_EDIT_A_ONLY)
				mark(diff, &marks[n++], after[j++], false, true);
		}
	}
	return n;
}

static int pair_marks(const struct diff *diff, const struct diff_stack *before,
		      const struct diff_stack *after, struct diff_mark *marks, size_t *n_marks)
{
	_cleanup_(free_ptr) enum diff_edit *edits = NULL;
	struct diff_alignment alignment;
	size_t n_edits;

	edits = calloc(before->n_frames + after->n_frames, sizeof(*edits));
	if (!edits)
		return -ENOMEM;
	/* Pairs were aligned before, so this cannot fail. */
	if (!diff_aligner__align(diff->aligner, before - diff->stacks, after - diff->stacks,
				 &alignment, edits, &n_edits))
		return -EINVAL;
	*n_marks = weave(diff, diff_stack__frames(diff, before), diff_stack__frames(diff, after),
			 edits, n_edits, marks);
	return 0;
}

int diff_entry__marks(const struct diff *diff, const struct diff_entry *entry,
		      struct diff_mark **marks, size_t *n_marks)
{
	_cleanup_(free_ptr) struct diff_mark *list = NULL;
	const struct diff_stack *stacks[DIFF_SIDES] = { NULL };
	size_t n = 0;
	int err = 0;

	for (int side = 0; side < DIFF_SIDES; side++) {
		if (entry->stacks[side]) {
			stacks[side] = &diff->stacks[entry->stacks[side] - 1];
			n += stacks[side]->n_frames;
		}
	}
	list = calloc(n + 1, sizeof(*list));
	if (!list)
		return -ENOMEM;
	if (stacks[DIFF_BEFORE] && stacks[DIFF_AFTER] &&
	    stacks[DIFF_BEFORE] != stacks[DIFF_AFTER]) {
		err = pair_marks(diff, stacks[DIFF_BEFORE], stacks[DIFF_AFTER], list, &n);
	} else {
		const struct diff_stack *stack = stacks[!stacks[DIFF_BEFORE]];

		n = stack->n_frames;
		for (size_t i = 0; i < n; i++)
			mark(diff, &list[i], diff_stack__frames(diff, stack)[i],
			     stacks[DIFF_BEFORE], stacks[DIFF_AFTER]);
	}
	if (err)
		return err;
	*marks = list;
	*n_marks = n;
	list = NULL;
	return 0;
}
