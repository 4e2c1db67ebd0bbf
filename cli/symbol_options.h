/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Options of the commands that look names up: where debug files are, and who may be asked. */
#ifndef ALLOCPROF_SYMBOL_OPTIONS_H
#define ALLOCPROF_SYMBOL_OPTIONS_H

#include <argp.h>
#include <stdbool.h>
#include <stddef.h>

struct error;

#define SYMBOL_OPTIONS_MAX_DIRS 64

struct symbol_options {
	const char *debug_dirs[SYMBOL_OPTIONS_MAX_DIRS + 1]; /* of --debug-dir, ends with NULL */
	size_t n_debug_dirs;
	bool no_debuginfod;
	const char *demangle_command;
};

/* Keys of the options, and where a command's own may begin. */
enum {
	OPT_DEBUG_DIR = 2048,
	OPT_NO_DEBUGINFOD,
	OPT_DEMANGLE_COMMAND,
};

/* Rows of an argp table; each command takes those that it has. */
/* clang-format off */
#define SYMBOL_OPTION_DEBUG_DIR                                                                    \
	{ "debug-dir", OPT_DEBUG_DIR, "DIR", 0,                                                    \
	  "Look for programs, libraries and debug files below DIR as well", 0 }
#define SYMBOL_OPTION_NO_DEBUGINFOD                                                                \
	{ "no-debuginfod", OPT_NO_DEBUGINFOD, NULL, 0,                                             \
	  "Ask no debuginfod server, although DEBUGINFOD_URLS names one", 0 }
#define SYMBOL_OPTION_DEMANGLE_COMMAND                                                             \
	{ "demangle-command", OPT_DEMANGLE_COMMAND, "COMMAND", 0,                                  \
	  "Names that stay mangled go through COMMAND, such as 'swift demangle --simplified'", 0 }
/* clang-format on */

/* Parses one of the above; ARGP_ERR_UNKNOWN for any other key. */
error_t symbol_options__parse(struct symbol_options *options, int key, char *arg,
			      struct error *error);

#endif
