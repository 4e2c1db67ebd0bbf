// SPDX-License-Identifier: GPL-3.0-or-later
#include "symbol_options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cleanup.h"
#include "demangle.h"
#include "error.h"
#include "message.h"
#include "number.h"
#include "options.h"
#include "profile.h"
#include "symbolize.h"
#include "symbols.h"

static void free_demangler(struct demangler **demangler)
{
	demangler__free(*demangler);
}

int demangling__apply(const char *command, struct profile *profile, struct error *error)
{
	const struct demangle_options options = { .command = command };
	_cleanup_(free_demangler) struct demangler *demangler = NULL;
	struct error filter_error = { 0 };
	int err = demangler__new(&options, &demangler, error);

	if (!err) {
		err = profile__demangle(profile, demangler, &filter_error);
		if (err && err != -ENOMEM) {
			message__print("%s", filter_error.text);
			err = 0;
		}
	}
	if (err == -ENOMEM)
		return error__set(error, err, "cannot demangle the names: out of memory");
	return err;
}

struct symbol_lookup {
	struct progress progress;
	bool (*stop)(void *context);
	void *stop_context;
};

static int add_debug_dir(struct symbol_options *options, const char *name, struct error *error)
{
	struct stat st;

	if (options->n_debug_dirs == SYMBOL_OPTIONS_MAX_DIRS)
		return error__set(error, -EINVAL, "--debug-dir can be given %d times at the most",
				  SYMBOL_OPTIONS_MAX_DIRS);
	if (stat(name, &st) || !S_ISDIR(st.st_mode))
		return error__set(
			error, -EINVAL,
			"%s is no directory; --debug-dir takes one, with debug files below it",
			name);
	options->debug_dirs[options->n_debug_dirs++] = name;
	return 0;
}

static int parse_timeout(struct symbol_options *options, const char *text, struct error *error)
{
	char *end;
	double seconds = strtod(text, &end);

	if (end == text || *end || !(seconds >= 0.1 && seconds <= 3600))
		return error__set(
			error, -EINVAL,
			"'%.64s' is no time limit; --debuginfod-timeout takes 0.1 to 3600 "
			"seconds, and --no-debuginfod queries no server",
			text);
	options->debuginfod_timeout_ms = seconds * 1000;
	return 0;
}

int symbol_options__parse(struct symbol_options *options, int key, char *arg, struct error *error)
{
	switch (key) {
	case OPT_DEBUG_DIR:
		return add_debug_dir(options, arg, error);
	case OPT_NO_DEBUGINFOD:
		options->no_debuginfod = true;
		return 0;
	case OPT_DEBUGINFOD_TIMEOUT:
		return parse_timeout(options, arg, error);
	case OPT_DEMANGLE_COMMAND:
		options->demangle_command = arg;
		return 0;
	default:
		return OPTIONS_UNKNOWN;
	}
}

static void show_progress(void *context, size_t done, size_t total)
{
	struct symbol_lookup *lookup = context;

	if (progress__is_due(&lookup->progress))
		progress__draw("looking up names: %s of %s addresses", number__count(done).text,
			       number__count(total).text);
}

static void show_fetching(void *context, const char *path, long done_bytes, long total_bytes)
{
	struct symbol_lookup *lookup = context;

	if (!progress__is_due(&lookup->progress))
		return;
	if (total_bytes)
		progress__draw("fetching the debug file of %s: %s of %s", path,
			       number__bytes(done_bytes, false).text,
			       number__bytes(total_bytes, false).text);
	else
		progress__draw("waiting for debuginfod servers, for the debug file of %s", path);
}

static bool is_to_stop(void *context)
{
	const struct symbol_lookup *lookup = context;

	return lookup->stop && lookup->stop(lookup->stop_context);
}

static void free_symbols(struct symbols **symbols)
{
	symbols__free(*symbols);
}

int symbol_options__look_up(const struct symbol_options *options, struct profile *profile,
			    int (*look_up)(struct symbols *symbols, void *context), void *context,
			    struct error *error)
{
	struct symbol_lookup lookup = { .stop = options->stop,
					.stop_context = options->stop_context };
	const struct symbols_options symbols_options = {
		.debug_dirs = options->debug_dirs,
		.n_debug_dirs = options->n_debug_dirs,
		.debuginfod = !options->no_debuginfod,
		.debuginfod_timeout_ms = options->debuginfod_timeout_ms,
		.progress = show_progress,
		.fetching = show_fetching,
		.stop = is_to_stop,
		.context = &lookup,
	};
	_cleanup_(free_symbols) struct symbols *symbols = symbols__new(&symbols_options);
	int err = -ENOMEM;

	progress__begin(&lookup.progress);
	if (symbols)
		err = look_up(symbols, context);
	progress__clear();
	if (err)
		return error__set(error, err, "cannot look names up: %s",
				  err == -EINTR ? "interrupted" : strerror(-err));
	if (*symbols__fetch_problem(symbols))
		message__print("some names may be missing: %s; `allocprof symbolize` asks again",
			       symbols__fetch_problem(symbols));
	return demangling__apply(options->demangle_command, profile, error);
}

struct naming {
	struct profile *profile;
	struct profile_offline_options options;
};

static void print_missing(const char *why, void *context)
{
	message__print("%s", why);
}

static void ignore_missing(const char *why, void *context)
{
}

static int look_up(struct symbols *symbols, void *context)
{
	const struct naming *naming = context;

	return profile__symbolize_offline(naming->profile, symbols, &naming->options);
}

int offline_names__add(struct profile *profile, const struct symbol_options *options,
		       bool says_missing, struct error *error)
{
	struct naming naming = {
		.profile = profile,
		.options = {
			.debug_dirs = options->debug_dirs,
			.missing = says_missing ? print_missing : ignore_missing,
			.only_new = options->only_new,
		},
	};

	return symbol_options__look_up(options, profile, look_up, &naming, error);
}
