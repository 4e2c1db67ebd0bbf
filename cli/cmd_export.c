// SPDX-License-Identifier: GPL-3.0-or-later
/* `allocprof export`: writes a recording in the format of another viewer. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "cleanup.h"
#include "command.h"
#include "completeness.h"
#include "completeness_messages.h"
#include "error.h"
#include "export.h"
#include "export_events_run.h"
#include "options.h"
#include "output_file.h"
#include "selected.h"

enum {
	OPT_FORMAT = 256,
	OPT_COST,
	OPT_BACKTRACE,
};

static const struct argp_option export_options[] = {
	DATA_PATHS_INPUT,
	{ "output", 'o', "FILE", 0, "Write to FILE instead of standard output" },
	{ "format", OPT_FORMAT, "FORMAT", 0,
	  "pprof (default), speedscope, collapsed, json, dhat, heaptrack or firefox, or events, of "
	  "the log of record --events" },
	{ "backtrace", OPT_BACKTRACE, "FORM", 0,
	  "Give the stacks of events as none, addr, name (default) or full" },
	{ "cost", OPT_COST, "KEY", 0,
	  "Weight collapsed stacks by allocations (default), bytes, live, live-bytes, temporary or "
	  "peak; the other formats have all that they can hold" },
	{ "strict", OPT_STRICT, NULL, 0,
	  "Exit with status 1 where calls were lost or stacks end early" },
	VIEW_FRAME_OPTIONS,
	FILTER_OPTIONS,
	{ 0 },
};

struct export_command {
	struct data_choice choice;
	enum export_format format;
	enum cost cost;
	bool has_cost;
	enum backtrace backtrace;
	bool has_backtrace, selects; /* selects: an option of frames or of a selection is given */
};

static int parse_format(struct export_command *options, const char *name, struct error *error)
{
	int format = export__format_by_name(name);

	if (format < 0)
		return error__set(error, -EINVAL,
				  "unknown format '%s'; --format is pprof, speedscope, collapsed, "
				  "json, dhat, heaptrack, firefox or events",
				  name);
	options->format = format;
	return 0;
}

static int parse_backtrace(struct export_command *options, const char *name, struct error *error)
{
	int backtrace = backtrace__by_name(name);

	if (backtrace < 0)
		return error__set(error, -EINVAL,
				  "unknown backtrace '%s'; --backtrace is none, addr, name or full",
				  name);
	options->backtrace = backtrace;
	options->has_backtrace = true;
	return 0;
}

static bool is_json(const char *path)
{
	size_t length = path ? strlen(path) : 0;

	return length >= 5 && !strcmp(path + length - 5, ".json");
}

static int check_options(struct export_command *options, struct error *error)
{
	const char *name = export__format_name(options->format);

	if (options->has_backtrace && options->format != EXPORT_EVENTS)
		return error__set(error, -EINVAL, "--backtrace is for --format=events, not for %s",
				  name);
	if (options->selects && options->format == EXPORT_EVENTS)
		return error__set(error, -EINVAL,
				  "--format=events has every event, and no options of frames or of "
				  "a selection; leave them out");

	if (options->has_cost && options->format != EXPORT_COLLAPSED)
		return error__set(error, -EINVAL,
				  "--cost is for --format=collapsed; %s has all that it can hold",
				  name);
	if (export__is_binary(options->format) && !options->choice.paths.output &&
	    isatty(STDOUT_FILENO))
		return error__set(error, -EINVAL,
				  "a terminal cannot show the format %s; name a file with -o",
				  name);
	if (options->format == EXPORT_PPROF && is_json(options->choice.paths.output))
		return error__set(
			error, -EINVAL,
			"the format pprof is no JSON; name a file that ends in .pb.gz, or give "
			"--format=speedscope or firefox");
	if (options->format == EXPORT_HEAPTRACK)
		options->cost = COST_PEAK;
	return filter__check_options(&options->choice.filter.options, options->cost, error);
}

static int parse_export(int key, char *arg, struct options_input *input)
{
	struct export_command *options = input->options;

	switch (key) {
	case OPT_FORMAT:
		return parse_format(options, arg, input->error);
	case OPT_COST:
		options->has_cost = true;
		return data_choice__parse_cost(arg, &options->cost, input->error);
	case OPT_BACKTRACE:
		return parse_backtrace(options, arg, input->error);
	case OPTIONS_END:
		return check_options(options, input->error);
	case 'i':
	case 'o':
	case OPT_STRICT:
	case OPTIONS_OPERAND:
		return data_choice__parse(&options->choice, key, arg, input->error);
	default:
		options->selects = true;
		return data_choice__parse(&options->choice, key, arg, input->error);
	}
}

static void release_choice(struct export_command *options)
{
	data_choice__release(&options->choice);
}

struct held {
	struct export_input input;
	enum export_format format;
};

static int write_export(FILE *to, const void *context)
{
	const struct held *held = context;

	return export__write(held->format, &held->input, to);
}

static int run_export(char **argv)
{
	_cleanup_(selected__release) struct selected selected = { 0 };
	_cleanup_(release_choice) struct export_command options = {
		.choice = { .paths = DATA_PATHS_DEFAULT, .needs_no_groups = true },
		.backtrace = BACKTRACE_NAME,
	};
	struct data_choice *choice = &options.choice;
	struct held held;
	struct error error = { 0 };
	int err, status;

	status = options__read(&cmd_export, parse_export, &options, argv);
	if (status != OPTIONS_READ)
		return status;
	if (options.format == EXPORT_EVENTS)
		return export_events__run(&choice->paths, options.backtrace, choice->strict);
	choice->no_pager = true;
	choice->view.options.with_places = options.format != EXPORT_COLLAPSED;
	/* These have the lines beside the names, whether or not they are in the names. */
	if (options.format != EXPORT_SPEEDSCOPE && options.format != EXPORT_COLLAPSED)
		choice->view.options.lines = false;
	err = selected__open(&selected, choice, options.cost, &error);
	held = (struct held){
		.input = {
			.profile = selected.profile,
			.view = selected.view,
			.counts = selected.filtered.counts,
			.total = &selected.filtered.total,
			.selects_blocks = filter__selects_blocks(&choice->filter.options),
			.end_ns = selected.filtered.end_ns,
			.cost = options.cost,
		},
		.format = options.format,
	};
	if (!err)
		err = export__check(held.format, &held.input, &error);
	if (!err)
		err = data_choice__write(choice, write_export, &held, &error);
	if (err)
		return output_file__status(err, &error);
	filter_choice__report_unmatched(&choice->filter);
	filter_choice__report_exit(&choice->filter);
	completeness_messages__print_frees(selected.profile, NULL);
	completeness_messages__print_sampled(selected.profile, NULL);
	return completeness_messages__print(
		selected.profile, NULL,
		data_choice__needs(choice) |
			(options.format == EXPORT_DHAT ? COMPLETENESS_TIMES : 0));
}

const struct command cmd_export = {
	.name = "export",
	.summary = "Write a recording in a format that other viewers read",
	.args_doc = DATA_PATHS_ARGS,
	.doc = "Write a recording in a format that other viewers read.\v"
	       "For example: allocprof export -o app.pb.gz && go tool pprof -http=: app.pb.gz",
	.options = export_options,
	.run = run_export,
};
