// SPDX-License-Identifier: GPL-3.0-or-later
/* `allocprof stat`: counts the calls of a command or process. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cleanup.h"
#include "command.h"
#include "error.h"
#include "measure.h"
#include "measure_gaps.h"
#include "measure_options.h"
#include "message.h"
#include "options.h"
#include "output_file.h"
#include "session.h"
#include "stat_report.h"
#include "stat_series.h"
#include "user_terminal.h"

enum {
	OPT_JSON = 256,
	OPT_PER,
};

static const struct argp_option stat_options[] = {
	OPTIONS_GROUP("Target:"),
	MEASURE_OPTIONS_PID,
	MEASURE_OPTION_USER,
	MEASURE_OPTION_DURATION,
	MEASURE_OPTION_NO_FOLLOW,
	MEASURE_OPTION_EXPECT,
	SERIES_OPTIONS("1"),
	OPTIONS_GROUP("What is counted:"),
	{ "live", OPT_LIVE, NULL, 0,
	  "Follow memory until it is freed: bytes, failures, what is live", 0 },
	MEASURE_OPTION_FAULTS,
	MEASURE_OPTION_EVENTS,
	MEASURE_OPTIONS_DEFINITIONS,
	MEASURE_OPTION_IGNORE,
	OPTIONS_GROUP("In which part of the run:"),
	WINDOW_OPTIONS,
	OPTIONS_GROUP("What is printed:"),
	{ "json", OPT_JSON, NULL, 0, "Print one JSON object instead of text", 0 },
	{ "output", 'o', "FILE", 0, "Write to FILE instead of standard error", 0 },
	{ "per", OPT_PER, "K", 0, "With -r, divide every figure by K", 0 },
	MEASURE_OPTION_QUIET,
	MEASURE_OPTION_VERBOSE,
	OPTIONS_GROUP("How it is measured:"),
	MEASURE_OPTION_ENGINE,
	MEASURE_OPTIONS_ISOLATE,
	MEASURE_OPTION_NO_CACHE,
	MEASURE_OPTION_INJECT,
	{ 0 },
};

struct stat_options {
	struct measure measure;
	struct series series;
	__u64 per; /* 0: not given */
	const char *output;
	bool json;
};

static int parse_per(struct stat_options *options, const char *text, struct error *error)
{
	int err = number__parse_count(text, &options->per, error);

	if (!err && !options->per)
		err = error__set(error, -EINVAL,
				 "figures cannot be divided by 0; --per takes 1 or more");
	return err;
}

static int check_stat(struct stat_options *options, struct error *error)
{
	int err;

	if (options->per && !options->series.runs)
		return error__set(error, -EINVAL, "--per means nothing without -r");
	err = series__check(&options->series, &options->measure, error);
	return err ? err : measure__check(&options->measure, "stat", error);
}

static int parse_stat(int key, char *arg, struct options_input *input)
{
	struct stat_options *options = input->options;

	switch (key) {
	case 'o':
		options->output = arg;
		return 0;
	case OPT_JSON:
		options->json = true;
		return 0;
	case OPT_LIVE:
		options->measure.session.live = true;
		return 0;
	case 'r':
	case OPT_WARMUP:
		return series__parse(&options->series, key, arg, input->error);
	case OPT_PER:
		return parse_per(options, arg, input->error);
	case OPTIONS_END:
		return check_stat(options, input->error);
	default:
		return measure__parse(&options->measure, key, arg, input);
	}
}

struct stat_run {
	const struct stat_options *options;
	struct stat_series runs; /* the runs of -r */
	struct late_output output;
};

/* Writes the report. It has been made in memory, because the file of -o gets all of it or nothing. */
static int write_text(struct stat_run *run, const char *text, size_t size, struct error *error)
{
	if (run->output.path)
		return late_output__write(&run->output, text, size, error);
	if (fwrite(text, 1, size, stderr) == size && !fflush(stderr))
		return 0;
	return -errno;
}

/* Returns the number of columns of the terminal that the report is printed to; 0 if it is not a
 * terminal. */
static size_t columns_of(const struct stat_run *run)
{
	return run->options->output ? 0 : terminal__of(stderr).columns;
}

static int print_run(struct stat_run *run, const struct profile *profile, FILE *to)
{
	if (run->options->json)
		return stat_report__json(&run->options->measure, profile, to);
	return stat_report__text(&run->options->measure, profile, columns_of(run), to);
}

static int take_only_run(void *context, struct session *session, size_t number, struct error *error)
{
	const struct profile *profile = session__profile(session);
	_cleanup_(free_ptr) char *text = NULL;
	struct stat_run *run = context;
	size_t size = 0;
	FILE *memory = open_memstream(&text, &size);
	int err = memory ? print_run(run, profile, memory) : -ENOMEM;

	if (memory && fclose(memory) && !err)
		err = -ENOMEM;
	if (!err)
		err = write_text(run, text, size, error);
	if (run->options->json || run->options->output)
		measure__report_gaps(&run->options->measure, profile);
	measure__tell_stepped(&run->options->measure, profile);
	measure__suggest_engine(&run->options->measure, profile);
	return err == -EPIPE ? 0 : err;
}

static int take_run(void *context, struct session *session, size_t number, struct error *error)
{
	const struct profile *profile = session__profile(session);
	struct stat_run *run = context;

	measure__report_gaps(&run->options->measure, profile);
	return stat_series__add(&run->runs, profile);
}

static int print_series(struct stat_run *run, const struct series_end *end, struct error *error)
{
	_cleanup_(free_ptr) char *text = NULL;
	size_t size = 0;
	FILE *memory = open_memstream(&text, &size);
	int err = -ENOMEM;

	if (memory && run->options->json)
		err = stat_series__json(&run->runs, end, memory);
	else if (memory)
		err = stat_series__text(&run->runs, columns_of(run), memory);
	if (memory && fclose(memory) && !err)
		err = -ENOMEM;
	if (!err)
		err = write_text(run, text, size, error);
	return err == -EPIPE ? 0 : err;
}

/* Measures the target once. Returns the exit status. */
static int measure_target(const struct stat_options *options, struct stat_run *run,
			  struct error *error)
{
	struct measure_surroundings surroundings = { 0 };
	struct series_end end;
	int err;

	err = series__run(&options->series, &options->measure, &surroundings,
			  options->series.runs ? take_run : take_only_run, run, &end, error);
	measure_surroundings__release(&surroundings);
	if (err)
		message__error(error, err);
	/* If the series is aborted, its finished runs are kept. */
	if (options->series.runs && end.counted) {
		*error = (struct error){ 0 };
		err = print_series(run, &end, error);
		if (err) {
			message__error(error, err);
			end.status = EXIT_OURS;
		}
	}
	return end.status;
}

static int run_stat(char **argv)
{
	struct stat_options options = {
		.measure.session = {
			.functions = AP_ALL_FUNCTIONS,
			.regions = true,
			.follow = true,
		},
	};
	struct stat_run run = { .options = &options };
	struct error error = { 0 };
	int status;

	status = options__read(&cmd_stat, parse_stat, &options, argv);
	if (status != OPTIONS_READ)
		return status;
	if (measure__find_processes(&options.measure, &error)) {
		message__print("%s", error.text);
		measure__release(&options.measure);
		return EXIT_OURS;
	}
	run.output.path = options.output;
	run.output.option = "-o";
	if (late_output__reserve(&run.output, &error)) {
		message__print("%s", error.text);
		return EXIT_OURS;
	}
	run.runs = (struct stat_series){
		.measure = &options.measure,
		.series = &options.series,
		.per = options.per ? options.per : 1,
		.wants_objects = options.json,
	};
	status = measure_target(&options, &run, &error);
	late_output__release(&run.output);
	stat_series__release(&run.runs);
	measure__release(&options.measure);
	return status;
}

const struct command cmd_stat = {
	.name = "stat",
	.summary = "Count the allocations of a command or process",
	.args_doc = "[--] COMMAND [ARGUMENT...]\n-p PID",
	.doc = "Count the calls of malloc and its kin by a command and all processes that it starts, "
	       "or by a running process.\v"
	       "For example: allocprof stat ./app --its-option\n"
	       "The exit status is that of the command; 125 where allocprof itself failed, 126 and "
	       "127 where the command could not be run or was not found.",
	.options = stat_options,
	.launches = true,
	.run = run_stat,
};
