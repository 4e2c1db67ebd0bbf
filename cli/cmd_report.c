// SPDX-License-Identifier: GPL-3.0-or-later
/* `allocprof report`: prints what a recording says. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "advice.h"
#include "command.h"
#include "completeness.h"
#include "completeness_messages.h"
#include "data_command.h"
#include "data_options.h"
#include "error.h"
#include "event_blocks.h"
#include "findings.h"
#include "options.h"
#include "output_file.h"
#include "profile.h"
#include "report_output.h"
#include "user_terminal.h"

#define DEFAULT_TOP	  10
#define DEFAULT_MIN_SHARE 0.01
#define SORT_UNSET	  (-1)

enum {
	OPT_SORT = 256,
	OPT_TOP,
	OPT_TREE,
	OPT_BOTTOM_UP,
	OPT_MIN_SHARE,
	OPT_HISTOGRAM,
	OPT_RESIDENT,
	OPT_ADVICE,
	OPT_BLOCKS,
	OPT_ADDRESS,
};

static const struct argp_option report_options[] = {
	DATA_PATHS_INPUT,
	DATA_OPTION_OUTPUT,
	{ "sort", OPT_SORT, "KEY", 0,
	  "By allocations, bytes, live, live-bytes, temporary, peak, oldest or, recorded with --resident, "
	  "resident or unique, and with --reachable lost; single blocks by bytes, oldest or lifetime" },
	{ "top", OPT_TOP, "N", 0, "Print N stacks or blocks (default 10); 0 for all" },
	{ "tree", OPT_TREE, NULL, 0, "Print who calls whom, from main down to the allocator" },
	{ "bottom-up", OPT_BOTTOM_UP, NULL, 0, "Print who calls the functions that allocate" },
	{ "min-share", OPT_MIN_SHARE, "P%", 0,
	  "Sum up branches below this share, in --tree and --bottom-up (default 1%)" },
	{ "histogram", OPT_HISTOGRAM, NULL, 0, "Print sizes and lifetimes" },
	{ "resident", OPT_RESIDENT, NULL, 0,
	  "Print what the resident memory consists of, and by stack what would come back" },
	{ "advice", OPT_ADVICE, NULL, 0,
	  "Print where calls or memory can be saved, as far as the numbers tell" },
	{ "blocks", OPT_BLOCKS, NULL, 0,
	  "Print single blocks, and what became of each, of a recording with --events" },
	{ "address", OPT_ADDRESS, "ADDRESS", 0,
	  "Print the blocks that had the byte at ADDRESS, in their order" },
	{ "json", OPT_JSON, NULL, 0, "Print all of it as JSON" },
	DATA_OPTION_STRICT,
	DATA_OPTION_NO_PAGER,
	VIEW_OPTIONS("neither, and process in the --tree of several programs"),
	FILTER_OPTIONS,
	{ 0 },
};

struct report_options {
	struct data_run data; /* the first member, since data_command__run() gets a pointer to it */
	const char *sort_name; /* NULL: not given */
	int sort, block_sort;
	__u64 top;
	double min_share;
	bool min_share_is_given;
	bool top_is_given, tree, bottom_up, histogram, resident, advice;
	bool blocks; /* print single blocks */
	bool has_address;
	__u64 address;
	struct event_blocks found_blocks;
	struct advice *found;
	struct report *of_findings;
	struct findings findings;
	struct report_output output;
};

static int parse_sort(const char *name, int *sort, struct error *error)
{
	int cost = strcmp(name, "oldest") ? cost__by_name(name) : REPORT_OLDEST;

	if (cost >= 0) {
		*sort = cost;
		return 0;
	}
	return error__set(
		error, -EINVAL,
		"unknown key '%s'; --sort is allocations, bytes, live, live-bytes, temporary, peak, "
		"oldest, resident, unique or lost",
		name);
}

static int choose_sort(const struct report_options *options)
{
	const struct filter_options *filter = &options->data.choice.filter.options;

	if (options->sort != SORT_UNSET)
		return options->sort;
	if (options->resident)
		return COST_UNIQUE;
	if (options->advice)
		return COST_ALLOCATIONS;
	return filter->leaks || filter->older.is_given ? COST_LIVE_BYTES : COST_BYTES;
}

/* Returns the cost that shares are computed from. */
static enum cost choose_cost(const struct report_options *options)
{
	int sort = choose_sort(options);

	return sort == REPORT_OLDEST ? COST_LIVE_BYTES : (enum cost)sort;
}

static int parse_address(const char *text, __u64 *address, struct error *error)
{
	char *end;

	errno = 0;
	*address = strtoull(text, &end, 16);
	return *text == '-' || end == text || *end || errno
		       ? error__set(
				 error, -EINVAL,
				 "'%s' is no address; --address takes a hexadecimal number, such as "
				 "0x7f25c0001040",
				 text)
		       : 0;
}

static int check_blocks(struct report_options *options, struct error *error)
{
	int sort = options->sort_name	  ? block_sort__by_name(options->sort_name)
		   : options->has_address ? BLOCKS_OLDEST
					  : BLOCKS_LARGEST;

	if (options->tree || options->bottom_up || options->histogram || options->resident ||
	    options->advice)
		return error__set(
			error, -EINVAL,
			"--blocks and --address print single blocks; leave out --tree, --bottom-up, "
			"--histogram, --resident and --advice");
	if (sort < 0)
		return error__set(error, -EINVAL,
				  "unknown key '%s'; --sort of single blocks is bytes, oldest or "
				  "lifetime",
				  options->sort_name);
	options->block_sort = sort;
	return 0;
}

static int check_sort(struct report_options *options, struct error *error)
{
	if (options->blocks)
		return check_blocks(options, error);
	return options->sort_name ? parse_sort(options->sort_name, &options->sort, error) : 0;
}

static int check_options(struct report_options *options, struct error *error)
{
	int err = check_sort(options, error);

	if (err)
		return err;
	if (!options->tree && !options->bottom_up)
		view_choice__show_types_alone(&options->data.choice.view);
	if (options->tree && options->bottom_up)
		return error__set(error, -EINVAL,
				  "--tree and --bottom-up are two reports; leave one out");
	if (options->data.choice.json && (options->tree || options->bottom_up))
		return error__set(error, -EINVAL,
				  "--json has whole stacks and no tree; leave out --%s",
				  options->tree ? "tree" : "bottom-up");
	if ((options->tree || options->bottom_up) && options->top_is_given)
		return error__set(
			error, -EINVAL,
			"--top is for the table of stacks; a tree leaves out what is small: "
			"give --min-share");
	if (!options->tree && !options->bottom_up && options->min_share_is_given)
		return error__set(
			error, -EINVAL,
			"--min-share is for trees; give --tree or --bottom-up, or --top for "
			"the table of stacks");
	if ((options->tree || options->bottom_up) && options->sort == REPORT_OLDEST)
		return error__set(error, -EINVAL,
				  "a tree adds up its branches, and ages cannot be added; give "
				  "another --sort");
	if (options->advice && (options->tree || options->bottom_up || options->histogram ||
				options->resident || options->sort != SORT_UNSET ||
				filter__selects_blocks(&options->data.choice.filter.options)))
		return error__set(
			error, -EINVAL,
			"--advice is on all blocks of stacks and has an order of its own; leave out "
			"--sort, --tree, --bottom-up, --histogram, --resident, and what selects blocks");
	if (options->resident && !cost__needs_resident(choose_cost(options)))
		return error__set(
			error, -EINVAL,
			"--resident sorts by resident or unique bytes; give --sort=resident, or "
			"leave out one of the options");
	return filter__check_options(&options->data.choice.filter.options, choose_cost(options),
				     error);
}

static int parse_report(int key, char *arg, struct options_input *input)
{
	struct report_options *options = input->options;

	switch (key) {
	case OPT_SORT:
		options->sort_name = arg;
		return 0;
	case OPT_TOP:
		options->top_is_given = true;
		return number__parse_count(arg, &options->top, input->error);
	case OPT_TREE:
		options->tree = true;
		return 0;
	case OPT_BOTTOM_UP:
		options->bottom_up = true;
		return 0;
	case OPT_MIN_SHARE:
		options->min_share_is_given = true;
		return number__parse_share(arg, &options->min_share, input->error);
	case OPT_HISTOGRAM:
		options->histogram = true;
		return 0;
	case OPT_RESIDENT:
		options->resident = true;
		return 0;
	case OPT_ADVICE:
		options->advice = true;
		return 0;
	case OPT_ADDRESS:
		options->blocks = options->has_address = true;
		return parse_address(arg, &options->address, input->error);
	case OPT_BLOCKS:
		options->blocks = true;
		return 0;
	case OPTIONS_END:
		return check_options(options, input->error);
	default:
		return data_choice__parse(&options->data.choice, key, arg, input->error);
	}
}

static int asks_for_one_stack(const struct filter_options *filter)
{
	int n = 0;

	for (size_t i = 0; i < filter->n_rules; i++)
		n += filter->rules[i].kind == FILTER_STACK && !filter->rules[i].negated;
	return n == 1;
}

static int print_text(const struct report_output *output)
{
	int err = report_output__header(output);

	if (err)
		return err;
	if (output->resident)
		report_output__resident(output);
	if (output->with_advice) {
		report_output__advice(output);
		return 0;
	}
	if (output->blocks) {
		report_output__blocks(output);
		return 0;
	}
	if (!output->tree)
		report_output__findings(output);
	report_output__title(output);
	if (output->tree)
		err = report_output__tree(output);
	else
		report_output__table(output);
	if (output->histogram)
		report_output__histograms(output);
	report_output__notes(output);
	return err;
}

static int write_report(FILE *to, const void *context)
{
	struct report_output output = ((const struct report_options *)context)->output;
	int err;

	output.terminal = terminal__of(to);
	errno = 0;
	err = output.json ? report_output__json(&output) : print_text(&output);
	if (!err && ferror(to))
		err = errno ? -errno : -EIO;
	return err;
}

static enum report_by choose_roots(const struct report_options *options,
				   const struct selected *selected, enum cost cost)
{
	const struct view_choice *view = &options->data.choice.view;

	if (view->by_thread)
		return REPORT_BY_THREAD;
	/* The outermost functions of different programs may have the same name, such as main, so
	 * they need their processes. */
	return view->by_process || (options->tree &&
				    report__is_of_many_programs(selected->profile,
								&selected->filtered, cost))
		       ? REPORT_BY_PROCESS
		       : REPORT_BY_STACK;
}

/* It is known of all live blocks of a stack together, as they were at the end. */
static bool knows_reach(const struct selected *selected, const struct filter_options *filter)
{
	return profile__has_reach(selected->profile) && !selected->filtered.exit_frees.epoch &&
	       !filter->older.is_given && !filter__needs_times(filter);
}

static int find_advice(struct report_options *options, const struct selected *selected,
		       struct error *error)
{
	struct report_output *output = &options->output;

	if (!filter__has_live(selected->profile))
		return error__set(
			error, -EINVAL,
			"--advice needs to know what becomes of blocks, and this was recorded "
			"without --live; record it with --live");
	if (advice__find(output->report, &options->found, &output->n_advice))
		return error__set(error, -ENOMEM, "cannot report: out of memory");
	output->advice = options->found;
	return 0;
}

static int find_findings(struct report_options *options, struct selected *selected,
			 struct error *error)
{
	struct report_output *output = &options->output;
	int err;

	if (!filter__selects_all(&options->data.choice.filter.options) || options->resident ||
	    options->advice || options->blocks)
		return 0;
	options->of_findings = report__new(selected->profile, selected->groups, &selected->filtered,
					   REPORT_BY_STACK, COST_ALLOCATIONS, REPORT_GROWTH);
	err = options->of_findings ? findings__find(options->of_findings, selected->filtered.counts,
						    completeness__is_complete(selected->profile),
						    &options->findings)
				   : -ENOMEM;
	if (err)
		return error__set(error, err, "cannot report: %s", strerror(-err));
	output->findings = &options->findings;
	output->of_findings = options->of_findings;
	return 0;
}

static int read_blocks(struct report_options *options, struct error *error)
{
	struct event_blocks_options wanted = {
		.has_address = options->has_address,
		.address = options->address,
		.sort = options->block_sort,
		.most = options->output.top,
	};

	options->output.blocks = &options->found_blocks;
	options->output.block_sort = options->block_sort;
	return data_run__read_blocks(&options->data, &wanted, &options->found_blocks, error);
}

static int prepare_report(void *context, struct error *error)
{
	struct report_options *options = context;
	struct data_choice *choice = &options->data.choice;
	struct selected *selected = &options->data.selected[DIFF_AFTER];
	struct report_output *output = &options->output;
	int err;

	output->sort = choose_sort(options);
	output->cost = choose_cost(options);
	output->resident = options->resident;
	output->with_advice = options->advice;
	output->with_growth = options->resident || options->advice ||
			      choice->filter.options.leaks || choice->filter.options.older.is_given;
	err = selected__open(selected, choice, output->cost, error);
	if (err)
		return err;
	output->knows_reach = knows_reach(selected, &choice->filter.options);
	output->with_reach = output->knows_reach && choice->filter.options.leaks;
	if (output->with_reach && options->sort == SORT_UNSET)
		output->sort = REPORT_LOST;
	output->report =
		report__new(selected->profile, selected->groups, &selected->filtered,
			    choose_roots(options, selected, output->cost), output->sort,
			    output->with_growth ? REPORT_GROWTH_OF_FUNCTIONS : REPORT_NO_GROWTH);
	if (!output->report)
		return error__set(error, -ENOMEM, "cannot report: out of memory");
	err = find_findings(options, selected, error);
	if (!err && options->advice)
		err = find_advice(options, selected, error);
	if (err)
		return err;
	output->profile = selected->profile;
	output->groups = selected->groups;
	output->view = selected->view;
	output->filtered = &selected->filtered;
	output->filter = &choice->filter.options;
	output->input = choice->paths.input;
	/* JSON contains all stacks unless --top is given. */
	output->top =
		options->top && (options->top_is_given || !choice->json) ? options->top : SIZE_MAX;
	output->json = choice->json;
	output->min_share = options->min_share;
	output->tree = options->tree || options->bottom_up;
	output->bottom_up = options->bottom_up;
	output->histogram = options->histogram || asks_for_one_stack(&choice->filter.options);
	options->data.needs = (output->with_growth ? COMPLETENESS_TIMES : 0) |
			      (output->histogram || output->json ? COMPLETENESS_HISTOGRAMS : 0);
	return options->blocks ? read_blocks(options, error) : 0;
}

static void tell_runtimes(const void *context)
{
	const struct report_options *options = context;

	completeness_messages__print_runtimes(options->data.selected[DIFF_AFTER].profile);
}

static void release_report(void *context)
{
	struct report_options *options = context;

	findings__release(&options->findings);
	report__free(options->of_findings);
	report__free(options->output.report);
	free(options->found);
	event_blocks__release(&options->found_blocks);
}

static int run_report(char **argv)
{
	static const struct data_command command = {
		.command = &cmd_report,
		.parse = parse_report,
		.prepare = prepare_report,
		.write = write_report,
		.tell = tell_runtimes,
		.release = release_report,
		.tells_all = true,
	};
	struct report_options options = {
		.data.choice.paths = DATA_PATHS_DEFAULT,
		.sort = SORT_UNSET,
		.top = DEFAULT_TOP,
		.min_share = DEFAULT_MIN_SHARE,
	};

	return data_command__run(&command, &options, argv);
}

const struct command cmd_report = {
	.name = "report",
	.summary = "Print which stacks allocate, and what of it stays",
	.args_doc = DATA_PATHS_ARGS,
	.doc = "Print which stacks allocate, and what of it stays.\v"
	       "For example: allocprof report --leaks",
	.options = report_options,
	.run = run_report,
};
