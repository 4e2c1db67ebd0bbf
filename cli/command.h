/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A command of allocprof. Each has one file, cli/cmd_<name>.c, and one line in commands.c. */
#ifndef ALLOCPROF_COMMAND_H
#define ALLOCPROF_COMMAND_H

#include <argp.h>
#include <stdbool.h>

/* Exit statuses of allocprof; commands that launch another program also return those of env(1). */
enum {
	EXIT_GOOD = 0,
	EXIT_INCOMPLETE =
		/* With --strict: the data is incomplete; without it: the data contradicts itself. */
		1,
	EXIT_FAILED = 2,
	EXIT_USAGE = 64,
	EXIT_OURS = 125,       /* allocprof itself failed */
	EXIT_CANNOT_RUN = 126, /* the command exists but cannot be run */
	EXIT_NOT_FOUND = 127,
};

struct command {
	const char *name;
	const char *summary;  /* one line of `allocprof --help` */
	const char *args_doc; /* operands in the usage line, NULL if there are none */
	/* argp's doc: the text before the options, '\v', and the text after them. */
	const char *doc;
	const struct argp_option *options; /* ends with a zeroed entry */
	bool launches;		 /* options end at the first operand; the rest is a command line */
	int (*run)(char **argv); /* argv[0] is the command's name; returns the exit status */
};

/* All commands; the list ends with NULL. */
extern const struct command *const commands[];

/* Returns the command of this name, or NULL if there is none. */
const struct command *command__find(const char *name);

extern const struct command cmd_archive;
extern const struct command cmd_check;
extern const struct command cmd_ctl;
extern const struct command cmd_diff;
extern const struct command cmd_doctor;
extern const struct command cmd_env;
extern const struct command cmd_export;
extern const struct command cmd_flamegraph;
extern const struct command cmd_folded;
extern const struct command cmd_graph;
extern const struct command cmd_html;
extern const struct command cmd_query;
extern const struct command cmd_record;
extern const struct command cmd_report;
extern const struct command cmd_salvage;
extern const struct command cmd_serve;
extern const struct command cmd_stat;
extern const struct command cmd_symbolize;
extern const struct command cmd_top;

#endif
