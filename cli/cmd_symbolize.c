// SPDX-License-Identifier: GPL-3.0-or-later
/* `allocprof symbolize`: looks up the functions' names of a recording, or of a log of events,
 * again. */

#include "cleanup.h"
#include "command.h"
#include "completeness_messages.h"
#include "data_command.h"
#include "data_file.h"
#include "error.h"
#include "message.h"
#include "number.h"
#include "options.h"
#include "output_file.h"
#include "profile.h"
#include "symbol_options.h"

static const struct argp_option symbolize_options[] = {
	DATA_PATHS_INPUT,
	{ "output", 'o', "FILE", 0, "Write to FILE instead of the one that was read", 0 },
	SYMBOL_OPTION_DEBUG_DIR,
	SYMBOL_OPTION_NO_DEBUGINFOD,
	SYMBOL_OPTION_DEBUGINFOD_TIMEOUT,
	DEMANGLING_OPTION_COMMAND(0),
	{ 0 },
};

static void free_profile(struct profile **profile)
{
	profile__free(*profile);
}

static __u64 count_named(const struct profile *profile)
{
	__u64 n = 0;

	for (size_t i = 0; i < profile->n_frames; i++)
		n += profile->frames[i].n_lines > 0;
	return n;
}

static int run_symbolize(char **argv)
{
	_cleanup_(free_profile) struct profile *profile = NULL;
	struct symbol_command options = { .paths = DATA_PATHS_DEFAULT };
	struct error error = { 0 };
	int err, status;

	status = options__read(&cmd_symbolize, symbol_command__parse, &options, argv);
	if (status != OPTIONS_READ)
		return status;
	if (!options.paths.output)
		options.paths.output = options.paths.input;
	err = output_file__check_log(options.paths.output, options.paths.input, &error);
	if (!err)
		err = data_file__read(options.paths.input, &profile, &error);
	if (!err)
		err = data_file__check_writable(options.paths.output, &error);
	if (!err)
		err = offline_names__add(profile, &options.symbols, true, &error);
	if (!err)
		err = data_file__write(profile, options.paths.output, &error);
	if (err)
		return output_file__status(err, &error);
	message__print("%s of %s code addresses have a name in %s",
		       number__count(count_named(profile)).text,
		       number__count(profile->n_frames).text, options.paths.output);
	return completeness_messages__print_altered(profile);
}

const struct command cmd_symbolize = {
	.name = "symbolize",
	.summary = "Add names to a recording made with --no-symbols",
	.args_doc = DATA_PATHS_ARGS,
	.doc = "Look up the names of functions, source files and lines in a recording that was made "
	       "with --no-symbols or where debug files were missing.\v"
	       "A program or library is used only if it has the build id that was recorded. The older "
	       "data file becomes FILE.old.",
	.options = symbolize_options,
	.run = run_symbolize,
};
