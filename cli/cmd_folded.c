// SPDX-License-Identifier: GPL-3.0-or-later
/* `allocprof folded`: prints a recording's stacks for flamegraph.pl. */
#include <errno.h>

#include "command.h"
#include "data_command.h"
#include "error.h"
#include "folded.h"
#include "message.h"
#include "profile_runs.h"

enum {
	OPT_ADDRESSES = 256,
	OPT_COST,
	OPT_NO_COMM,
};

static const struct argp_option folded_options[] = {
	DATA_PATHS_INPUT,
	DATA_OPTION_OUTPUT,
	{ "cost", OPT_COST, "KEY", 0,
	  "Print after each stack its allocations (default), bytes, live, live-bytes, temporary, "
	  "peak, resident, unique or lost" },
	{ "addresses", OPT_ADDRESSES, NULL, 0, "Print module+0xoffset in place of names" },
	{ "no-comm", OPT_NO_COMM, NULL, 0, "Leave out the name of the process at the root" },
	DATA_OPTION_STRICT,
	DATA_OPTION_NO_PAGER,
	VIEW_OPTIONS("process"),
	FILTER_OPTIONS,
	{ 0 },
};

struct folded_command {
	struct data_run data; /* the first member, since data_command__run() gets a pointer to it */
	struct folded_options fold;
};

static int check_options(const struct folded_command *options, struct error *error)
{
	const struct view_choice *view = &options->data.choice.view;
	int err = view_choice__check_no_comm(view, options->fold.no_comm, error);

	if (err)
		return err;
	if (view->options.addresses &&
	    (view->options.lines || view->options.names != STACK_NAMES_SIMPLE))
		return error__set(error, -EINVAL, "--addresses prints no names; leave out %s",
				  view->options.lines ? "--lines" : "--demangle");
	return filter__check_options(&options->data.choice.filter.options, options->fold.cost,
				     error);
}

static int parse_folded(int key, char *arg, struct options_input *input)
{
	struct folded_command *options = input->options;

	switch (key) {
	case OPT_COST:
		return data_choice__parse_cost(arg, &options->fold.cost, input->error);
	case OPT_ADDRESSES:
		options->data.choice.view.options.addresses = true;
		return 0;
	case OPT_NO_COMM:
		options->fold.no_comm = true;
		return 0;
	case OPTIONS_END:
		return check_options(options, input->error);
	default:
		return data_choice__parse(&options->data.choice, key, arg, input->error);
	}
}

/* Says on stderr which runs the stacks are of, since folded stacks have no header. */
static void tell_runs(const void *context)
{
	const struct folded_command *options = context;
	const struct profile *profile = options->data.selected[DIFF_AFTER].profile;

	if (profile->n_runs < 2 || options->data.choice.filter.all_runs)
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

static int prepare_folded(void *context, struct error *error)
{
	struct folded_command *options = context;
	struct selected *selected = &options->data.selected[DIFF_AFTER];
	int err = selected__open(selected, &options->data.choice, options->fold.cost, error);

	options->fold.by_thread = options->data.choice.view.by_thread;
	options->fold.counts = selected->filtered.counts;
	return err;
}

static int write_folded(FILE *to, const void *context)
{
	const struct folded_command *options = context;
	const struct selected *selected = &options->data.selected[DIFF_AFTER];

	return folded__write(selected->profile, selected->view, &options->fold, to);
}

static int run_folded(char **argv)
{
	static const struct data_command command = {
		.command = &cmd_folded,
		.parse = parse_folded,
		.prepare = prepare_folded,
		.write = write_folded,
		.tell = tell_runs,
	};
	struct folded_command options = {
		.data.choice = { .paths = DATA_PATHS_DEFAULT, .needs_no_groups = true },
	};

	return data_command__run(&command, &options, argv);
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
