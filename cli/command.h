/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a command of allocprof is. One file each, cli/cmd_<name>.c, and one line in commands.c. */
#ifndef ALLOCPROF_COMMAND_H
#define ALLOCPROF_COMMAND_H

#include <argp.h>
#include <stdbool.h>

/* Exit statuses; commands that launch others have env(1)'s besides. */
enum {
	EXIT_GOOD = 0,
	EXIT_INCOMPLETE = 1, /* with --strict: the data is not complete */
	EXIT_FAILED = 2,
	EXIT_USAGE = 64,
	EXIT_OURS = 125,       /* allocprof failed, not the command it was to launch */
	EXIT_CANNOT_RUN = 126, /* the command is there but cannot be run */
	EXIT_NOT_FOUND = 127,
};

struct command {
	const char *name;
	const char *summary;  /* one line of `allocprof --help` */
	const char *args_doc; /* what follows the options in the usage, NULL for nothing */
	const char *doc;      /* argp's: the text before the options, '\v', the text after them */
	const struct argp_option *options; /* ends with an empty one */
	bool launches; /* options end at the first word that is none: the rest is a command */
	int (*run)(int argc, char **argv); /* argv[0] is the command's name; returns the status */
};

/* Ends with NULL. */
extern const struct command *const commands[];

/* NULL where there is none of this name. */
const struct command *command__find(const char *name);

extern const struct command cmd_archive;
extern const struct command cmd_check;
extern const struct command cmd_ctl;
extern const struct command cmd_diff;
extern const struct command cmd_doctor;
extern const struct command cmd_folded;
extern const struct command cmd_graph;
extern const struct command cmd_record;
extern const struct command cmd_report;
extern const struct command cmd_stat;
extern const struct command cmd_symbolize;

#endif
