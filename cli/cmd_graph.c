// SPDX-License-Identifier: GPL-3.0-or-later
/* `allocprof graph`: draws live memory over time. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "array.h"
#include "cairo_library.h"
#include "command.h"
#include "completeness.h"
#include "data_command.h"
#include "error.h"
#include "graph_data.h"
#include "graph_output.h"
#include "options.h"
#include "output_file.h"
#include "path.h"
#include "profile.h"

enum {
	OPT_TOP = 256,
	OPT_SERIES,
};

static const struct argp_option graph_options[] = {
	DATA_PATHS_INPUT,
	{ "output", 'o', "FILE", 0,
	  "Write to FILE, whose name ends in .svg, .png or .pdf, instead of SVG to standard "
	  "output" },
	{ "top", OPT_TOP, "N", 0,
	  "Give a band of their own to the N stacks with the greatest peaks (default: 8)" },
	{ "series", OPT_SERIES, "NAME=SQL", 0,
	  "Give a band called NAME to the blocks of which an expression holds, in place of stacks" },
	{ "json", OPT_JSON, NULL, 0, "Write the numbers that would be drawn" },
	DATA_OPTION_STRICT,
	DATA_OPTION_NO_PAGER,
	VIEW_FRAME_OPTIONS,
	{ "by", OPT_BY, "type", 0, "Give bands to the types of blocks, in place of stacks", 2 },
	FILTER_OPTIONS,
	{ 0 },
};

struct graph_options {
	struct data_run data; /* the first member, since data_command__run() gets a pointer to it */
	size_t top;
	enum graph_format format;
	struct cairo_library *cairo;
	bool top_is_given;
	bool *lifetimes; /* by lifetime: whether it is selected */
	struct graph_choice choice;
	struct filter_where series[GRAPH_MAX_TOP]; /* by series of the choice */
	struct graph *graph;
};

static int parse_top(const char *text, struct options_input *input)
{
	struct graph_options *options = input->options;
	__u64 top;

	if (!number__parse_between(text, 1, GRAPH_MAX_TOP, &top))
		return error__set(input->error, -EINVAL, "--top is a number from 1 to %d, not '%s'",
				  GRAPH_MAX_TOP, text);
	options->top = top;
	options->top_is_given = true;
	return 0;
}

static int parse_series(char *text, struct options_input *input)
{
	struct graph_options *options = input->options;
	struct graph_choice *choice = &options->choice;
	char *expression = strchr(text, '=');
	int err;

	if (!expression || expression == text)
		return error__set(
			input->error, -EINVAL,
			"--series is a name and an expression, such as 'Leaked=leaked', not '%s'",
			text);
	if (choice->n == GRAPH_MAX_TOP)
		return error__set(input->error, -EINVAL, "--series is given more than %d times",
				  GRAPH_MAX_TOP);
	*expression++ = '\0';
	err = filter_where__parse(&options->series[choice->n], expression, input->error);
	choice->names[choice->n] = text;
	choice->n += !err;
	return err;
}

/* Chooses the format by the suffix of the file's name; without one it is SVG. */
static int choose_format(struct graph_options *options, struct error *error)
{
	static const char *const suffixes[] = {
		[GRAPH_SVG] = ".svg",
		[GRAPH_PNG] = ".png",
		[GRAPH_PDF] = ".pdf",
	};
	const char *name = options->data.choice.paths.output, *suffix;

	if (options->data.choice.json)
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
			  options->data.choice.paths.output);
}

static int check_options(struct graph_options *options, struct error *error)
{
	int err = choose_format(options, error);

	if (err)
		return err;
	if (options->data.choice.filter.all_runs)
		return error__set(error, -EINVAL,
				  "the time line shows one run; choose it with --run");
	if (options->data.choice.view.by_process || options->data.choice.view.by_thread)
		return error__set(
			error, -EINVAL,
			"bands are stacks or, with --by=type, types; --series has others, as of "
			"threads");
	view_choice__show_types_alone(&options->data.choice.view);
	if (options->choice.n && options->top_is_given)
		return error__set(
			error, -EINVAL,
			"--top is of stacks, and --series has its own bands; leave one out");
	return filter__check_options(&options->data.choice.filter.options, COST_LIVE_BYTES, error);
}

static int parse_graph(int key, char *arg, struct options_input *input)
{
	struct graph_options *options = input->options;

	switch (key) {
	case OPT_TOP:
		return parse_top(arg, input);
	case OPT_SERIES:
		return parse_series(arg, input);
	case OPTIONS_END:
		return check_options(options, input->error);
	default:
		return data_choice__parse(&options->data.choice, key, arg, input->error);
	}
}

static void release_graph(void *context)
{
	struct graph_options *options = context;

	cairo_library__close(options->cairo);
	graph__free(options->graph);
	free(options->lifetimes);
	for (size_t i = 0; i < options->choice.n; i++)
		free(options->choice.lifetimes[i]);
}

/* Chooses the lifetimes of each series. */
static int choose_series(struct graph_options *options, const struct selected *selected,
			 struct error *error)
{
	int err = 0;

	for (size_t i = 0; i < options->choice.n && !err; i++) {
		struct data_choice one = { .filter.options = { .where = &options->series[i],
							       .n_where = 1 } };

		err = selected__choose_lifetimes(selected, &one, &options->choice.lifetimes[i],
						 error);
		if (!err)
			filter_choice__report_unmatched(&one.filter);
	}
	return err;
}

static int prepare_graph(void *context, struct error *error)
{
	struct graph_options *options = context;
	struct data_choice *choice = &options->data.choice;
	struct selected *selected = &options->data.selected[DIFF_AFTER];
	int err = choice->json ? 0 : cairo_library__open(&options->cairo, error);

	if (!err)
		err = selected__open(selected, choice, COST_LIVE_BYTES, error);
	if (!err)
		err = selected__choose_lifetimes(selected, choice, &options->lifetimes, error);
	if (!err)
		err = choose_series(options, selected, error);
	if (!err)
		err = graph__new(selected->profile, selected->groups, options->lifetimes,
				 options->choice.n ? &options->choice : NULL, options->top,
				 &options->graph, error);
	return err;
}

static int write_graph(FILE *to, const void *context)
{
	const struct graph_options *options = context;
	const struct selected *selected = &options->data.selected[DIFF_AFTER];

	return graph_output__write(
		&(struct graph_output){
			.graph = options->graph,
			.groups = selected->groups,
			.filtered = &selected->filtered,
			.profile = selected->profile,
			.strict = options->data.choice.strict,
			.json = options->data.choice.json,
			.cairo = options->cairo,
			.format = options->format,
		},
		to);
}

static int run_graph(char **argv)
{
	static const struct data_command command = {
		.command = &cmd_graph,
		.parse = parse_graph,
		.prepare = prepare_graph,
		.write = write_graph,
		.release = release_graph,
	};
	struct graph_options options = {
		.data.choice.paths = DATA_PATHS_DEFAULT,
		.data.choice.filter.is_of_one_run = true,
		.data.needs = COMPLETENESS_TIMES,
		.top = GRAPH_DEFAULT_TOP,
	};

	return data_command__run(&command, &options, argv);
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
