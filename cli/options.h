/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Parses the options of every command. The rows of a table are argp's, which prints the help; the
 * words are read here, because argp's messages name no remedy.
 */
#ifndef ALLOCPROF_OPTIONS_H
#define ALLOCPROF_OPTIONS_H

#include <linux/types.h>
#include <stdbool.h>
#include <sys/types.h>

#include "command.h"

struct error;

struct options_input {
	void *options; /* the command's own struct */
	/* The operand that is being parsed and those behind it; ends with NULL. */
	char **operands;
	struct error *error; /* to be set if the parser returns -EINVAL */
};

/* Keys that a parser gets besides those of its table. */
enum {
	/* An operand. A command that launches another gets only the first one, and takes all of
	 * input->operands. */
	OPTIONS_OPERAND = -1,
	OPTIONS_END = -2, /* called once, when all words have been parsed */
};

/* Result of a parser for a key that belongs to another parser. */
#define OPTIONS_UNKNOWN 1

/* Takes the option @key with its value @arg, which is NULL if it has none. Returns 0, a negative
 * errno with the error set, or OPTIONS_UNKNOWN. */
typedef int (*options_parser)(int key, char *arg, struct options_input *input);

/*
 * Parses @argv, which ends with NULL, by @command's table, and moves the operands to its
 * beginning. Returns 0 if the command may go on; 1 if help was requested and has been printed; or
 * -EINVAL with @error set, after which the command exits with EXIT_USAGE.
 */
int options__parse(const struct command *command, options_parser parser, void *options, char **argv,
		   struct error *error);

/* Does the same, and prints the error on stderr. Returns OPTIONS_READ, or the exit status. */
#define OPTIONS_READ (-1)
int options__read(const struct command *command, options_parser parser, void *options, char **argv);

/* Prints the full help of @command to stdout. */
void options__print_help(const struct command *command);

/* Checks the words without parsing values. Returns 0, 1 if help is requested, or -EINVAL with
 * @error set. */
int options__check(const struct command *command, char **argv, struct error *error);

/* Refuses an operand that the command does not take. Returns -EINVAL. */
int options__reject_operand(const char *operand, struct error *error);

/* Returns the member of @names, which ends with NULL, that is most similar to @word, or NULL if
 * none is similar. */
const char *options__nearest(const char *word, const char *const *names);

/* Row of a command's table: the rows after it are listed below @title in the command's help. */
#define OPTIONS_GROUP(title)                                                                       \
	{                                                                                          \
		NULL, 0, NULL, 0, title, 0                                                         \
	}

/* Options of every command, as an argp table. */
extern const struct argp_option options_common[];

/*
 * Calls @visit with each option of @command's table and of the common one until @visit returns
 * true; returns whether it did. @meaning is the option that @option is an alias of, or @option
 * itself.
 */
typedef bool (*options_visit)(const struct argp_option *option, const struct argp_option *meaning,
			      void *context);
bool options__visit(const struct command *command, options_visit visit, void *context);

/* These functions parse a number, and return 0, or -EINVAL with @error set. */

/* Parses "500ms", "10s", "5m", "1h", or plain seconds; greater than 0. */
int number__parse_duration(const char *text, __u64 *ns, struct error *error);
/* Parses "64", "4K" (of 1024), "1MB" (of 1000) or "1MiB". */
int number__parse_size(const char *text, __u64 *bytes, struct error *error);
/* Parses "98%", which becomes 0.98. */
int number__parse_share(const char *text, double *share, struct error *error);
/* Parses a plain count. */
int number__parse_count(const char *text, __u64 *count, struct error *error);
/* Parses a process id. */
int number__parse_pid(const char *text, pid_t *pid, struct error *error);

/* Parses a plain number from @least to @most. Returns whether @text is one. */
bool number__parse_between(const char *text, __u64 least, __u64 most, __u64 *value);

#endif
