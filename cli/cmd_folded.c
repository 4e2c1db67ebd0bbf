// SPDX-License-Identifier: GPL-3.0-or-later
/* `allocprof folded`: prints a recording's stacks for flamegraph.pl. */
#include <errno.h>

#include "cleanup.h"
#include "command.h"
#include "completeness_messages.h"
#include "data_command.h"
#include "data_options.h"
#include "error.h"
#include "folded.h"
#include "message.h"
#include "options.h"
#include "output_file.h"
#include "profile_runs.h"

enum {
	OPT_ADDRESSES = 256,
	OPT_COST,
	OPT_NO_COMM,
};

static const struct argp_option folded_options[] = {
	DATA_PATHS_INPUT,
	{ "output", 'o', "FILE", 0, "Write to FILE instead of standard output" },
	{ "cost", OPT_COST, "KEY", 0,
	  "Print after each stack its allocations (default), bytes, live, live-bytes, temporary or "
	  "peak" },
	{ "addresses", OPT_ADDRESSES, NULL, 0, "Print module+0xoffset in place of names" },
	{ "no-comm", OPT_NO_COMM, NULL, 0, "Leave out the name of the process at the root" },
	{ "strict", OPT_STRICT, NULL, 0,
	  "Exit with status 1 where calls were lost or stacks end early" },
	DATA_OPTION_NO_PAGER,
	VIEW_OPTIONS("process"),
	FILTER_OPTIONS,
	{ 0 },
};

struct folded_command {
	struct data_choice choice;
	struct folded_options fold;
};

static int check_options(const struct folded_command *options, struct error *error)
{
	const struct view_choice *view = &options->choice.view;
	int err = view_choice__check_no_comm(view, options->fold.no_comm, error);

	if (err)
		return err;
	if (view->options.addresses &&
	    (view->options.lines || view->options.names != STACK_NAMES_SIMPLE))
		return error__set(error, -EINVAL, "--addresses prints no names; leave out %s",
				  view->options.lines ? "--lines" : "--demangle");
	return filter__check_options(&options->choice.filter.options, options->fold.cost, error);
}

static int parse_folded(int key, char *arg, struct options_input *input)
{
	struct folded_command *options = input->options;

	switch (key) {
	case OPT_COST:
		return data_choice__parse_cost(arg, &options->fold.cost, input->error);
	case OPT_ADDRESSES:
		options->choice.view.options.addresses = true;
		return 0;
	case OPT_NO_COMM:
		options->fold.no_comm = true;
		return 0;
	case OPTIONS_END:
		return check_options(options, input->error);
	default:
		return data_choice__parse(&options->choice, key, arg, input->error);
	}
}

static void release_choice(struct folded_command *options)
{
	data_choice__release(&options->choice);
}

/* Folded stacks have no header, so stderr says which runs they are of. */
static void print_runs(const struct profile *profile, const struct folded_command *options)
{
	if (profile->n_runs < 2 || options->choice.filter.all_runs)
		return;
	if (options->fold.cost == COST_PEAK)
		message__print("the numbers are those of run %u, which has the highest peak of %u "
			       "runs; --run shows another",
			       profile__peak_run(profile), profile__n_runs(profile));
	else
		message__print(
			"the numbers are sums of all %u runs; --run shows one, and --run all "
			"hides this",
			profile__n_runs(profile));
}

struct held {
	const struct selected *selected;
	const struct folded_options *options;
};

static int write_folded(FILE *to, const void *context)
{
	const struct held *held = context;

	return folded__write(held->selected->profile, held->selected->view, held->options, to);
}

static int run_folded(char **argv)
{
	_cleanup_(selected__release) struct selected selected = { 0 };
	_cleanup_(release_choice) struct folded_command options = {
		.choice = { .paths = DATA_PATHS_DEFAULT, .needs_no_groups = true },
	};
	struct data_choice *choice = &options.choice;
	struct error error = { 0 };
	int err, status;

	status = options__read(&cmd_folded, parse_folded, &options, argv);
	if (status != OPTIONS_READ)
		return status;
	options.fold.by_thread = choice->view.by_thread;
	err = selected__open(&selected, choice, options.fold.cost, &error);
	options.fold.counts = selected.filtered.counts;
	if (!err)
		err = data_choice__write(choice, write_folded,
					 &(struct held){ &selected, &options.fold }, &error);
	if (err)
		return output_file__status(err, &error);
	print_runs(selected.profile, &options);
	filter_choice__report_unmatched(&choice->filter);
	filter_choice__report_exit(&choice->filter);
	completeness_messages__print_frees(selected.profile, NULL);
	completeness_messages__print_sampled(selected.profile, NULL);
	return completeness_messages__print(selected.profile, NULL, data_choice__needs(choice));
}

const struct command cmd_folded = {
	.name = "folded",
	.summary = "Print a recording as folded stacks, for flame graph tools",
	.args_doc = DATA_PATHS_ARGS,
	.doc = "Print a recording as folded stacks, one per line, for flame graph tools.\v"
	       "For example: allocprof folded | flamegraph.pl > flame.svg",
	.options = folded_options,
	.run = run_folded,
};
