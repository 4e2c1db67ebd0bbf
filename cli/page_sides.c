// SPDX-License-Identifier: GPL-3.0-or-later
#include "page_sides.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "error.h"

static int open_side(struct page_sides *sides, struct data_run *run, enum diff_side side,
		     enum cost cost, struct error *error)
{
	struct selected *selected = &run->selected[side];
	const char *input = run->choice.paths.input;
	int err;

	if (side == DIFF_BEFORE)
		run->choice.paths.input = run->base;
	err = selected__open(selected, &run->choice, cost, error);
	run->choice.paths.input = input;
	sides->inputs[side] = (struct page_input){
		.profile = selected->profile,
		.view = selected->view,
		.groups = selected->groups,
		.counts = selected->filtered.counts,
	};
	return err;
}

int page_sides__open(struct page_sides *sides, struct data_run *run, enum cost cost,
		     struct error *error)
{
	int err = open_side(sides, run, DIFF_AFTER, cost, error);

	return err || !run->base ? err : open_side(sides, run, DIFF_BEFORE, cost, error);
}

/* Pairs the stacks of both recordings by the cost COST_ALLOCATIONS: for any cost there are the
 * same stacks, and the same ones belong together. */
static int pair(struct page_sides *sides, const struct view_choice *view, struct error *error)
{
	const struct diff_options pairing = {
		.cost = COST_ALLOCATIONS,
		.by_process = view->by_process,
		.by_thread = view->by_thread,
	};
	struct diff_input inputs[DIFF_SIDES];

	for (int side = 0; side < DIFF_SIDES; side++)
		inputs[side] = (struct diff_input){
			.profile = sides->inputs[side].profile,
			.view = sides->inputs[side].view,
			.counts = sides->inputs[side].counts,
		};
	return diff__new(inputs, &pairing, &sides->diff, error);
}

static int fail_to_make(int err, struct error *error)
{
	return error__set(error, err, "cannot make the tree of the stacks: %s", strerror(-err));
}

int page_sides__make_trie(struct page_sides *sides, const struct view_choice *view,
			  const struct page_trie_options *options, struct error *error)
{
	int err = sides->inputs[DIFF_BEFORE].profile ? pair(sides, view, error) : 0;

	if (err)
		return err;
	err = page_trie__init(&sides->trie, options);
	if (!err && sides->diff)
		err = page_trie__add_diff(&sides->trie, sides->diff, sides->inputs, sides->nodes);
	else if (!err)
		err = page_trie__add_profile(&sides->trie, &sides->inputs[DIFF_AFTER],
					     &sides->nodes[DIFF_AFTER]);
	return err ? fail_to_make(err, error) : 0;
}

int page_sides__make_chart(struct page_sides *sides, const struct page_trie_options *options,
			   const struct event_chart *calls, struct page_chart *out,
			   struct error *error)
{
	int err = page_trie__init(&sides->trie, options);

	if (!err)
		err = page_trie__add_chart(&sides->trie, &sides->inputs[DIFF_AFTER], calls, out);
	return err ? fail_to_make(err, error) : 0;
}

void page_sides__release(struct page_sides *sides)
{
	page_trie__release(&sides->trie);
	diff__free(sides->diff);
	for (int side = 0; side < DIFF_SIDES; side++)
		free(sides->nodes[side]);
}

int page_sides__check(const struct data_run *run, const char *example, struct error *error)
{
	const struct filter_choice *filter = &run->choice.filter;

	if (!run->choice.paths.output && isatty(STDOUT_FILENO))
		return error__set(error, -EINVAL,
				  "a terminal cannot show the picture; name a file with -o, such "
				  "as -o %s",
				  example);
	if (!run->base)
		return 0;
	if (filter->all_runs)
		return error__set(error, -EINVAL,
				  "one run is compared with one of --base; choose it with --run");
	if (filter__names_stacks(&filter->options))
		return error__set(error, -EINVAL,
				  "stack numbers differ between files; give --through or --module");
	return 0;
}
