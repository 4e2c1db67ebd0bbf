/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Options of the commands that look names up: where debug files are, and who may be asked. */
#ifndef ALLOCPROF_SYMBOL_OPTIONS_H
#define ALLOCPROF_SYMBOL_OPTIONS_H

#include <argp.h>
#include <stdbool.h>
#include <stddef.h>

#include "demangling.h"

struct error;
struct symbol_lookup;
struct symbols;
struct symbols_options;

#define SYMBOL_OPTIONS_MAX_DIRS 64

struct symbol_options {
	const char *debug_dirs[SYMBOL_OPTIONS_MAX_DIRS + 1]; /* of --debug-dir, ends with NULL */
	size_t n_debug_dirs;
	bool no_debuginfod;
	unsigned int debuginfod_timeout_ms; /* 0: the library's */
	const char *demangle_command;
	/* As struct symbols_options has it; of the command, not of its options. */
	bool (*stop)(void *context);
	void *stop_context;
};

/* Keys of the options, and where a command's own may begin. */
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
	  "Ask no debuginfod server, although DEBUGINFOD_URLS names one", 0 }
#define SYMBOL_OPTION_DEBUGINFOD_TIMEOUT                                                           \
	{ "debuginfod-timeout", OPT_DEBUGINFOD_TIMEOUT, "SECONDS", 0,                              \
	  "Give debuginfod servers up that send nothing for SECONDS (default 5)", 0 }
/* clang-format on */

/* Parses one of the above; ARGP_ERR_UNKNOWN for any other key. */
error_t symbol_options__parse(struct symbol_options *options, int key, char *arg,
			      struct error *error);

/*
 * What the library wants to know for @options, with a progress line; to be given back by
 * symbol_options__end(), which takes the line away. NULL without memory.
 */
struct symbol_lookup *symbol_options__begin(const struct symbol_options *options);
const struct symbols_options *symbol_lookup__options(const struct symbol_lookup *lookup);
void symbol_options__end(struct symbol_lookup *lookup);

/* Says on stderr why servers were not asked for all that they may have, where that is so. */
void symbol_options__report(const struct symbols *symbols);

#endif
