/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The common part of the commands that read data files: options of files, view and selection, and the
 * steps of a run. */
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
struct event_blocks;
struct event_blocks_options;
struct event_chart;
struct event_log_reader;
struct profile;
struct stack_groups;
struct stack_view;

/* The args_doc of such a command, and the option that is equivalent to the operand. */
#define DATA_PATHS_ARGS "[FILE]"
#define DATA_PATHS_INPUT                                                                           \
	{                                                                                          \
		"input", 'i', "FILE", 0,                                                           \
			"The same as the argument FILE (default: allocprof.data)", 0               \
	}

/* The paths of a command; the caller owns the strings. */
struct data_paths {
	const char *input;
	const char *output; /* NULL: not given */
	bool has_option, has_argument;
};

#define DATA_PATHS_DEFAULT                                                                         \
	{                                                                                          \
		.input = DATA_FILE_DEFAULT                                                         \
	}

/* Parses the keys 'i', 'o' and OPTIONS_OPERAND. Returns 0, -EINVAL with @error set, or
 * OPTIONS_UNKNOWN for other keys. */
int data_paths__parse(struct data_paths *paths, int key, char *arg, struct error *error);

/* The options of commands that look names up for a data file; symbol_command__parse() fills them
 * in. */
struct symbol_command {
	struct data_paths paths;
	struct symbol_options symbols;
};

/* An options_parser for struct symbol_command. */
int symbol_command__parse(int key, char *arg, struct options_input *input);

/* A profile, and what is selected of it. Zeroed it is empty. */
struct selected {
	struct profile *profile;
	struct stack_view *view;
	struct stack_groups *groups;
	struct filtered filtered;
};

/* Options of a command that reads a data file. Zeroed they select everything. The caller releases
 * them. */
struct data_choice {
	struct data_paths paths; /* without an output path, the command writes to standard output */
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
 * Parses the options of data_paths__parse(), VIEW_OPTIONS, FILTER_OPTIONS, --json, --strict and
 * --no-pager. Returns what view_choice__parse() returns.
 */
int data_choice__parse(struct data_choice *choice, int key, char *arg, struct error *error);
/* Looks up the cost @name. Returns 0, or -EINVAL with @error set. */
int data_choice__parse_cost(const char *name, enum cost *cost, struct error *error);
/*
 * Reads the input and applies the choices of view and filter. Returns 0 or a negative errno with
 * @error set: -ENODATA also if the file has no data for @cost. The caller releases @selected in
 * either case.
 */
int selected__open(struct selected *selected, struct data_choice *choice, enum cost cost,
		   struct error *error);
/* Does the second half of selected__open() for a @selected that already has the profile. */
int selected__choose(struct selected *selected, struct data_choice *choice, enum cost cost,
		     struct error *error);
/* Does the same for a caller that does not need the selected counts if all are selected: then they
 * are not computed. */
int selected__choose_part(struct selected *selected, struct data_choice *choice, enum cost cost,
			  struct error *error);
/* Works like filter__select_lifetimes(). */
int selected__choose_lifetimes(const struct selected *selected, struct data_choice *choice,
			       bool **lifetimes, struct error *error);
void selected__release(struct selected *selected);

/* A run of a command that reads one data file, or two that it compares. Zeroed it is empty. */
struct data_run {
	struct data_choice choice;
	const char *base; /* the data file to compare with; NULL: DIFF_BEFORE is empty */
	struct selected selected[DIFF_SIDES];
	unsigned int needs; /* mask of enum completeness_flags, beside those of the choice */
	/* The event log of DIFF_AFTER, at its end, where the command read it; what it lacks is said. */
	struct event_log_reader *log;
};

/* Opens the event log of DIFF_AFTER, and reads those of its blocks that the choice selects; @wanted need not name
 * the filter. The caller releases *@out. */
int data_run__read_blocks(struct data_run *run, struct event_blocks_options *wanted,
			  struct event_blocks *out, struct error *error);
/* Does the same for the calls of these blocks, in their order. */
int data_run__read_chart(struct data_run *run, enum cost cost, struct event_chart *out,
			 struct error *error);

/* The steps that each command defines for itself. They get the struct that data_command__run()
 * got. */
struct data_command {
	const struct command *command;
	options_parser parse;
	/* Does something else than the steps below, and returns its exit status; or returns
	 * OPTIONS_READ, and the steps below follow. NULL: they always follow. */
	int (*instead)(const void *run);
	/* Reads and selects the data that is to be written. Returns 0, or a negative errno with
	 * @error set. */
	int (*prepare)(void *run, struct error *error);
	int (*write)(FILE *to, const void *run);
	void (*tell)(const void *run); /* prints further messages; NULL: there are none */
	/* Returns the exit status where nothing is missing; NULL: EXIT_GOOD. */
	int (*judge)(const void *run);
	void (*release)(void *run); /* releases what the command has for itself; NULL: nothing */
	bool hides_run;		    /* the output does not say which run it shows */
	bool tells_all; /* the output says what was sampled, and what was left out at the exit */
};

/* Runs @command. @run is the command's own struct, which begins with a struct data_run; it is
 * released. Returns the exit status. */
int data_command__run(const struct data_command *command, void *run, char **argv);

#endif
