/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Opens a data file and applies the options that the commands which read one have in common: files, view, selection. */
#ifndef ALLOCPROF_DATA_COMMAND_H
#define ALLOCPROF_DATA_COMMAND_H

#include <argp.h>
#include <stdbool.h>

#include "data_file.h"
#include "data_options.h"
#include "symbol_options.h"

struct error;
struct options_input;
struct profile;
struct stack_groups;
struct stack_view;

/* A command's args_doc, and the equivalent option. */
#define DATA_PATHS_ARGS "[FILE]"
#define DATA_PATHS_INPUT                                                                           \
	{                                                                                          \
		"input", 'i', "FILE", 0,                                                           \
			"The same as the argument FILE (default: allocprof.data)", 0               \
	}

/* The strings are the caller's. */
struct data_paths {
	const char *input;
	const char *output; /* NULL: not given */
	bool has_option, has_argument;
};

#define DATA_PATHS_DEFAULT                                                                         \
	{                                                                                          \
		.input = DATA_FILE_DEFAULT                                                         \
	}

/* Takes 'i', 'o' and OPTIONS_OPERAND. 0, -EINVAL with @error set, or OPTIONS_UNKNOWN. */
int data_paths__parse(struct data_paths *paths, int key, char *arg, struct error *error);

/* What the commands have that look names up for a data file; parsed by symbol_command__parse(). */
struct symbol_command {
	struct data_paths paths;
	struct symbol_options symbols;
};

/* An options_parser. */
int symbol_command__parse(int key, char *arg, struct options_input *input);

/* Zeroed is empty. */
struct selected {
	struct profile *profile;
	struct stack_view *view;
	struct stack_groups *groups;
	struct filtered filtered;
};

/* Options of a command that reads a data file. Zeroed selects everything. To be released. */
struct data_choice {
	struct data_paths paths; /* no output path: standard output */
	bool json, strict, no_pager;
	bool needs_no_groups; /* the command does not use selected.groups */
	struct view_choice view;
	struct filter_choice filter;
};

enum {
	OPT_DATA_FIRST = 0x400,
	OPT_JSON = OPT_DATA_FIRST,
	OPT_STRICT,
	OPT_NO_PAGER,
};

#define DATA_OPTION_NO_PAGER                                                                       \
	{                                                                                          \
		"no-pager", OPT_NO_PAGER, NULL, 0, "Print to the terminal without $PAGER", 0       \
	}

/*
 * Parses the options of data_paths__parse(), VIEW_OPTIONS, FILTER_OPTIONS and the table above;
 * returns as view_choice__parse().
 */
int data_choice__parse(struct data_choice *choice, int key, char *arg, struct error *error);
/* Looks up the cost @name: 0, or -EINVAL with @error set. */
int data_choice__parse_cost(const char *name, enum cost *cost, struct error *error);
/* output_file__write() with the output, input and pager of @choice. */
int data_choice__write(const struct data_choice *choice,
		       int (*write)(FILE *to, const void *context), const void *context,
		       struct error *error);
/* What completeness_messages__print() has to look at: enum completeness_flags. */
unsigned int data_choice__needs(const struct data_choice *choice);
void data_choice__release(struct data_choice *choice);

/*
 * Reads the input and applies both choices; -ENODATA also if the file has no data for @cost. 0 or a
 * negative errno with @error set. To be released in either case.
 */
int selected__open(struct selected *selected, struct data_choice *choice, enum cost cost,
		   struct error *error);
/* The second half of selected__open(): @selected already has the profile. */
int selected__choose(struct selected *selected, struct data_choice *choice, enum cost cost,
		     struct error *error);
/* The same for a reader that needs no counts where all are selected: these are not made then. */
int selected__choose_part(struct selected *selected, struct data_choice *choice, enum cost cost,
			  struct error *error);
void selected__release(struct selected *selected);

#endif
