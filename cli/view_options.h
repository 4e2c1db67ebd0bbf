/* SPDX-License-Identifier: GPL-3.0-or-later */
/* View options of the commands that print stacks. */
#ifndef ALLOCPROF_VIEW_OPTIONS_H
#define ALLOCPROF_VIEW_OPTIONS_H

#include <argp.h>
#include <stdbool.h>

#include "demangling.h"
#include "stack_view.h"

struct error;
struct profile;

enum {
	OPT_VIEW_FIRST = 0x200,
	OPT_LINES = OPT_VIEW_FIRST,
	OPT_BY,
	OPT_DEMANGLE,
	OPT_NO_INLINE,
	OPT_RAW_STACKS,
	OPT_WRAPPERS,
};

/*
 * For a command's argp table; they form a group of their own in its help. VIEW_FRAME_OPTIONS are
 * those that say how a frame is printed, VIEW_OPTIONS are all.
 */
/* clang-format off */
#define VIEW_FRAME_OPTIONS \
	{ NULL, 0, NULL, 0, "How stacks are printed:", 2 }, \
	{ "demangle", OPT_DEMANGLE, "FORM", 0, "Names of functions: simple (default), full, none", 2 }, \
	DEMANGLING_OPTION_COMMAND(2), \
	{ "lines", OPT_LINES, NULL, 0, "Distinguish source lines, and print them", 2 }, \
	{ "no-inline", OPT_NO_INLINE, NULL, 0, "Leave out functions that were inlined", 2 }, \
	{ "raw-stacks", OPT_RAW_STACKS, NULL, 0, "Print the allocator's wrappers and the inner functions of the C++ library too", 2 }, \
	{ "wrappers", OPT_WRAPPERS, "FILE", 0, "More functions to leave out, as FILE lists them", 2 }
#define VIEW_OPTIONS(by_default) \
	VIEW_FRAME_OPTIONS, \
	{ "by", OPT_BY, "LIST", 0, "Begin stacks with the names of these: process, thread, or both " \
	  "with a comma (default: " by_default ")", 2 }
/* clang-format on */

/* Zeroed is the default. The strings are the caller's. */
struct view_choice {
	struct stack_view_options options; /* all but the wrappers */
	bool by_process, by_thread;	   /* from --by; folded always has the process */
	const char *wrappers_path, *demangle_command;
};

/* Parses an option of the table. 0, -EINVAL with @error set, or OPTIONS_UNKNOWN. */
int view_choice__parse(struct view_choice *choice, int key, char *arg, struct error *error);

/* 0, or -EINVAL with @error set if @no_comm, that is --no-comm, is given beside --by=process. */
int view_choice__check_no_comm(const struct view_choice *choice, bool no_comm, struct error *error);

/*
 * Demangles @profile and makes the view of its stacks, to be freed. A filter that fails only causes
 * a warning on stderr. 0 or a negative errno with @error set.
 */
int view_choice__open(const struct view_choice *choice, struct profile *profile,
		      struct stack_view **view, struct error *error);

#endif
