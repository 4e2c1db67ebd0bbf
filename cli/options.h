/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Option parsing for every command: argp, with our own error messages. */
#ifndef ALLOCPROF_OPTIONS_H
#define ALLOCPROF_OPTIONS_H

#include <argp.h>

#include "command.h"

struct error;

/* Passed to the parser as state->input. */
struct options_input {
	void *options;	     /* the command's own struct */
	struct error *error; /* filled in if a value is wrong; the parser then returns EINVAL */
};

/*
 * Parses @argv with @command's table and @parser, which gets a struct options_input. 0: go on. 1:
 * the help was requested and printed. -EINVAL: @error is set; exit with EXIT_USAGE.
 */
int options__parse(const struct command *command, argp_parser_t parser, void *options, int argc,
		   char **argv, struct error *error);

/* The same, and prints the error on stderr. OPTIONS_READ, or the exit status. */
#define OPTIONS_READ (-1)
int options__read(const struct command *command, argp_parser_t parser, void *options, int argc,
		  char **argv);

/* Prints the full help of @command to stdout. */
void options__print_help(const struct command *command);

/* Precedes argp's own parse: 0, 1 if help is requested, or -EINVAL with @error set. */
int options__check(const struct command *command, int argc, char **argv, struct error *error);

/* Rejects an ARGP_KEY_ARGS or ARGP_KEY_ARG that the command does not take. Returns EINVAL. */
int options__reject_argument(struct options_input *input, const char *argument);

/* The member of @names (ends with NULL) nearest to @word, or NULL if none is similar. */
const char *options__nearest(const char *word, const char *const *names);

/* Options of every command, as an argp table. */
extern const struct argp_option options_common[];

#endif
