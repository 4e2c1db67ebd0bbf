/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Option parsing for every command: argp, with one sentence of our own for what is wrong. */
#ifndef ALLOCPROF_OPTIONS_H
#define ALLOCPROF_OPTIONS_H

#include <argp.h>

#include "command.h"

struct error;

/* Passed to the parser as state->input. */
struct options_input {
	void *options;	     /* the command's own struct */
	struct error *error; /* set it and return EINVAL where a value is wrong */
};

/*
 * Parses @argv by @command's table and @parser (argp's kind, which gets a struct options_input).
 * 0: go on. 1: help was asked for and printed. -EINVAL: @error says why; exit with EXIT_USAGE.
 */
int options__parse(const struct command *command, argp_parser_t parser, void *options, int argc,
		   char **argv, struct error *error);

/* The same, and tells on stderr what is wrong. OPTIONS_READ, or the status to exit with. */
#define OPTIONS_READ (-1)
int options__read(const struct command *command, argp_parser_t parser, void *options, int argc,
		  char **argv);

/* Prints the full help of @command to stdout. */
void options__print_help(const struct command *command);

/* The check before argp's own parse: 0, 1 where help is asked for, or -EINVAL with @error set. */
int options__check(const struct command *command, int argc, char **argv, struct error *error);

/* Words of an ARGP_KEY_ARGS or ARGP_KEY_ARG that a command does not take. Returns EINVAL. */
int options__reject_argument(struct options_input *input, const char *argument);

/* The member of @names (ends with NULL) that was probably meant by @word, or NULL. */
const char *options__nearest(const char *word, const char *const *names);

/* Options that every command has, in an argp table that ends with an empty one. */
extern const struct argp_option options_common[];

#endif
