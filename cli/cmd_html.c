// SPDX-License-Identifier: GPL-3.0-or-later
/* `allocprof html`: writes a recording as a page. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "completeness.h"
#include "error.h"
#include "event_blocks.h"
#include "findings.h"
#include "moved.h"
#include "message.h"
#include "page.h"
#include "page_blocks.h"
#include "page_source.h"
#include "page_sides.h"
#include "profile.h"
#include "report.h"

enum {
	OPT_BASE = 256,
	OPT_SOURCE,
};

static const struct argp_option html_options[] = {
	DATA_PATHS_INPUT,
	DATA_OPTION_OUTPUT,
	{ "base", OPT_BASE, "FILE", 0, "Show what changed since the recording FILE" },
	{ "source", OPT_SOURCE, NULL, 0,
	  "Put the lines of source around each line of a stack into the page, which is confidential "
	  "then" },
	DATA_OPTION_STRICT,
	VIEW_FRAME_OPTIONS,
	FILTER_OPTIONS,
	{ 0 },
};

struct html_options {
	struct data_run data; /* the first member, since data_command__run() gets a pointer to it */
	struct page_sides sides;
	bool *lifetimes[DIFF_SIDES]; /* by lifetime: whether it is selected */
	struct page_recording recordings[DIFF_SIDES];
	struct report *report; /* what the findings are of */
	struct findings findings;
	struct moved moved[MOVED_COSTS];
	size_t n_moved;
	struct event_blocks blocks;
	bool with_source;
	struct page_source source;
};

static int check_options(const struct html_options *options, struct error *error)
{
	int err = page_sides__check(&options->data, "report.html", error);

	if (err)
		return err;
	if (options->data.choice.filter.all_runs)
		return error__set(error, -EINVAL, "the page shows one run; choose it with --run");
	return filter__check_options(&options->data.choice.filter.options, COST_BYTES, error);
}

static int parse_html(int key, char *arg, struct options_input *input)
{
	struct html_options *options = input->options;

	switch (key) {
	case OPT_BASE:
		options->data.base = arg;
		return 0;
	case OPT_SOURCE:
		options->with_source = true;
		return 0;
	case OPTIONS_END:
		return check_options(options, input->error);
	default:
		return data_choice__parse(&options->data.choice, key, arg, input->error);
	}
}

static void release_html(void *context)
{
	struct html_options *options = context;

	for (int side = 0; side < DIFF_SIDES; side++)
		free(options->lifetimes[side]);
	findings__release(&options->findings);
	report__free(options->report);
	moved__release(options->moved, options->n_moved);
	page_source__release(&options->source);
	event_blocks__release(&options->blocks);
	page_sides__release(&options->sides);
}

static int describe_side(struct html_options *options, enum diff_side side, struct error *error)
{
	const struct selected *selected = &options->data.selected[side];
	const struct filter_options *filter = &options->data.choice.filter.options;
	int err = filter__has_live(selected->profile)
			  ? selected__choose_lifetimes(selected, &options->data.choice,
						       &options->lifetimes[side], error)
			  : 0;

	options->recordings[side] = (struct page_recording){
		.input = options->sides.inputs[side],
		.filtered = &selected->filtered,
		.lifetimes = options->lifetimes[side],
		.selects_blocks = filter__selects_blocks(filter),
		.nodes = options->sides.nodes[side],
		.trie = &options->sides.trie,
		.name = side == DIFF_AFTER ? options->data.choice.paths.input : options->data.base,
	};
	return err;
}

/* Finds what is to be said first, where all of a recording is shown. */
static int find_findings(struct html_options *options, struct error *error)
{
	struct selected *sides = options->data.selected, *after = &sides[DIFF_AFTER];
	struct page_recording *recording = &options->recordings[DIFF_AFTER];
	struct moved_side compared[DIFF_SIDES];
	bool compares = options->data.base && !profile__sample_bytes(after->profile) &&
			!profile__sample_bytes(sides[DIFF_BEFORE].profile);
	int err = -ENOMEM;

	if (!filter__selects_all(&options->data.choice.filter.options))
		return 0;
	options->report = report__new(after->profile, after->groups, &after->filtered,
				      REPORT_BY_STACK, COST_ALLOCATIONS, REPORT_GROWTH);
	if (options->report)
		err = findings__find(options->report, after->filtered.counts,
				     completeness__is_complete(after->profile), &options->findings);
	for (int side = 0; side < DIFF_SIDES && compares; side++)
		compared[side] = (struct moved_side){
			.profile = sides[side].profile,
			.groups = sides[side].groups,
			.counts = sides[side].filtered.counts,
			.peak_bytes = sides[side].filtered.peak_bytes,
		};
	if (!err && compares)
		err = moved__find(&compared[DIFF_BEFORE], &compared[DIFF_AFTER], options->moved,
				  &options->n_moved);
	if (err)
		return error__set(error, err, "cannot make the page: %s", strerror(-err));
	recording->report = options->report;
	recording->findings = &options->findings;
	recording->moved = options->moved;
	recording->n_moved = options->n_moved;
	recording->knows_moved = compares;
	return 0;
}

static int read_source(struct html_options *options, struct error *error)
{
	struct page_recording *recording = &options->recordings[DIFF_AFTER];
	int err = page_source__make(&recording->input, recording->nodes, &options->source);

	if (err)
		return error__set(error, err, "cannot read the lines of source: %s",
				  strerror(-err));
	recording->source = &options->source;
	return 0;
}

/* Reads single blocks of a recording that has an event log. A page without them is better than none. */
static void read_blocks(struct html_options *options)
{
	const struct selected *after = &options->data.selected[DIFF_AFTER];
	struct event_blocks_options wanted = { .most = PAGE_MAX_BLOCKS };
	struct error error = { 0 };

	if (!profile__meta(after->profile, "events_id"))
		return;
	if (data_run__read_blocks(&options->data, &wanted, &options->blocks, &error))
		message__print("the page has no single blocks: %s", error.text);
	else
		options->recordings[DIFF_AFTER].blocks = &options->blocks;
}

static int prepare_html(void *context, struct error *error)
{
	struct html_options *options = context;
	const struct selected *after = &options->data.selected[DIFF_AFTER];
	struct view_choice *view = &options->data.choice.view;
	int err = page_sides__open(&options->sides, &options->data, COST_BYTES, error);

	if (err)
		return err;
	/* If all processes ran one program, rows with its name would say nothing. */
	view->by_process =
		report__is_of_many_programs(after->profile, &after->filtered, COST_ALLOCATIONS);
	err = page_sides__make_trie(&options->sides, view,
				    &(struct page_trie_options){ .no_comm = !view->by_process },
				    error);
	for (int side = 0; side < DIFF_SIDES && !err; side++)
		if (options->sides.inputs[side].profile)
			err = describe_side(options, side, error);
	if (!err)
		read_blocks(options);
	if (!err && options->with_source)
		err = read_source(options, error);
	return err ? err : find_findings(options, error);
}

static int write_html(FILE *to, const void *context)
{
	const struct html_options *options = context;

	return report_page__write(
		&(struct report_page){
			.trie = &options->sides.trie,
			.after = &options->recordings[DIFF_AFTER],
			.before = options->data.base ? &options->recordings[DIFF_BEFORE] : NULL,
		},
		to);
}

static int run_html(char **argv)
{
	static const struct data_command command = {
		.command = &cmd_html,
		.parse = parse_html,
		.prepare = prepare_html,
		.write = write_html,
		.release = release_html,
		.hides_run = true,
	};
	struct html_options options = {
		.data.choice.paths = DATA_PATHS_DEFAULT,
		.data.choice.filter.is_of_one_run = true,
		.data.choice.no_pager = true,
		.data.choice.view.options.with_locations = true,
		.data.needs = COMPLETENESS_TIMES | COMPLETENESS_HISTOGRAMS,
	};

	return data_command__run(&command, &options, argv);
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
