// SPDX-License-Identifier: GPL-3.0-or-later
/* `allocprof graph`: draws live memory over time. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "array.h"
#include "cairo_library.h"
#include "cleanup.h"
#include "command.h"
#include "completeness.h"
#include "completeness_messages.h"
#include "data_command.h"
#include "error.h"
#include "graph_data.h"
#include "graph_output.h"
#include "number_parse.h"
#include "options.h"
#include "output_file.h"
#include "path.h"
#include "profile.h"

enum {
	OPT_TOP = 256,
};

static const struct argp_option graph_options[] = {
	DATA_PATHS_INPUT,
	{ "output", 'o', "FILE", 0,
	  "Write to FILE, whose name ends in .svg, .png or .pdf, instead of SVG to standard "
	  "output" },
	{ "top", OPT_TOP, "N", 0,
	  "Give a band of their own to the N stacks with the greatest peaks (default: 8)" },
	{ "json", OPT_JSON, NULL, 0, "Write the numbers that would be drawn" },
	{ "strict", OPT_STRICT, NULL, 0,
	  "Exit with status 1 where calls were lost or stacks end early" },
	DATA_OPTION_NO_PAGER,
	VIEW_FRAME_OPTIONS,
	FILTER_OPTIONS,
	{ 0 },
};

struct graph_options {
	struct data_choice choice;
	size_t top;
	enum graph_format format;
};

static int parse_top(const char *text, struct options_input *input)
{
	struct graph_options *options = input->options;
	__u64 top;

	if (!number__parse_between(text, 1, GRAPH_MAX_TOP, &top))
		return error__set(input->error, -EINVAL, "--top is a number from 1 to %d, not '%s'",
				  GRAPH_MAX_TOP, text);
	options->top = top;
	return 0;
}

/* Chooses by the file name's suffix; without one it is SVG. */
static int choose_format(struct graph_options *options, struct error *error)
{
	static const char *const suffixes[] = {
		[GRAPH_SVG] = ".svg",
		[GRAPH_PNG] = ".png",
		[GRAPH_PDF] = ".pdf",
	};
	const char *name = options->choice.paths.output, *suffix;

	if (options->choice.json)
		return 0;
	if (!name) {
		if (isatty(STDOUT_FILENO))
			return error__set(error, -EINVAL,
					  "a terminal cannot show the picture; name a file with "
					  "-o, such as -o graph.svg");
		return 0;
	}
	suffix = strrchr(path__name(name), '.');
	if (!suffix)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
		if (!strcasecmp(suffix, suffixes[i])) {
			options->format = i;
			return 0;
		}
	}
	return error__set(error, -EINVAL,
			  "the name %s has no known format; give one that ends in .svg, .png "
			  "or .pdf",
			  options->choice.paths.output);
}

static int check_options(struct graph_options *options, struct error *error)
{
	int err = choose_format(options, error);

	if (err)
		return err;
	if (options->choice.filter.all_runs)
		return error__set(error, -EINVAL,
				  "the time line is that of one run; give --run its number");
	return filter__check_options(&options->choice.filter.options, COST_LIVE_BYTES, error);
}

static int parse_graph(int key, char *arg, struct options_input *input)
{
	struct graph_options *options = input->options;

	switch (key) {
	case OPT_TOP:
		return parse_top(arg, input);
	case OPTIONS_END:
		return check_options(options, input->error);
	default:
		return data_choice__parse(&options->choice, key, arg, input->error);
	}
}

struct held {
	struct selected selected;
	struct cairo_library *cairo;
	bool *lifetimes; /* the selected ones */
	struct graph *graph;
};

static void release(struct held *held)
{
	cairo_library__close(held->cairo);
	graph__free(held->graph);
	free(held->lifetimes);
	selected__release(&held->selected);
}

static void release_choice(struct graph_options *options)
{
	data_choice__release(&options->choice);
}

static int prepare(struct graph_options *options, struct held *held, struct error *error)
{
	struct selected *selected = &held->selected;
	int err = options->choice.json ? 0 : cairo_library__open(&held->cairo, error);

	if (!err)
		err = selected__open(selected, &options->choice, COST_LIVE_BYTES, error);
	if (!err)
		err = filter__select_lifetimes(selected->profile, selected->groups,
					       &options->choice.filter.options, &held->lifetimes,
					       error);
	if (!err)
		err = graph__new(selected->profile, selected->groups, held->lifetimes, options->top,
				 &held->graph, error);
	return err;
}

static int write_graph(FILE *to, const void *context)
{
	return graph_output__write(context, to);
}

static int run_graph(char **argv)
{
	_cleanup_(release) struct held held = { 0 };
	_cleanup_(release_choice) struct graph_options options = {
		.choice.paths = DATA_PATHS_DEFAULT,
		.choice.filter.is_of_one_run = true,
		.top = GRAPH_DEFAULT_TOP,
	};
	struct data_choice *choice = &options.choice;
	struct error error = { 0 };
	int err, status;

	status = options__read(&cmd_graph, parse_graph, &options, argv);
	if (status != OPTIONS_READ)
		return status;
	err = prepare(&options, &held, &error);
	if (!err)
		err = data_choice__write(choice, write_graph,
					 &(struct graph_output){
						 .graph = held.graph,
						 .groups = held.selected.groups,
						 .filtered = &held.selected.filtered,
						 .profile = held.selected.profile,
						 .strict = choice->strict,
						 .json = choice->json,
						 .cairo = held.cairo,
						 .format = options.format,
					 },
					 &error);
	if (err)
		return output_file__status(err, &error);
	filter_choice__report_unmatched(&choice->filter);
	filter_choice__report_exit(&choice->filter);
	completeness_messages__print_sampled(held.selected.profile, NULL);
	return completeness_messages__print(held.selected.profile, NULL,
					    data_choice__needs(choice) | COMPLETENESS_TIMES);
}

const struct command cmd_graph = {
	.name = "graph",
	.summary = "Draw live memory over time, by stack",
	.args_doc = DATA_PATHS_ARGS,
	.doc = "Draw live memory over time, by stack, of what record --live recorded.\v"
	       "For example: allocprof graph -o graph.svg",
	.options = graph_options,
	.run = run_graph,
};
