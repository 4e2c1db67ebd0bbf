// SPDX-License-Identifier: GPL-3.0-or-later
/* `allocprof diff`: compares two recordings. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "thread.h"

#include "command.h"
#include "completeness.h"
#include "data_command.h"
#include "data_file.h"
#include "diff.h"
#include "diff_output.h"
#include "error.h"
#include "growth_text.h"
#include "message.h"
#include "moved.h"
#include "options.h"
#include "profile.h"
#include "stack_groups.h"
#include "stack_view.h"
#include "user_terminal.h"

#define DEFAULT_TOP	 10
#define DEFAULT_JSON_TOP 1000

/* The exit status where AFTER costs more than --fail-over allows. */
#define EXIT_OVER 3

enum {
	OPT_COST = 256,
	OPT_DEPTH,
	OPT_MIN,
	OPT_TOP,
	OPT_ALIKE,
	OPT_ALL,
	OPT_NO_PAIRING,
	OPT_FOLDED,
	OPT_PER,
	OPT_FAIL_OVER,
};

static const struct argp_option diff_options[] = {
	DATA_OPTION_OUTPUT,
	{ "cost", OPT_COST, "KEY", 0,
	  "Compare by allocations (default), bytes, live, live-bytes, temporary, peak, resident, unique or "
	  "lost" },
	{ "depth", OPT_DEPTH, "N", 0, "Compare only the N innermost frames of stacks" },
	{ "min", OPT_MIN, "N", 0, "Add up stacks whose difference is less than N" },
	{ "top", OPT_TOP, "N", 0,
	  "List N stacks of each section (default 10, 1000 with --json); 0 for all" },
	{ "alike", OPT_ALIKE, NULL, 0, "List stacks that are alike, too" },
	{ "all", OPT_ALL, NULL, 0,
	  "List all that did not change: stacks that are alike, and pairs at the same cost" },
	{ "no-pairing", OPT_NO_PAIRING, NULL, 0, "Do not pair stacks whose frames differ" },
	{ "per", OPT_PER, "second|FUNCTION|N:M", 0,
	  "Compare what was allocated per second, per call of FUNCTION that allocates, or per piece of "
	  "work that was done N times before and M times after" },
	{ "fail-over", OPT_FAIL_OVER, "N%|N", 0,
	  "Exit with status 3 where the total grew by more than this share, or number" },
	{ "json", OPT_JSON, NULL, 0, "Print JSON" },
	{ "folded", OPT_FOLDED, NULL, 0,
	  "Print folded stacks with both numbers, for differential flame graphs" },
	DATA_OPTION_STRICT,
	DATA_OPTION_NO_PAGER,
	VIEW_OPTIONS("neither"),
	FILTER_OPTIONS,
	{ 0 },
};

struct diff_command {
	struct data_run data; /* the first member, since data_command__run() gets a pointer to it */
	const char *inputs[DIFF_SIDES];
	size_t n_inputs;
	struct diff *made;
	struct moved moved[MOVED_COSTS];
	size_t n_moved;
	bool has_moved;
	struct diff_options diff;
	const char *per; /* NULL: not given, so the totals are compared */
	struct diff_rate rate;
	struct growth_limit fail_over;
	__u64 top;
	bool top_is_given, alike, all, folded, judges;
};

static int parse_depth(const char *text, struct diff_options *options, struct error *error)
{
	__u64 depth;
	int err = number__parse_count(text, &depth, error);

	if (err)
		return err;
	if (!depth || depth > UINT32_MAX)
		return error__set(error, -EINVAL, "'%s' frames make no stack; --depth is 1 or more",
				  text);
	options->depth = depth;
	return 0;
}

static int check_options(struct diff_command *options, struct error *error)
{
	int err = filter__check_options(&options->data.choice.filter.options, options->diff.cost,
					error);

	if (err)
		return err;
	if (filter__names_stacks(&options->data.choice.filter.options))
		return error__set(error, -EINVAL,
				  "stack numbers differ between files; give --through or --module");
	view_choice__show_types_alone(&options->data.choice.view);
	if (options->n_inputs < DIFF_SIDES)
		return error__set(error, -EINVAL,
				  "two data files are compared; write allocprof diff BEFORE AFTER");
	if (options->per && options->diff.cost == COST_PEAK)
		return error__set(
			error, -EINVAL,
			"--per and --cost=peak cannot be used together; a peak does not grow with what is "
			"done: leave one out");
	if (options->data.choice.json && options->folded)
		return error__set(error, -EINVAL,
				  "--json and --folded are two outputs; leave one out");
	if (options->folded &&
	    (options->diff.min || options->top_is_given || options->alike || options->all))
		return error__set(
			error, -EINVAL,
			"--folded has all stacks; leave out --min, --top, --alike and --all");
	return 0;
}

static int parse_diff(int key, char *arg, struct options_input *input)
{
	struct diff_command *options = input->options;

	switch (key) {
	case OPT_COST:
		return data_choice__parse_cost(arg, &options->diff.cost, input->error);
	case OPT_DEPTH:
		return parse_depth(arg, &options->diff, input->error);
	case OPT_MIN:
		return number__parse_count(arg, &options->diff.min, input->error);
	case OPT_TOP:
		options->top_is_given = true;
		return number__parse_count(arg, &options->top, input->error);
	case OPT_ALIKE:
		options->alike = true;
		return 0;
	case OPT_ALL:
		options->all = true;
		return 0;
	case OPT_NO_PAIRING:
		options->diff.no_pairing = true;
		return 0;
	case OPT_FOLDED:
		options->folded = true;
		return 0;
	case OPT_PER:
		options->per = arg;
		return 0;
	case OPT_FAIL_OVER:
		options->judges = true;
		return growth_limit__parse(arg, &options->fail_over, input->error);
	case OPTIONS_OPERAND:
		if (options->n_inputs == DIFF_SIDES)
			return options__reject_operand(arg, input->error);
		options->inputs[options->n_inputs++] = arg;
		return 0;
	case OPTIONS_END:
		return check_options(options, input->error);
	default:
		return data_choice__parse(&options->data.choice, key, arg, input->error);
	}
}

/* Parses "N:M". Returns 0, or -EINVAL if @text is something else. */
static int parse_amounts(const char *text, struct diff_rate *rate)
{
	size_t digits = strspn(text, "0123456789");
	char *before;
	__u64 n, m;
	int err;

	if (!digits || text[digits] != ':')
		return -EINVAL;
	before = strndup(text, digits);
	if (!before)
		return -ENOMEM;
	err = number__parse_count(before, &n, NULL);
	free(before);
	if (!err)
		err = number__parse_count(text + digits + 1, &m, NULL);
	if (err)
		return -EINVAL;
	rate->amounts[DIFF_BEFORE] = n;
	rate->amounts[DIFF_AFTER] = m;
	return 0;
}

/* Counts the allocations of stacks through the function. */
static int count_calls(const char *function, struct profile *profile,
		       const struct data_choice *names, double *calls, struct error *error)
{
	struct filter_rule rule = { .kind = FILTER_THROUGH, .text = function };
	struct data_choice choice = { .view = names->view };
	struct selected selected = { .profile = profile };
	int err;

	choice.filter.options.rules = &rule;
	choice.filter.options.n_rules = 1;
	choice.filter.all_runs = true;
	err = selected__choose(&selected, &choice, COST_ALLOCATIONS, error);
	if (!err)
		*calls = selected.filtered.total.allocations;
	selected.profile = NULL;
	selected__release(&selected);
	return err;
}

/*
 * Sets *@rate by the argument of --per: "second", two numbers "N:M", or a function, whose calls
 * are counted that lead to allocations. @rate refers to @text. @names gives functions their names.
 * Returns 0, or a negative errno with @error set: -ENODATA if one of the recordings has nothing to
 * divide by.
 */
static int read_rate(const char *text, struct profile *const profiles[DIFF_SIDES],
		     const struct data_choice *names, struct diff_rate *rate, struct error *error)
{
	static const char *const sides[DIFF_SIDES] = { "BEFORE", "AFTER" };
	struct diff_rate made = { .unit = text };
	bool are_seconds = !strcmp(text, "second");
	int err = are_seconds ? 0 : parse_amounts(text, &made);

	if (err == -ENOMEM)
		return error__set(error, err, "out of memory");
	made.is_function = err;
	for (int side = 0; side < DIFF_SIDES; side++) {
		err = 0;
		if (are_seconds)
			made.amounts[side] = diff_output__seconds(profiles[side]);
		else if (made.is_function)
			err = count_calls(text, profiles[side], names, &made.amounts[side], error);
		if (err)
			return err;
		if (!(made.amounts[side] > 0))
			return error__set(
				error, -ENODATA,
				"nothing is known to divide by in %s: --per takes second, a "
				"function that allocates once in each unit of work, or N:M, "
				"the numbers of units",
				sides[side]);
	}
	*rate = made;
	return 0;
}

struct reading {
	const char *path;
	struct profile *profile;
	struct error error;
	int err;
};

static void *read_profile(void *context)
{
	struct reading *reading = context;

	reading->err = data_file__read(reading->path, &reading->profile, &reading->error);
	return NULL;
}

/* Reads both files in parallel, since reading takes half of the run time. */
static int read_profiles(const struct diff_command *options, struct selected selected[DIFF_SIDES],
			 struct error *error)
{
	struct reading readings[DIFF_SIDES] = {
		{ .path = options->inputs[DIFF_BEFORE] },
		{ .path = options->inputs[DIFF_AFTER] },
	};
	pthread_t thread;
	bool is_threaded = thread__start(&thread, read_profile, &readings[DIFF_AFTER]);

	read_profile(&readings[DIFF_BEFORE]);
	if (is_threaded)
		pthread_join(thread, NULL);
	else
		read_profile(&readings[DIFF_AFTER]);
	for (int side = 0; side < DIFF_SIDES; side++)
		selected[side].profile = readings[side].profile;
	for (int side = 0; side < DIFF_SIDES; side++) {
		if (readings[side].err == -ENOENT)
			return error__set(
				error, -ENOENT,
				"no such file %.256s; name two that allocprof record wrote",
				readings[side].path);
		if (readings[side].err) {
			*error = readings[side].error;
			return readings[side].err;
		}
	}
	return 0;
}

/* Returns whether it is known what moved: all of both recordings is compared, and neither is of
 * several runs or sampled, so that the numbers are no ranges. */
static bool knows_moved(const struct diff_command *options)
{
	const struct diff_profile *sides = options->made->profiles;

	return options->has_moved && !diff_profile__has_range(&sides[DIFF_BEFORE]) &&
	       !diff_profile__has_range(&sides[DIFF_AFTER]);
}

static int write_diff(FILE *to, const void *context)
{
	const struct diff_command *options = context;
	const struct selected *selected = options->data.selected;
	bool json = options->data.choice.json;
	struct diff_output output = {
		.diff = options->made,
		.profiles = { selected[DIFF_BEFORE].profile, selected[DIFF_AFTER].profile },
		.inputs = { options->inputs[DIFF_BEFORE], options->inputs[DIFF_AFTER] },
		.top = options->top_is_given ? options->top
		       : json		     ? DEFAULT_JSON_TOP
					     : DEFAULT_TOP,
		.alike = options->alike || options->all,
		.equal_pairs = json || options->all,
		.rate = options->per ? &options->rate : NULL,
		.moved = knows_moved(options) ? options->moved : NULL,
		.n_moved = options->n_moved,
		.terminal = terminal__of(to),
	};

	if (options->folded)
		return diff_output__folded(output.diff, to);
	return json ? diff_output__json(&output) : diff_output__text(&output);
}

/* Frees the profiles that were read: a million stacks take 300 MB, and finding pairs takes as much
 * again. */
static void release_read(void *context)
{
	struct selected *selected = context;

	filtered__release(&selected->filtered);
	stack_groups__free(selected->groups);
	stack_view__free(selected->view);
	selected->groups = NULL;
	selected->view = NULL;
	profile__free_stacks(selected->profile);
}

/* Finds what moved, which has to be done before the comparison frees the profiles. */
static int find_moved(struct diff_command *options, struct error *error)
{
	const struct selected *selected = options->data.selected;
	struct stack_groups *groups[DIFF_SIDES];
	struct moved_side sides[DIFF_SIDES];
	int err = -ENOMEM;

	if (options->folded || options->per ||
	    !filter__selects_all(&options->data.choice.filter.options))
		return 0;
	for (int side = 0; side < DIFF_SIDES; side++) {
		const struct profile *profile = selected[side].profile;

		groups[side] = stack_groups__new(profile, selected[side].view);
		sides[side] = (struct moved_side){
			.profile = profile,
			.groups = groups[side],
			.peak_bytes = profile__meta_number(profile, "peak_bytes"),
		};
	}
	if (groups[DIFF_BEFORE] && groups[DIFF_AFTER])
		err = moved__find(&sides[DIFF_BEFORE], &sides[DIFF_AFTER], options->moved,
				  &options->n_moved);
	for (int side = 0; side < DIFF_SIDES; side++)
		stack_groups__free(groups[side]);
	options->has_moved = true;
	return err ? error__set(error, err, "cannot compare: out of memory") : 0;
}

static int prepare_diff(void *context, struct error *error)
{
	struct diff_command *options = context;
	struct selected *selected = options->data.selected;
	struct diff_input inputs[DIFF_SIDES];
	int err = read_profiles(options, selected, error);
	struct profile *const profiles[] = { selected[DIFF_BEFORE].profile,
					     selected[DIFF_AFTER].profile };

	options->data.base = options->inputs[DIFF_BEFORE];
	options->data.choice.paths.input = options->inputs[DIFF_AFTER];
	if (!err && options->per)
		err = read_rate(options->per, profiles, &options->data.choice, &options->rate,
				error);
	if (!err && options->per)
		options->diff.before_times =
			options->rate.amounts[DIFF_AFTER] / options->rate.amounts[DIFF_BEFORE];
	options->data.choice.filter.options.runs_apart = true;
	for (int side = 0; side < DIFF_SIDES && !err; side++) {
		err = selected__choose_part(&selected[side], &options->data.choice,
					    options->diff.cost, error);
		if (err)
			return error__wrap(error, err, "%.256s", options->inputs[side]);
		inputs[side] = (struct diff_input){
			.profile = selected[side].profile,
			.view = selected[side].view,
			.counts = selected[side].filtered.counts,
			.release = release_read,
			.context = &selected[side],
		};
	}
	options->diff.by_process = options->data.choice.view.by_process;
	options->diff.by_thread = options->data.choice.view.by_thread;
	if (!err)
		err = find_moved(options, error);
	return err ? err : diff__new(inputs, &options->diff, &options->made, error);
}

/* Returns whether both recordings have all of what they compare. Those of processes that were attached to end when the user
 * says so, and --per is for recordings of different lengths. */
static bool can_tell(const struct diff_command *options)
{
	bool are_whole = true;

	for (int side = 0; side < DIFF_SIDES; side++) {
		const struct profile *profile = options->data.selected[side].profile;
		bool needs_end = !options->per && !profile__meta(profile, "attached_pid");
		const char *lack = NULL;

		if (!completeness__is_complete(profile))
			lack = "does not have all calls or blocks";
		else if (needs_end && !completeness__has_ended(profile))
			lack = "ended before its command did";
		if (lack)
			message__print("%s %s, so whether %s grew is not known",
				       options->inputs[side], lack, cost__name(options->diff.cost));
		are_whole &= !lack;
	}
	return are_whole;
}

/* Two ranges of runs, or of samples, that overlap are no growth. */
static int judge_diff(const void *context)
{
	const struct diff_command *options = context;
	const struct diff_profile *before = &options->made->profiles[DIFF_BEFORE];
	const struct diff_profile *after = &options->made->profiles[DIFF_AFTER];

	if (!options->judges)
		return EXIT_GOOD;
	if (growth_limit__allows(&options->fail_over, before->total, after->total))
		return can_tell(options) ? EXIT_GOOD : EXIT_INCOMPLETE;
	if ((diff_profile__has_range(before) || diff_profile__has_range(after)) &&
	    after->min <= before->max) {
		message__print("%s: %s, within the noise of the runs",
			       cost__name(options->diff.cost),
			       growth_text__difference(before->total, after->total).text);
		return can_tell(options) ? EXIT_GOOD : EXIT_INCOMPLETE;
	}
	message__print("%s: %s, where --fail-over allows %s", cost__name(options->diff.cost),
		       growth_text__difference(before->total, after->total).text,
		       growth_limit__text(&options->fail_over).text);
	return EXIT_OVER;
}

static void release_diff(void *context)
{
	struct diff_command *options = context;

	diff__free(options->made);
	moved__release(options->moved, options->n_moved);
}

static int run_diff(char **argv)
{
	static const struct data_command command = {
		.command = &cmd_diff,
		.parse = parse_diff,
		.prepare = prepare_diff,
		.write = write_diff,
		.judge = judge_diff,
		.release = release_diff,
	};
	struct diff_command options = { 0 };

	return data_command__run(&command, &options, argv);
}

const struct command cmd_diff = {
	.name = "diff",
	.summary = "Print what changed between two recordings, by stack",
	.args_doc = "BEFORE AFTER",
	.doc = "Print what changed between two recordings, by stack.\v"
	       "For example: allocprof diff allocprof.data.old allocprof.data\n"
	       "In CI: allocprof diff --fail-over=1% base.data head.data >diff.txt || cat diff.txt",
	.options = diff_options,
	.run = run_diff,
};
