// SPDX-License-Identifier: GPL-3.0-or-later
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cleanup.h"
#include "command.h"
#include "error.h"
#include "measure.h"
#include "message.h"
#include "options.h"
#include "output.h"
#include "stat_report.h"
#include "window_options.h"

enum {
	OPT_JSON = 256,
	OPT_LIVE,
};

static const struct argp_option stat_options[] = {
	MEASURE_OPTION_PID,
	MEASURE_OPTION_EVENTS,
	MEASURE_OPTION_NO_FOLLOW,
	MEASURE_OPTION_DURATION,
	WINDOW_OPTIONS,
	{ "live", OPT_LIVE, NULL, 0,
	  "Follow memory until it is freed: bytes, failures, what is live", 0 },
	{ "json", OPT_JSON, NULL, 0, "Print one JSON object instead of text", 0 },
	{ "output", 'o', "FILE", 0, "Write to FILE instead of standard error", 0 },
	MEASURE_OPTION_EXPECT,
	MEASURE_OPTION_INJECT,
	{ 0 },
};

struct stat_options {
	struct measure measure;
	const char *output;
	bool json;
};

static error_t parse_stat(int key, char *arg, struct argp_state *state)
{
	struct options_input *input = state->input;
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
	case ARGP_KEY_END:
		return measure__check(&options->measure, "stat", input->error);
	default:
		return measure__parse(&options->measure, key, arg, state);
	}
}

static int print(const struct session *session, const struct stat_options *options,
		 const struct session_results *results, FILE *to)
{
	if (options->json)
		return stat_report__json(session, &options->measure, results, to);
	return stat_report__text(session, &options->measure, results, to);
}

/* All of it or nothing: made in memory first. */
static int print_to_file(const struct session *session, const struct stat_options *options,
			 const struct session_results *results, FILE *file, bool created,
			 struct error *error)
{
	_cleanup_(free_ptr) char *text = NULL;
	size_t size = 0;
	FILE *memory = open_memstream(&text, &size);
	int err = memory ? print(session, options, results, memory) : -ENOMEM;

	if (memory && fclose(memory) && !err)
		err = -ENOMEM;
	if (!err)
		return output__replace(file, options->output, created, text, size, error);
	output__discard(file, options->output, created);
	return err;
}

static int run_stat(int argc, char **argv)
{
	struct stat_options options = {
		.measure.session = { .functions = (1U << AP_FUNCTIONS) - 1, .follow = true },
	};
	struct session_results results;
	struct error error = { 0 };
	struct session *session;
	FILE *file = NULL;
	bool created = false;
	int err, status;

	err = options__parse(&cmd_stat, parse_stat, &options, argc, argv, &error);
	if (err > 0)
		return EXIT_GOOD;
	if (err) {
		message__print("%s", error.text);
		return EXIT_USAGE;
	}
	if (options.measure.pid)
		options.measure.session.follow = false;
	if (options.output)
		err = output__reserve(options.output, &file, &created, &error);
	if (err) {
		message__print("%s", error.text);
		return EXIT_OURS;
	}
	err = measure__run(&options.measure, &session, &status, &error);
	if (err) {
		message__print("%s", error.text);
		if (options.output)
			output__discard(file, options.output, created);
		return status;
	}
	session__results(session, &results);
	status = window_options__status(&results);
	if (options.output)
		err = print_to_file(session, &options, &results, file, created, &error);
	else
		err = print(session, &options, &results, stderr);
	if (err && err != -EPIPE) {
		message__print("%s", error.text[0] ? error.text : strerror(-err));
		status = EXIT_OURS;
	}
	if (options.json || options.output)
		measure__report_gaps(session, &results);
	session__close(session);
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
