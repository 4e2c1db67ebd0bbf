// SPDX-License-Identifier: GPL-3.0-or-later
/* `allocprof archive`: packs a recording and the files that are needed to read it on another
 * machine. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

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
#include "profile_archive.h"
#include "symbol_options.h"

enum {
	OPT_WITHOUT_DATA = 256,
};

static const struct argp_option archive_options[] = {
	DATA_PATHS_INPUT,
	{ "output", 'o', "FILE", 0, "Write to FILE instead of the input's name with .tar.gz", 0 },
	{ "without-data", OPT_WITHOUT_DATA, NULL, 0, "Do not pack the recording itself", 0 },
	SYMBOL_OPTION_DEBUG_DIR,
	{ 0 },
};

struct archive_options {
	/* The first member, since symbol_command__parse() gets a pointer to it. */
	struct symbol_command symbols;
	bool without_data;
};

static int parse_archive(int key, char *arg, struct options_input *input)
{
	struct archive_options *options = input->options;

	if (key != OPT_WITHOUT_DATA)
		return symbol_command__parse(key, arg, input);
	options->without_data = true;
	return 0;
}

static void free_profile(struct profile **profile)
{
	profile__free(*profile);
}

static void say_missing(const char *path, const char *why, void *context)
{
	message__print("left out: %s", why);
}

static int run_archive(char **argv)
{
	_cleanup_(free_profile) struct profile *profile = NULL;
	_cleanup_(free_ptr) char *default_output = NULL;
	struct archive_options given = { .symbols.paths = DATA_PATHS_DEFAULT };
	struct symbol_command *options = &given.symbols;
	struct profile_archive_options packing = { .missing = say_missing };
	struct profile_archive_result result;
	struct error error = { 0 };
	int err, status;

	status = options__read(&cmd_archive, parse_archive, &given, argv);
	if (status != OPTIONS_READ)
		return status;
	if (!options->paths.output) {
		if (asprintf(&default_output, "%s.tar.gz", options->paths.input) < 0)
			default_output = NULL;
		options->paths.output = default_output;
	}
	packing.debug_dirs = options->symbols.debug_dirs;
	packing.n_debug_dirs = options->symbols.n_debug_dirs;
	packing.data_path = given.without_data ? NULL : options->paths.input;
	if (!options->paths.output)
		err = error__set(&error, -ENOMEM, "cannot name the archive: out of memory");
	else
		err = output_file__check_data(options->paths.output, options->paths.input, &error);
	if (!err)
		err = data_file__read(options->paths.input, &profile, &error);
	if (!err)
		err = profile__archive(profile, &packing, options->paths.output, &result, &error);
	if (err)
		return output_file__status(err, &error);
	message__print("%s files, %s, %s in %s; unpack it elsewhere and name the directory with "
		       "`allocprof symbolize --debug-dir`",
		       number__count(result.files).text,
		       number__bytes(result.size_bytes, false).text,
		       packing.data_path ? "and the recording" : "without the recording",
		       options->paths.output);
	return completeness_messages__print_altered(profile);
}

const struct command cmd_archive = {
	.name = "archive",
	.summary = "Pack a recording and the files that names come from, for another machine",
	.args_doc = DATA_PATHS_ARGS,
	.doc = "Pack a recording, the programs and libraries in it, and their debug files, so that it can "
	       "be symbolized on another machine.\v"
	       "For example: allocprof record --no-symbols ./app && allocprof archive, then elsewhere: "
	       "mkdir run && tar -C run -xf allocprof.data.tar.gz && "
	       "allocprof symbolize -i run/allocprof.data --debug-dir run",
	.options = archive_options,
	.run = run_archive,
};
