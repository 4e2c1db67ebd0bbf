// SPDX-License-Identifier: GPL-3.0-or-later
#include "page_sides.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "completeness_messages.h"
#include "error.h"
#include "message.h"
#include "output_file.h"
#include "runs_text.h"

static int open_side(struct page_sides *sides, struct data_choice *choice, enum diff_side side,
		     enum cost cost, struct error *error)
{
	struct selected *selected = &sides->selected[side];
	struct data_paths paths = choice->paths;
	int err;

	if (side == DIFF_BEFORE)
		choice->paths.input = sides->base;
	err = selected__open(selected, choice, cost, error);
	choice->paths = paths;
	sides->inputs[side] = (struct page_input){
		.profile = selected->profile,
		.view = selected->view,
		.groups = selected->groups,
		.counts = selected->filtered.counts,
	};
	return err;
}

int page_sides__open(struct page_sides *sides, struct data_choice *choice, const char *base,
		     enum cost cost, struct error *error)
{
	int err;

	sides->base = base;
	err = open_side(sides, choice, DIFF_AFTER, cost, error);
	return err || !base ? err : open_side(sides, choice, DIFF_BEFORE, cost, error);
}

/* Pairs the stacks of both recordings. Which stacks there are, and which belong together, does not
 * depend on the cost. */
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

int page_sides__make_trie(struct page_sides *sides, const struct view_choice *view,
			  const struct page_trie_options *options, struct error *error)
{
	int err = sides->base ? pair(sides, view, error) : 0;

	if (err)
		return err;
	err = page_trie__init(&sides->trie, options);
	if (!err && sides->diff)
		err = page_trie__add_diff(&sides->trie, sides->diff, sides->inputs, sides->nodes);
	else if (!err)
		err = page_trie__add_profile(&sides->trie, &sides->inputs[DIFF_AFTER],
					     &sides->nodes[DIFF_AFTER]);
	return err ? error__set(error, err, "cannot make the tree of the stacks: %s",
				strerror(-err))
		   : 0;
}

/* A command that cannot add up runs shows the first. */
static void print_run(const struct profile *profile, const char *name)
{
	char run[RUNS_TEXT_SIZE];

	if (runs_text__taken(profile, run))
		message__print("%s%s%s is shown; --run names another", name ?: "", name ? ": " : "",
			       run);
}

static int report_completeness(const struct page_sides *sides, const struct data_choice *choice)
{
	const char *names[DIFF_SIDES] = { sides->base, sides->base ? choice->paths.input : NULL };
	int status = EXIT_GOOD;

	for (int side = 0; side < DIFF_SIDES; side++) {
		const struct profile *profile = sides->selected[side].profile;
		int lacks;

		if (!profile)
			continue;
		if (!choice->filter.run)
			print_run(profile, names[side]);
		completeness_messages__print_frees(profile, names[side]);
		completeness_messages__print_sampled(profile, names[side]);
		lacks = completeness_messages__print(profile, names[side],
						     data_choice__needs(choice) | sides->needs);
		if (lacks)
			status = lacks;
	}
	return status;
}

int page_sides__write(const struct page_sides *sides, const struct data_choice *choice, int err,
		      int (*write)(FILE *to, const void *context), const void *context,
		      struct error *error)
{
	if (!err && sides->base)
		err = output_file__check_data(choice->paths.output, sides->base, error);
	if (!err)
		err = data_choice__write(choice, write, context, error);
	if (err)
		return output_file__status(err, error);
	filter_choice__report_unmatched(&choice->filter);
	filter_choice__report_exit(&choice->filter);
	return report_completeness(sides, choice);
}

void page_sides__release(struct page_sides *sides)
{
	page_trie__release(&sides->trie);
	diff__free(sides->diff);
	for (int side = 0; side < DIFF_SIDES; side++) {
		free(sides->nodes[side]);
		selected__release(&sides->selected[side]);
	}
}

int page_sides__check(const char *base, const struct data_choice *choice, const char *example,
		      struct error *error)
{
	const struct filter_choice *filter = &choice->filter;

	if (!choice->paths.output && isatty(STDOUT_FILENO))
		return error__set(error, -EINVAL,
				  "a terminal cannot show the picture; name a file with -o, such "
				  "as -o %s",
				  example);
	if (!base)
		return 0;
	if (filter->all_runs)
		return error__set(error, -EINVAL,
				  "one run is compared with one of --base; give --run its number");
	for (size_t i = 0; i < filter->options.n_rules; i++)
		if (filter->options.rules[i].kind == FILTER_STACK)
			return error__set(
				error, -EINVAL,
				"stack numbers differ between files; give --through or --module");
	return 0;
}
