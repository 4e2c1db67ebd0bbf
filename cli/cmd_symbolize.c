// SPDX-License-Identifier: GPL-3.0-or-later
#include <errno.h>
#include <string.h>

#include "cleanup.h"
#include "command.h"
#include "data_file.h"
#include "data_paths.h"
#include "error.h"
#include "message.h"
#include "number.h"
#include "options.h"
#include "profile.h"
#include "profile_offline.h"
#include "symbol_options.h"
#include "symbols.h"

static const struct argp_option symbolize_options[] = {
	DATA_PATHS_INPUT,
	{ "output", 'o', "FILE", 0, "Write to FILE instead of the one that was read", 0 },
	SYMBOL_OPTION_DEBUG_DIR,
	SYMBOL_OPTION_NO_DEBUGINFOD,
	DEMANGLING_OPTION_COMMAND(0),
	{ 0 },
};

struct symbolize_options {
	struct data_paths paths;
	struct symbol_options symbols;
};

static error_t parse_symbolize(int key, char *arg, struct argp_state *state)
{
	struct options_input *input = state->input;
	struct symbolize_options *options = input->options;
	error_t err = data_paths__parse(&options->paths, key, arg, input->error);

	if (err != ARGP_ERR_UNKNOWN)
		return err;
	return symbol_options__parse(&options->symbols, key, arg, input->error);
}

static void free_profile(struct profile **profile)
{
	profile__free(*profile);
}

static void free_symbols(struct symbols **symbols)
{
	symbols__free(*symbols);
}

static void end_lookup(struct symbol_lookup **lookup)
{
	symbol_options__end(*lookup);
}

static void say_missing(const char *why, void *context)
{
	message__print("%s", why);
}

static int name_frames(struct profile *profile, const struct symbolize_options *options,
		       struct error *error)
{
	struct profile_offline_options offline = {
		.debug_dirs = options->symbols.debug_dirs,
		.missing = say_missing,
	};
	_cleanup_(end_lookup) struct symbol_lookup *lookup =
		symbol_options__begin(&options->symbols);
	_cleanup_(free_symbols) struct symbols *symbols = NULL;
	int err = -ENOMEM;

	if (lookup)
		symbols = symbols__new(symbol_lookup__options(lookup));
	if (symbols)
		err = profile__symbolize_offline(profile, symbols, &offline);
	if (err)
		return error__set(error, err, "cannot look names up: %s", strerror(-err));
	return demangling__apply(options->symbols.demangle_command, profile, error);
}

static __u64 count_named(const struct profile *profile)
{
	__u64 n = 0;

	for (size_t i = 0; i < profile->n_frames; i++)
		n += profile->frames[i].n_lines > 0;
	return n;
}

static int run_symbolize(int argc, char **argv)
{
	_cleanup_(free_profile) struct profile *profile = NULL;
	struct symbolize_options options = { .paths = DATA_PATHS_DEFAULT };
	struct error error = { 0 };
	int err, status;

	status = options__read(&cmd_symbolize, parse_symbolize, &options, argc, argv);
	if (status != OPTIONS_READ)
		return status;
	if (!options.paths.output)
		options.paths.output = options.paths.input;
	err = data_file__read(options.paths.input, &profile, &error);
	if (!err)
		err = data_file__check_writable(options.paths.output, &error);
	if (!err)
		err = name_frames(profile, &options, &error);
	if (!err)
		err = data_file__write(profile, options.paths.output, &error);
	if (err) {
		message__print("%s", error.text);
		return EXIT_FAILED;
	}
	message__print("%s of %s places in code have a name in %s",
		       number__count(count_named(profile)).text,
		       number__count(profile->n_frames).text, options.paths.output);
	return EXIT_GOOD;
}

const struct command cmd_symbolize = {
	.name = "symbolize",
	.summary = "Look up the names in a recording that was made without",
	.args_doc = DATA_PATHS_ARGS,
	.doc = "Look up the names of functions, source files and lines in a recording that was made "
	       "with --no-symbols or where debug files were missing.\v"
	       "A program or library is used only if it has the build id that was recorded. The older "
	       "data file becomes FILE.old.",
	.options = symbolize_options,
	.run = run_symbolize,
};
