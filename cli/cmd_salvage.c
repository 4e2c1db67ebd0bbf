// SPDX-License-Identifier: GPL-3.0-or-later
/* `allocprof salvage`: makes a recording of the files that processes have kept for themselves. */
#include <errno.h>

#include "cleanup.h"
#include "command.h"
#include "data_file.h"
#include "error.h"
#include "filter.h"
#include "measure.h"
#include "measure_gaps.h"
#include "message.h"
#include "options.h"
#include "output_file.h"
#include "profile.h"
#include "record_summary.h"
#include "recording.h"
#include "session.h"
#include "symbol_options.h"

enum {
	OPT_NO_SYMBOLS = 256,
};

static const struct argp_option salvage_options[] = {
	{ "output", 'o', "FILE", 0, "Write to FILE instead of allocprof.data", 0 },
	{ "quiet", 'q', NULL, 0, "Print only errors, and what is missing", 0 },
	{ "no-symbols", OPT_NO_SYMBOLS, NULL, 0,
	  "Do not look up names; `allocprof symbolize` can do it later", 0 },
	SYMBOL_OPTION_DEBUG_DIR,
	SYMBOL_OPTION_NO_DEBUGINFOD,
	SYMBOL_OPTION_DEBUGINFOD_TIMEOUT,
	DEMANGLING_OPTION_COMMAND(0),
	{ 0 },
};

struct salvage_options {
	struct symbol_options symbols;
	char **paths;
	size_t n;
	const char *output;
	bool quiet, no_symbols;
};

static int parse_salvage(int key, char *arg, struct options_input *input)
{
	struct salvage_options *options = input->options;

	switch (key) {
	case 'o':
		options->output = arg;
		return 0;
	case 'q':
		options->quiet = true;
		return 0;
	case OPT_NO_SYMBOLS:
		options->no_symbols = true;
		return 0;
	case OPTIONS_OPERAND:
		options->n++;
		return 0;
	case OPTIONS_END:
		return options->n ? 0
				  : error__set(input->error, -EINVAL,
					       "no file was given: the files are where -o of "
					       "`allocprof env` has them");
	default:
		return symbol_options__parse(&options->symbols, key, arg, input->error);
	}
}

static const char *end_text(enum session_salvaged_end end)
{
	switch (end) {
	case SALVAGED_RUNS:
		return "runs: its counts are of this moment";
	case SALVAGED_KILLED:
		return "was killed, or ended without saying so: its counts are complete up to its "
		       "last call";
	case SALVAGED_UNBEGUN:
		return "was killed before it had counted anything";
	case SALVAGED_NO_ROOM:
		return "has counted nothing: it found no room, or may not make a system call that it takes";
	case SALVAGED_ELSEWHERE:
		return "is of another PID namespace, so it is not known from here whether it runs or was killed: "
		       "its counts are those of this moment";
	default:
		return NULL;
	}
}

static void print_ends(const struct session *session)
{
	struct session_salvaged salvaged;

	for (size_t i = 0; session__salvaged(session, i, &salvaged); i++) {
		const char *text = end_text(salvaged.end);

		if (text && salvaged.pid)
			message__print("process %d (%s) %s", salvaged.pid, salvaged.path, text);
		else if (text)
			message__print("the process of %s %s", salvaged.path, text);
	}
}

static void close_session(struct session **session)
{
	session__close(*session);
}

static int salvage(const struct salvage_options *options, struct error *error)
{
	_cleanup_(close_session) struct session *session = NULL;
	const struct profile *profile;
	struct selection sums;
	int err = data_file__check_writable(options->output, error);

	if (!err)
		err = session__salvage(options->paths, options->n, &session, error);
	if (!err)
		err = recording__write(session, &options->symbols, !options->no_symbols,
				       options->output, error);
	if (err)
		return err;
	profile = session__profile(session);
	for (size_t i = 0; session__salvage_skipped(session, i); i++)
		message__print("%s: it is left out", session__salvage_skipped(session, i));
	if (!options->quiet)
		print_ends(session);
	measure_gaps__report(profile);
	if (options->quiet)
		return 0;
	sums = record_summary__sum(profile);
	if (profile->totals.has_live)
		live_summary__print(&profile->totals.live,
				    profile__sample_bytes(profile) ? &sums : NULL,
				    profile__unseen_bytes(profile), profile->totals.run.runs);
	record_summary__print(profile, &sums, options->output);
	return 0;
}

static int run_salvage(char **argv)
{
	struct salvage_options options = { .output = DATA_FILE_DEFAULT };
	struct error error = { 0 };
	struct rlimit before;
	int err, status;

	status = options__read(&cmd_salvage, parse_salvage, &options, argv);
	if (status != OPTIONS_READ)
		return status;
	measure__allow_many_files(&before);
	/* The operands are there by now. */
	options.paths = argv + 1;
	err = salvage(&options, &error);
	return err ? output_file__status(err, &error) : EXIT_GOOD;
}

const struct command cmd_salvage = {
	.name = "salvage",
	.summary = "Make a recording of files that processes kept (allocprof env)",
	.args_doc = "FILE...",
	.doc = "Make one recording of the files that processes have kept for themselves, as `allocprof env` has "
	       "them do, whether these have ended, were killed, or run.\v"
	       "For example: allocprof salvage -o app.data /var/lib/app/allocprof.*\n"
	       "The files stay; what a process that runs counts later another `allocprof salvage` reads.",
	.options = salvage_options,
	.run = run_salvage,
};
