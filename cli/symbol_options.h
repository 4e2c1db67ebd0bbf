/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Options of the commands that look names up or demangle them, and functions that do so. */
#ifndef ALLOCPROF_SYMBOL_OPTIONS_H
#define ALLOCPROF_SYMBOL_OPTIONS_H

#include <argp.h>
#include <stdbool.h>
#include <stddef.h>

struct error;
struct profile;
struct symbols;

#define OPT_DEMANGLE_COMMAND 0x180

/* A row of an argp table, in @group. */
/* clang-format off */
#define DEMANGLING_OPTION_COMMAND(group)                                                           \
	{ "demangle-command", OPT_DEMANGLE_COMMAND, "COMMAND", 0,                                  \
	  "Filter for names that look mangled still, such as 'swift demangle --simplified'", group }
/* clang-format on */

/*
 * Demangles the names in @profile that are still mangled; @command is the filter, or NULL. If the
 * filter fails, that only causes a warning on stderr. Returns 0 or a negative errno with @error
 * set.
 */
int demangling__apply(const char *command, struct profile *profile, struct error *error);

#define SYMBOL_OPTIONS_MAX_DIRS 64

struct symbol_options {
	/* Arguments of --debug-dir; ends with NULL. */
	const char *debug_dirs[SYMBOL_OPTIONS_MAX_DIRS + 1];
	size_t n_debug_dirs;
	bool no_debuginfod;
	unsigned int debuginfod_timeout_ms; /* 0: the default of the debuginfod library */
	const char *demangle_command;
	/* As in struct profile_offline_options; set by the command, not by an option. */
	bool only_new;
	/* Returns whether looking up names should stop, as in struct symbols_options. Set by the
	 * command, not by an option. */
	bool (*stop)(void *context);
	void *stop_context;
};

/* Keys of these options, and the first key for a command's own options. */
enum {
	OPT_DEBUG_DIR = 2048,
	OPT_NO_DEBUGINFOD,
	OPT_DEBUGINFOD_TIMEOUT,
};

/* Rows of an argp table. Each command takes the rows that it has use for. */
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

/* Parses one of these options. Returns OPTIONS_UNKNOWN for any other key. */
int symbol_options__parse(struct symbol_options *options, int key, char *arg, struct error *error);

/*
 * Calls @look_up with the symbol options that @options say and a line of progress, then demangles
 * @profile. Reports on stderr if debuginfod servers were not queried for all files. Returns 0 or a
 * negative errno with @error set.
 */
int symbol_options__look_up(const struct symbol_options *options, struct profile *profile,
			    int (*look_up)(struct symbols *symbols, void *context), void *context,
			    struct error *error);

/*
 * Runs profile__symbolize_offline() with the directories and servers of @options, then demangles.
 * With @says_missing it prints on stderr which files cannot be used. Returns 0 or a negative errno
 * with @error set.
 */
int offline_names__add(struct profile *profile, const struct symbol_options *options,
		       bool says_missing, struct error *error);

#endif
