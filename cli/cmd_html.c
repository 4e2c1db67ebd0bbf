// SPDX-License-Identifier: GPL-3.0-or-later
/* `allocprof html`: writes a recording as a page. */
#include <errno.h>

#include "cleanup.h"
#include "command.h"
#include "completeness.h"
#include "error.h"
#include "options.h"
#include "page_sides.h"
#include "profile.h"
#include "report.h"
#include "report_page.h"

enum {
	OPT_BASE = 256,
};

static const struct argp_option html_options[] = {
	DATA_PATHS_INPUT,
	{ "output", 'o', "FILE", 0, "Write to FILE instead of standard output" },
	{ "base", OPT_BASE, "FILE", 0, "Show what changed since the recording FILE" },
	{ "strict", OPT_STRICT, NULL, 0,
	  "Exit with status 1 where calls were lost or stacks end early" },
	VIEW_FRAME_OPTIONS,
	FILTER_OPTIONS,
	{ 0 },
};

struct html_options {
	struct data_choice choice;
	const char *base;
};

static int check_options(const struct html_options *options, struct error *error)
{
	int err = page_sides__check(options->base, &options->choice, "report.html", error);

	if (err)
		return err;
	if (options->choice.filter.all_runs)
		return error__set(error, -EINVAL,
				  "the page is that of one run; give --run its number");
	return filter__check_options(&options->choice.filter.options, COST_BYTES, error);
}

static int parse_html(int key, char *arg, struct options_input *input)
{
	struct html_options *options = input->options;

	switch (key) {
	case OPT_BASE:
		options->base = arg;
		return 0;
	case OPTIONS_END:
		return check_options(options, input->error);
	default:
		return data_choice__parse(&options->choice, key, arg, input->error);
	}
}

struct held {
	struct page_sides sides;
	bool *lifetimes[DIFF_SIDES]; /* the selected ones */
	struct page_recording recordings[DIFF_SIDES];
};

static void release(struct held *held)
{
	for (int side = 0; side < DIFF_SIDES; side++)
		free(held->lifetimes[side]);
	page_sides__release(&held->sides);
}

static void release_choice(struct html_options *options)
{
	data_choice__release(&options->choice);
}

static int choose_lifetimes(struct html_options *options, struct held *held, enum diff_side side,
			    struct error *error)
{
	const struct selected *selected = &held->sides.selected[side];

	if (!filter__has_live(selected->profile))
		return 0;
	return filter__select_lifetimes(selected->profile, selected->groups,
					&options->choice.filter.options, &held->lifetimes[side],
					error);
}

static void describe(const struct html_options *options, struct held *held, enum diff_side side)
{
	held->recordings[side] = (struct page_recording){
		.input = held->sides.inputs[side],
		.filtered = &held->sides.selected[side].filtered,
		.lifetimes = held->lifetimes[side],
		.selects_blocks = filter__selects_blocks(&options->choice.filter.options),
		.nodes = held->sides.nodes[side],
		.name = side == DIFF_AFTER ? options->choice.paths.input : options->base,
	};
}

static int prepare(struct html_options *options, struct held *held, struct error *error)
{
	const struct selected *after = &held->sides.selected[DIFF_AFTER];
	struct view_choice *view = &options->choice.view;
	int err =
		page_sides__open(&held->sides, &options->choice, options->base, COST_BYTES, error);

	if (err)
		return err;
	/* Where all processes ran one program, a row with its name would say nothing. */
	view->by_process =
		report__is_of_many_programs(after->profile, &after->filtered, COST_ALLOCATIONS);
	err = page_sides__make_trie(&held->sides, view,
				    &(struct page_trie_options){ .no_comm = !view->by_process },
				    error);
	for (int side = 0; side < DIFF_SIDES && !err; side++) {
		if (!held->sides.inputs[side].profile)
			continue;
		err = choose_lifetimes(options, held, side, error);
		describe(options, held, side);
	}
	return err;
}

static int write_page(FILE *to, const void *context)
{
	const struct held *held = context;

	return report_page__write(
		&(struct report_page){
			.trie = &held->sides.trie,
			.after = &held->recordings[DIFF_AFTER],
			.before = held->sides.base ? &held->recordings[DIFF_BEFORE] : NULL,
		},
		to);
}

static int run_html(char **argv)
{
	_cleanup_(release) struct held held = {
		.sides.needs = COMPLETENESS_TIMES | COMPLETENESS_HISTOGRAMS,
	};
	_cleanup_(release_choice) struct html_options options = {
		.choice.paths = DATA_PATHS_DEFAULT,
		.choice.filter.is_of_one_run = true,
		.choice.no_pager = true,
		.choice.view.options.with_places = true,
	};
	struct error error = { 0 };
	int status;

	status = options__read(&cmd_html, parse_html, &options, argv);
	if (status != OPTIONS_READ)
		return status;
	return page_sides__write(&held.sides, &options.choice, prepare(&options, &held, &error),
				 write_page, &held, &error);
}

const struct command cmd_html = {
	.name = "html",
	.summary = "Write a recording as a page for a browser",
	.args_doc = DATA_PATHS_ARGS,
	.doc = "Write a recording as a page for a browser: live memory over time, and what was "
	       "alive at a moment or happened in a span.\v"
	       "For example: allocprof html -o report.html",
	.options = html_options,
	.run = run_html,
};
