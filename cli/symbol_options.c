// SPDX-License-Identifier: GPL-3.0-or-later
#include "symbol_options.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "error.h"

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
