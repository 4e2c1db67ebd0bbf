// SPDX-License-Identifier: GPL-3.0-or-later
/* `allocprof flamegraph`: draws a recording's stacks. */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "command.h"
#include "error.h"
#include "event_chart.h"
#include "filter.h"
#include "message.h"
#include "number.h"
#include "page.h"
#include "page_sides.h"
#include "path.h"
#include "text.h"

enum {
	OPT_COST = 256,
	OPT_BASE,
	OPT_CHART,
	OPT_COLOUR,
	OPT_LAYOUT,
	OPT_MERGE_RECURSION,
	OPT_NO_COMM,
	OPT_REVERSE,
	OPT_TITLE,
	OPT_WIDTH,
};

#define DEFAULT_WIDTH 1200
#define LEAST_WIDTH   200
#define MOST_WIDTH    100000

static const struct argp_option flamegraph_options[] = {
	DATA_PATHS_INPUT,
	{ "output", 'o', "FILE", 0,
	  "Write to FILE, whose name ends in .html or .svg, instead of SVG to standard output" },
	{ "cost", OPT_COST, "KEY", 0,
	  "Size boxes by bytes (default), allocations, live, live-bytes, temporary, "
	  "peak, resident, unique or lost" },
	{ "base", OPT_BASE, "FILE", 0,
	  "Colour what grew and what shrank since the recording FILE" },
	{ "chart", OPT_CHART, NULL, 0,
	  "Draw calls in the order in which they were made, of a recording with --events" },
	{ "reverse", OPT_REVERSE, NULL, 0,
	  "Begin with the allocator's functions, followed by their callers" },
	{ "merge-recursion", OPT_MERGE_RECURSION, NULL, 0,
	  "Draw a function that calls itself, directly or not, once" },
	{ "layout", OPT_LAYOUT, "FORM", 0,
	  "icicle (default), with the outermost functions on top, or flame, with them at the bottom" },
	{ "colour", OPT_COLOUR, "BY", 0,
	  "kind (default: own code, library, runtime, allocator) or module" },
	{ "color", 0, NULL, OPTION_ALIAS, NULL },
	{ "title", OPT_TITLE, "TEXT", 0, "Name the picture TEXT, not by what was recorded" },
	{ "width", OPT_WIDTH, "PIXELS", 0, "Draw SVG so wide (default 1200)" },
	{ "no-comm", OPT_NO_COMM, NULL, 0, "Leave out the name of the process at the root" },
	DATA_OPTION_STRICT,
	VIEW_OPTIONS("process"),
	FILTER_OPTIONS,
	{ 0 },
};

struct flamegraph_command {
	struct data_run data; /* the first member, since data_command__run() gets a pointer to it */
	bool is_page, no_comm, is_chart;
	struct flamegraph_options draw;
	/* The stacks that are drawn, of one recording or, with --base, of two. */
	struct page_sides sides;
	struct page_chart chart;
	struct flamegraph flamegraph;
};

/* Returns the index of @name, which must be @first or @second. */
static int parse_either(const char *option, const char *name, const char *first, const char *second,
			bool *is_second, struct error *error)
{
	*is_second = !strcmp(name, second);
	if (*is_second || !strcmp(name, first))
		return 0;
	return error__set(error, -EINVAL, "--%s is %s or %s, not '%s'", option, first, second,
			  name);
}

/* Chooses the form of the output by the suffix of the file's name. */
static int choose_form(struct flamegraph_command *options, struct error *error)
{
	const char *name = options->data.choice.paths.output, *suffix;

	if (!name)
		return 0;
	suffix = strrchr(path__name(name), '.');
	options->is_page = suffix && (!strcasecmp(suffix, ".html") || !strcasecmp(suffix, ".htm"));
	if (options->is_page || !suffix || !strcasecmp(suffix, ".svg"))
		return 0;
	return error__set(error, -EINVAL,
			  "the name %s has no known format; give one that ends in .html or .svg",
			  name);
}

static int check_options(struct flamegraph_command *options, struct error *error)
{
	int err = page_sides__check(&options->data, "flame.html", error);

	if (!err)
		err = view_choice__check_no_comm(&options->data.choice.view, options->no_comm,
						 error);
	if (!err)
		err = choose_form(options, error);
	if (!err && options->is_page && options->draw.width)
		err = error__set(error, -EINVAL,
				 "--width is for SVG: a page is as wide as its window");
	if (!err && options->is_chart && options->data.base)
		err = error__set(error, -EINVAL, "--chart is of one recording; give it or --base");
	if (!err && options->is_chart)
		err = event_chart__check_cost(options->draw.cost, error);
	if (err)
		return err;
	options->draw.width = options->draw.width ?: DEFAULT_WIDTH;
	options->data.choice.filter.is_of_one_run = options->data.base;
	return filter__check_options(&options->data.choice.filter.options, options->draw.cost,
				     error);
}

static int parse_width(const char *text, __u32 *width, struct error *error)
{
	__u64 pixels;

	if (!number__parse_between(text, LEAST_WIDTH, MOST_WIDTH, &pixels))
		return error__set(error, -EINVAL, "'%s' is no width; --width takes %d to %d pixels",
				  text, LEAST_WIDTH, MOST_WIDTH);
	*width = pixels;
	return 0;
}

static int parse_flamegraph(int key, char *arg, struct options_input *input)
{
	struct flamegraph_command *options = input->options;

	switch (key) {
	case OPT_COST:
		return data_choice__parse_cost(arg, &options->draw.cost, input->error);
	case OPT_BASE:
		options->data.base = arg;
		return 0;
	case OPT_CHART:
		options->is_chart = true;
		return 0;
	case OPT_REVERSE:
		options->draw.reversed = true;
		return 0;
	case OPT_MERGE_RECURSION:
		options->draw.merged = true;
		return 0;
	case OPT_LAYOUT:
		return parse_either("layout", arg, "icicle", "flame", &options->draw.is_flame,
				    input->error);
	case OPT_COLOUR:
		return parse_either("colour", arg, "kind", "module", &options->draw.by_module,
				    input->error);
	case OPT_TITLE:
		options->draw.title = arg;
		return 0;
	case OPT_WIDTH:
		return parse_width(arg, &options->draw.width, input->error);
	case OPT_NO_COMM:
		options->no_comm = true;
		return 0;
	case OPTIONS_END:
		return check_options(options, input->error);
	default:
		return data_choice__parse(&options->data.choice, key, arg, input->error);
	}
}

static void release_flamegraph(void *context)
{
	struct flamegraph_command *options = context;

	page_chart__release(&options->chart);
	page_sides__release(&options->sides);
}

static int make_chart(struct flamegraph_command *options, const struct page_trie_options *how,
		      struct error *error)
{
	struct event_chart calls;
	int err = data_run__read_chart(&options->data, options->draw.cost, &calls, error);

	if (err)
		return err;
	if (calls.unknown)
		message__print("%s %s not drawn, of calls that the data file does not have",
			       number__count(calls.unknown).text,
			       plural__of("block{ is|s are}", calls.unknown).text);
	err = page_sides__make_chart(&options->sides, how, &calls, &options->chart, error);
	event_chart__release(&calls);
	return err;
}

static int prepare_flamegraph(void *context, struct error *error)
{
	struct flamegraph_command *options = context;
	struct page_graphs *graphs = &options->flamegraph.graphs;
	struct page_sides *sides = &options->sides;
	const struct page_trie_options how = {
		.no_comm = options->no_comm,
		.by_thread = options->data.choice.view.by_thread,
		.reversed = (!options->is_page || options->is_chart) && options->draw.reversed,
		.merged = (!options->is_page || options->is_chart) && options->draw.merged,
	};
	int err = page_sides__open(sides, &options->data, options->draw.cost, error);

	if (!err && options->is_chart)
		err = make_chart(options, &how, error);
	else if (!err)
		err = page_sides__make_trie(sides, &options->data.choice.view, &how, error);
	if (err)
		return err;
	options->flamegraph.options = options->draw;
	*graphs = (struct page_graphs){
		.trie = &sides->trie,
		.has_live = true,
		.has_resident = true,
		.has_reach = true,
		.chart = options->is_chart ? &options->chart : NULL,
		.chart_cost = options->draw.cost,
		.selects_blocks = filter__selects_blocks(&options->data.choice.filter.options),
	};
	for (int side = 0; side < DIFF_SIDES; side++) {
		if (!sides->inputs[side].profile)
			continue;
		graphs->inputs[side] = &sides->inputs[side];
		graphs->nodes[side] = sides->nodes[side];
		graphs->has_live &= filter__has_live(sides->inputs[side].profile);
		graphs->has_resident &= sides->inputs[side].profile->n_rss > 0;
		graphs->has_reach &= profile__has_reach(sides->inputs[side].profile);
	}
	return 0;
}

static int write_flamegraph(FILE *to, const void *context)
{
	const struct flamegraph_command *options = context;

	return options->is_page ? flamegraph__write_page(&options->flamegraph, to)
				: flamegraph__write_svg(&options->flamegraph, to);
}

static int run_flamegraph(char **argv)
{
	static const struct data_command command = {
		.command = &cmd_flamegraph,
		.parse = parse_flamegraph,
		.prepare = prepare_flamegraph,
		.write = write_flamegraph,
		.release = release_flamegraph,
		.hides_run = true,
	};
	struct flamegraph_command options = {
		.data.choice = { .paths = DATA_PATHS_DEFAULT, .no_pager = true },
		.data.choice.view.options.with_locations = true,
		.draw.cost = COST_BYTES,
	};

	return data_command__run(&command, &options, argv);
}

const struct command cmd_flamegraph = {
	.name = "flamegraph",
	.summary = "Draw a recording as a flame graph, as a page or as SVG",
	.args_doc = DATA_PATHS_ARGS,
	.doc = "Draw a recording as a flame graph: a page with search, zoom and details, or SVG.\v"
	       "For example: allocprof flamegraph -o flame.html",
	.options = flamegraph_options,
	.run = run_flamegraph,
};
