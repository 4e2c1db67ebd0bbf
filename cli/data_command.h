/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The frame of the commands that read data files: options of files, view and selection, and the steps of a run. */
#ifndef ALLOCPROF_DATA_COMMAND_H
#define ALLOCPROF_DATA_COMMAND_H

#include <argp.h>
#include <stdbool.h>

#include "data_file.h"
#include "data_options.h"
#include "diff.h"
#include "options.h"
#include "symbol_options.h"

struct error;
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

#define DATA_OPTION_OUTPUT                                                                         \
	{                                                                                          \
		"output", 'o', "FILE", 0, "Write to FILE instead of standard output", 0            \
	}
#define DATA_OPTION_STRICT                                                                         \
	{                                                                                          \
		"strict", OPT_STRICT, NULL, 0,                                                     \
			"Exit with status 1 where calls were lost or stacks end early", 0          \
	}
#define DATA_OPTION_NO_PAGER                                                                       \
	{                                                                                          \
		"no-pager", OPT_NO_PAGER, NULL, 0, "Print to the terminal without $PAGER", 0       \
	}

/*
 * Parses the options of data_paths__parse(), VIEW_OPTIONS, FILTER_OPTIONS, --json, --strict and --no-pager;
 * returns as view_choice__parse().
 */
int data_choice__parse(struct data_choice *choice, int key, char *arg, struct error *error);
/* Looks up the cost @name: 0, or -EINVAL with @error set. */
int data_choice__parse_cost(const char *name, enum cost *cost, struct error *error);
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

/* A run of a command that reads one data file, or two that it compares. Zeroed is empty. */
struct data_run {
	struct data_choice choice;
	const char *base; /* the data file to compare with; NULL: DIFF_BEFORE is empty */
	struct selected selected[DIFF_SIDES];
	unsigned int needs; /* enum completeness_flags, beside those of the choice */
};

/* The steps that a command has for itself. They get the struct that data_command__run() got. */
struct data_command {
	const struct command *command;
	options_parser parse;
	/* Returns the exit status of what the command does in place of all below, or OPTIONS_READ. NULL: always these. */
	int (*instead)(const void *run);
	/* Reads and selects what is to be written. 0, or a negative errno with @error set. */
	int (*prepare)(void *run, struct error *error);
	int (*write)(FILE *to, const void *run);
	void (*tell)(const void *run); /* Prints further messages. NULL: there are none */
	void (*release)(void *run);    /* NULL: the command has nothing of its own */
	bool hides_run;		       /* what is written does not say which run it is of */
	bool tells_all; /* what is written says what was sampled, and left out at the exit */
};

/* Runs @command; @run is its own struct, which begins with a struct data_run. Returns the exit status, and releases @run. */
int data_command__run(const struct data_command *command, void *run, char **argv);

#endif
