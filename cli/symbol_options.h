/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Options of the commands that look names up: debug directories and debuginfod. */
#ifndef ALLOCPROF_SYMBOL_OPTIONS_H
#define ALLOCPROF_SYMBOL_OPTIONS_H

#include <argp.h>
#include <stdbool.h>
#include <stddef.h>

#include "data_paths.h"
#include "demangling.h"

struct error;
struct options_input;
struct profile;
struct symbols;

#define SYMBOL_OPTIONS_MAX_DIRS 64

struct symbol_options {
	const char *debug_dirs[SYMBOL_OPTIONS_MAX_DIRS + 1]; /* of --debug-dir, ends with NULL */
	size_t n_debug_dirs;
	bool no_debuginfod;
	unsigned int debuginfod_timeout_ms; /* 0: the default of the library */
	const char *demangle_command;
	/* As in struct symbols_options; set by the command, not by an option. */
	bool (*stop)(void *context);
	void *stop_context;
};

/* Keys of the options, and the first key for options of a command. */
enum {
	OPT_DEBUG_DIR = 2048,
	OPT_NO_DEBUGINFOD,
	OPT_DEBUGINFOD_TIMEOUT,
};

/* Rows of an argp table; each command takes those that it has. */
/* clang-format off */
#define SYMBOL_OPTION_DEBUG_DIR                                                                    \
	{ "debug-dir", OPT_DEBUG_DIR, "DIR", 0,                                                    \
	  "Look for programs, libraries and debug files below DIR as well", 0 }
#define SYMBOL_OPTION_NO_DEBUGINFOD                                                                \
	{ "no-debuginfod", OPT_NO_DEBUGINFOD, NULL, 0,                                             \
	  "Do not query debuginfod servers, even if DEBUGINFOD_URLS names some", 0 }
#define SYMBOL_OPTION_DEBUGINFOD_TIMEOUT                                                           \
	{ "debuginfod-timeout", OPT_DEBUGINFOD_TIMEOUT, "SECONDS", 0,                              \
	  "Give up debuginfod servers that send nothing for SECONDS (default 5)", 0 }
/* clang-format on */

/* Parses one of these; OPTIONS_UNKNOWN for any other key. */
int symbol_options__parse(struct symbol_options *options, int key, char *arg, struct error *error);

/* What the commands have that look names up for a data file; parsed by symbol_command__parse(). */
struct symbol_command {
	struct data_paths paths;
	struct symbol_options symbols;
};

/* An options_parser. */
int symbol_command__parse(int key, char *arg, struct options_input *input);

/*
 * Calls @look_up with symbols as @options say and a progress line, then demangles @profile. Reports on
 * stderr if debuginfod servers were not queried for all files. 0 or a negative errno with @error set.
 */
int symbol_options__look_up(const struct symbol_options *options, struct profile *profile,
			    int (*look_up)(struct symbols *symbols, void *context), void *context,
			    struct error *error);

#endif
