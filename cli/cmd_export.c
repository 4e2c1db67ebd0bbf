// SPDX-License-Identifier: GPL-3.0-or-later
/* `allocprof export`: writes a recording in the format of another viewer. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "command.h"
#include "completeness.h"
#include "completeness_messages.h"
#include "data_command.h"
#include "data_file.h"
#include "error.h"
#include "event_log.h"
#include "event_log_file.h"
#include "export.h"
#include "export_events.h"
#include "message.h"
#include "output_file.h"
#include "profile.h"

enum {
	OPT_FORMAT = 256,
	OPT_COST,
	OPT_BACKTRACE,
};

static const struct argp_option export_options[] = {
	DATA_PATHS_INPUT,
	DATA_OPTION_OUTPUT,
	{ "format", OPT_FORMAT, "FORMAT", 0,
	  "pprof (default), otlp, speedscope, collapsed, stacks, json, dhat, heaptrack or firefox, or "
	  "events, of the log of record --events" },
	{ "backtrace", OPT_BACKTRACE, "FORM", 0,
	  "Give the stacks of events as none, addr, name (default) or full" },
	{ "cost", OPT_COST, "KEY", 0,
	  "Weight collapsed and stacks by allocations (default), bytes, live, live-bytes, temporary or "
	  "peak; the other formats have all that they can hold" },
	DATA_OPTION_STRICT,
	VIEW_FRAME_OPTIONS,
	FILTER_OPTIONS,
	{ 0 },
};

struct export_command {
	struct data_run data; /* the first member, since data_command__run() gets a pointer to it */
	enum export_format format;
	enum cost cost;
	bool has_cost;
	enum backtrace backtrace;
	bool has_backtrace, selects; /* selects: an option of frames or of a selection was given */
	struct export_input input;
};

static int parse_format(struct export_command *options, const char *name, struct error *error)
{
	int format = export__format_by_name(name);

	if (format < 0)
		return error__set(
			error, -EINVAL,
			"unknown format '%s'; --format is pprof, otlp, speedscope, collapsed, "
			"stacks, json, dhat, heaptrack, firefox or events",
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

/* Returns whether the format has stacks of names, each with one number. */
static bool has_one_cost(enum export_format format)
{
	return format == EXPORT_COLLAPSED || format == EXPORT_STACKS;
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

	if (options->has_cost && !has_one_cost(options->format))
		return error__set(error, -EINVAL,
				  "--cost is for --format=collapsed or stacks; %s has all that it "
				  "can hold",
				  name);
	if (export__is_binary(options->format) && !options->data.choice.paths.output &&
	    isatty(STDOUT_FILENO))
		return error__set(error, -EINVAL,
				  "a terminal cannot show the format %s; name a file with -o",
				  name);
	if (options->format == EXPORT_PPROF && is_json(options->data.choice.paths.output))
		return error__set(
			error, -EINVAL,
			"the format pprof is no JSON; name a file that ends in .pb.gz, or give "
			"--format=speedscope or firefox");
	if (options->format == EXPORT_HEAPTRACK)
		options->cost = COST_PEAK;
	return filter__check_options(&options->data.choice.filter.options, options->cost, error);
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
		return data_choice__parse(&options->data.choice, key, arg, input->error);
	default:
		options->selects = true;
		return data_choice__parse(&options->data.choice, key, arg, input->error);
	}
}

static int prepare_export(void *context, struct error *error)
{
	struct export_command *options = context;
	struct data_choice *choice = &options->data.choice;
	struct selected *selected = &options->data.selected[DIFF_AFTER];
	int err;

	choice->view.options.with_locations = !has_one_cost(options->format);
	/* The other formats have the lines beside the names, never within them. */
	if (options->format != EXPORT_SPEEDSCOPE && !has_one_cost(options->format))
		choice->view.options.lines = false;
	err = selected__open(selected, choice, options->cost, error);
	options->input = (struct export_input){
		.profile = selected->profile,
		.view = selected->view,
		.counts = selected->filtered.counts,
		.total = &selected->filtered.total,
		.selects_blocks = filter__selects_blocks(&choice->filter.options),
		.end_ns = selected->filtered.end_ns,
		.cost = options->cost,
	};
	options->data.needs = options->format == EXPORT_DHAT ? COMPLETENESS_TIMES : 0;
	return err ? err : export__check(options->format, &options->input, error);
}

static int write_export(FILE *to, const void *context)
{
	const struct export_command *options = context;

	return export__write(options->format, &options->input, to);
}

static void free_profile(struct profile **profile)
{
	profile__free(*profile);
}

static void free_log(struct event_log_reader **log)
{
	event_log_reader__free(*log);
}

/* Returns the profile of the same recording, or NULL after printing why there is none. */
static struct profile *read_names(const char *path, const struct event_log_reader *log)
{
	struct error error = { 0 };
	struct profile *profile;

	if (data_file__read(path, &profile, &error)) {
		message__print("printing addresses instead of names: %s", error.text);
		return NULL;
	}
	if (event_log_file__is_of(log, profile)) {
		if (profile__meta(profile, "events_stacks"))
			message__print(
				"%s was written before the recording ended: stacks that are new "
				"since then have addresses instead of names",
				path);
		return profile;
	}
	message__print("printing addresses instead of names: %s is of another recording than "
		       "the event log",
		       path);
	profile__free(profile);
	return NULL;
}

struct held {
	struct event_log_reader *log;
	const struct event_log_reader *known;
	const struct profile *names;
	enum backtrace backtrace;
	struct error *error;
	int *err;
};

static int write_events(FILE *to, const void *context)
{
	const struct held *held = context;

	*held->err = export_events__write(held->log, held->known, held->names, held->backtrace, to,
					  held->error);
	return 0;
}

/* Writes the log of events that the user names, or that belongs to the data file that the user
 * names, and says on stderr what the log lacks. */
static int run_events(const void *context)
{
	const struct export_command *options = context;
	const struct data_paths *paths = &options->data.choice.paths;
	_cleanup_(free_ptr) char *log_path = NULL, *data_path = NULL;
	_cleanup_(free_profile) struct profile *names = NULL;
	_cleanup_(free_log) struct event_log_reader *log = NULL, *known = NULL;
	struct error error = { 0 }, log_error = { 0 };
	int status, log_err = 0, err;

	if (options->format != EXPORT_EVENTS)
		return OPTIONS_READ;
	err = event_log_file__open(paths->input, &log_path, &data_path, &log, &error);
	if (!err && options->backtrace >= BACKTRACE_NAME)
		names = read_names(data_path, log);
	if (!err)
		err = output_file__check(paths->output, "-o", log_path, "the event log", &error);
	if (!err)
		err = event_log_file__read_all(log_path, &known, &error);
	if (!err)
		err = output_file__write(paths->output, data_path, false, write_events,
					 &(struct held){ log, known, names, options->backtrace,
							 &log_error, &log_err },
					 &error);
	if (err)
		return output_file__status(err, &error);
	if (log_err)
		return output_file__status(log_err, &log_error);
	status = names ? completeness_messages__print_altered(names) : EXIT_GOOD;
	if (names)
		event_log_file__report_choice(names);
	return event_log_file__report_missing(log, options->data.choice.strict) ?: status;
}

static int run_export(char **argv)
{
	static const struct data_command command = {
		.command = &cmd_export,
		.parse = parse_export,
		.instead = run_events,
		.prepare = prepare_export,
		.write = write_export,
	};
	struct export_command options = {
		.data.choice = { .paths = DATA_PATHS_DEFAULT,
				 .needs_no_groups = true,
				 .no_pager = true },
		.backtrace = BACKTRACE_NAME,
	};

	return data_command__run(&command, &options, argv);
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
