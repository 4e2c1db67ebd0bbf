/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Options of the commands that read a data file: how stacks are printed, and what is selected. */
#ifndef ALLOCPROF_DATA_OPTIONS_H
#define ALLOCPROF_DATA_OPTIONS_H

#include <argp.h>
#include <stdbool.h>

#include "filter.h"
#include "stack_view.h"
#include "suppressions.h"
#include "symbol_options.h"

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
	{ "wrappers", OPT_WRAPPERS, "FILE", 0, "Also leave out the functions that FILE lists", 2 }
#define VIEW_OPTIONS(by_default) \
	VIEW_FRAME_OPTIONS, \
	{ "by", OPT_BY, "LIST", 0, "Begin stacks with the names of these: process, pid (its name and " \
	  "number), arguments, cgroup (container or unit), thread, type of the blocks, or several with " \
	  "commas (default: " by_default ")", 2 }
/* clang-format on */

/* How stacks are shown. Zeroed it is the default. The caller owns the strings. */
struct view_choice {
	struct stack_view_options options; /* all options except the wrappers */
	/* Set by --by; the command folded always shows the process. */
	bool by_process, by_thread;
	bool by_pid;	   /* processes have their numbers beside their names */
	bool by_group;	   /* processes have the names of their control groups */
	bool by_arguments; /* processes have their command lines */
	const char *wrappers_path, *demangle_command;
};

/* Parses an option of VIEW_OPTIONS. Returns 0, -EINVAL with @error set, or OPTIONS_UNKNOWN. */
int view_choice__parse(struct view_choice *choice, int key, char *arg, struct error *error);

/* If stacks are to begin with types, shows these without the stacks below them. */
void view_choice__show_types_alone(struct view_choice *choice);

/* Checks that @no_comm, the option --no-comm, is not given beside --by=process. Returns 0, or
 * -EINVAL with @error set. */
int view_choice__check_no_comm(const struct view_choice *choice, bool no_comm, struct error *error);

/*
 * Demangles @profile and makes the view of its stacks, which the caller frees. If a filter of
 * names fails, that only causes a warning on stderr. Returns 0 or a negative errno with @error
 * set.
 */
int view_choice__open(const struct view_choice *choice, struct profile *profile,
		      struct stack_view **view, struct error *error);

enum {
	OPT_FILTER_FIRST = 0x300,
	OPT_LEAKS = OPT_FILTER_FIRST,
	OPT_FREED,
	OPT_OLDER,
	OPT_MIN_LIFETIME,
	OPT_MAX_LIFETIME,
	OPT_FREED_AFTER,
	OPT_MIN_SIZE,
	OPT_MAX_SIZE,
	OPT_THROUGH,
	OPT_NOT_THROUGH,
	OPT_MODULE,
	OPT_STACK,
	OPT_NOT_STACK,
	OPT_THREAD,
	OPT_PROCESS,
	OPT_FUNCTION,
	OPT_SUPPRESSIONS,
	OPT_RUN,
	OPT_AT_EXIT,
	OPT_WHERE,
};

/* For a command's argp table; they form a group of their own in its help. */
/* clang-format off */
#define FILTER_NAME_OPTIONS \
	{ "through", OPT_THROUGH, "FUNCTION", 0, \
	  "Stacks with FUNCTION among their frames: a name, a pattern with * or a " \
	  "/regular expression/", 1 }, \
	{ "not-through", OPT_NOT_THROUGH, "FUNCTION", 0, \
	  "Stacks without FUNCTION among their frames", 1 }, \
	{ "module", OPT_MODULE, "NAME", 0, "Stacks through the program or library NAME", 1 }, \
	{ "thread", OPT_THREAD, "NAME", 0, "Threads of this name", 1 }, \
	{ "process", OPT_PROCESS, "NAME|PID", 0, "Processes of this name or number", 1 }, \
	{ "function", OPT_FUNCTION, "NAME", 0, "Calls of this function of the allocator", 1 }
#define FILTER_OPTIONS \
	{ NULL, 0, NULL, 0, "What to select; all of these must hold:", 1 }, \
	{ "where", OPT_WHERE, "SQL", 0, \
	  "Blocks of which an expression holds, such as 'leaked AND size >= 65536': allocprof-where(7)", 1 }, \
	{ "leaks", OPT_LEAKS, NULL, 0, "Blocks that were still allocated at the end", 1 }, \
	{ "at-exit", OPT_AT_EXIT, NULL, 0, \
	  "With --leaks, what was left at the end, whatever the program freed in its last moments", 1 }, \
	{ "freed", OPT_FREED, NULL, 0, "Blocks that were freed", 1 }, \
	{ "older", OPT_OLDER, "TIME", 0, \
	  "Blocks that were still allocated and TIME old, or a share such as 5%", 1 }, \
	{ "min-lifetime", OPT_MIN_LIFETIME, "TIME", 0, \
	  "Blocks that lived for TIME or more, freed or not", 1 }, \
	{ "alive-for", 0, NULL, OPTION_ALIAS, NULL, 1 }, \
	{ "max-lifetime", OPT_MAX_LIFETIME, "TIME", 0, \
	  "Blocks that were freed after TIME or less", 1 }, \
	{ "freed-after", OPT_FREED_AFTER, "TIME", 0, \
	  "Blocks that were freed TIME after the start or later; 98% is in the last 2%", 1 }, \
	{ "min-size", OPT_MIN_SIZE, "SIZE", 0, \
	  "Stacks whose blocks have SIZE bytes or more on average", 1 }, \
	{ "max-size", OPT_MAX_SIZE, "SIZE", 0, \
	  "Stacks whose blocks have SIZE bytes or less on average", 1 }, \
	FILTER_NAME_OPTIONS, \
	{ "stack", OPT_STACK, "ID", 0, "The stack that `allocprof report` printed as ID", 1 }, \
	{ "not-stack", OPT_NOT_STACK, "ID", 0, "All but the stack ID", 1 }, \
	{ "run", OPT_RUN, "N", 0, "Run N of a recording of several (record -r), or all", 1 }, \
	{ "suppressions", OPT_SUPPRESSIONS, "FILE", 0, \
	  "Leave out the leaks that FILE lists as LeakSanitizer has it", 1 }
/* clang-format on */

/* The user's selection. Zeroed it selects everything. The caller releases it. */
struct filter_choice {
	struct filter_options options;
	size_t rules_room, where_room;
	const char *suppressions_path; /* NULL: none */
	bool suppressions_are_read;
	struct suppressions suppressions;
	__u32 run;	    /* 0: not given */
	bool all_runs;	    /* --run=all was given */
	bool is_of_one_run; /* the command cannot add up runs: run 1 is the default */
};

/* Parses an option of FILTER_OPTIONS. Returns 0, -EINVAL with @error set, or OPTIONS_UNKNOWN. */
int filter_choice__parse(struct filter_choice *choice, int key, char *arg, struct error *error);
/* Reads the file of suppressions, if it has not been read. Returns 0 or a negative errno with
 * @error set. */
int filter_choice__read(struct filter_choice *choice, struct error *error);
/* Warns on stderr about names in @choice that match nothing in the profile. */
void filter_choice__report_unmatched(const struct filter_choice *choice);
/* Says on stderr if --leaks selects what was live before the program's end, for commands whose
 * output does not say so. */
void filter_choice__report_exit(const struct filter_choice *choice);
void filter_choice__release(struct filter_choice *choice);

#endif
