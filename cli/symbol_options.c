// SPDX-License-Identifier: GPL-3.0-or-later
#include "symbol_options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cleanup.h"
#include "error.h"
#include "progress.h"
#include "symbols.h"

struct symbol_lookup {
	struct symbols_options options;
	struct progress progress;
};

static error_t add_debug_dir(struct symbol_options *options, const char *name, struct error *error)
{
	struct stat st;

	if (options->n_debug_dirs == SYMBOL_OPTIONS_MAX_DIRS) {
		error__set(error, -EINVAL, "--debug-dir can be given %d times at the most",
			   SYMBOL_OPTIONS_MAX_DIRS);
		return EINVAL;
	}
	if (stat(name, &st) || !S_ISDIR(st.st_mode)) {
		error__set(error, -EINVAL,
			   "%s is no directory; --debug-dir takes one, with debug files below it",
			   name);
		return EINVAL;
	}
	options->debug_dirs[options->n_debug_dirs++] = name;
	return 0;
}

error_t symbol_options__parse(struct symbol_options *options, int key, char *arg,
			      struct error *error)
{
	switch (key) {
	case OPT_DEBUG_DIR:
		return add_debug_dir(options, arg, error);
	case OPT_NO_DEBUGINFOD:
		options->no_debuginfod = true;
		return 0;
	case OPT_DEMANGLE_COMMAND:
		options->demangle_command = arg;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static void show_progress(void *context, size_t done, size_t total)
{
	struct symbol_lookup *lookup = context;

	progress__show(&lookup->progress, "looking up names", done, total);
}

static int show_fetching(void *context, const char *path, long done_bytes, long total_bytes)
{
	struct symbol_lookup *lookup = context;
	_cleanup_(free_ptr) char *what = NULL;

	if (asprintf(&what, "fetching debug information of %s, bytes", path) < 0)
		what = NULL;
	if (what)
		progress__show(&lookup->progress, what, done_bytes, total_bytes);
	return 0;
}

struct symbol_lookup *symbol_options__begin(const struct symbol_options *options)
{
	struct symbol_lookup *lookup = calloc(1, sizeof(*lookup));

	if (!lookup)
		return NULL;
	progress__begin(&lookup->progress);
	lookup->options = (struct symbols_options){
		.debug_dirs = options->debug_dirs,
		.n_debug_dirs = options->n_debug_dirs,
		.debuginfod = !options->no_debuginfod,
		.progress = show_progress,
		.fetching = show_fetching,
		.context = lookup,
	};
	return lookup;
}

const struct symbols_options *symbol_lookup__options(const struct symbol_lookup *lookup)
{
	return &lookup->options;
}

void symbol_options__end(struct symbol_lookup *lookup)
{
	if (!lookup)
		return;
	progress__clear();
	free(lookup);
}
