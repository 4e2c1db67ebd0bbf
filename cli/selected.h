/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Opens a data file and applies the view and selection options of a report. */
#ifndef ALLOCPROF_SELECTED_H
#define ALLOCPROF_SELECTED_H

#include "data_paths.h"
#include "filter_options.h"
#include "view_options.h"

struct error;
struct profile;
struct stack_groups;
struct stack_view;

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
