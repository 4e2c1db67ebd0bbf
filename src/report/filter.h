/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Selects counts of a profile, and blocks of these, for a report. All conditions must hold. Each option is short for an
 * expression of SQL (where.h).
 *
 * Times are known only by epoch (meta "epoch_ns"): a block is selected if its epochs prove the
 * condition, and counts as unsure if they leave it open.
 */
#ifndef ALLOCPROF_FILTER_H
#define ALLOCPROF_FILTER_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "exit_frees.h"
#include "selection.h"
#include "where.h"

struct error;
struct profile;
struct profile_count;
struct stack_groups;
struct suppressions;

/* A time, or a share of the recording's duration. */
struct filter_time {
	bool is_given;
	bool is_share;
	__u64 ns;
	double share; /* 0 to 1 */
};

/* The objects that a rule matches. All rules about frames must hold; of the rules of each other kind one is
 * enough. */
enum filter_kind {
	FILTER_THROUGH, /* pattern: function of any frame, inlined or not */
	FILTER_MODULE,	/* pattern: path or base name of any frame's file */
	/* Id of a stack: selects it and all that print alike; negated: none of them. */
	FILTER_STACK,
	FILTER_THREAD,	 /* pattern: thread name */
	FILTER_PROCESS,	 /* pattern: process name; or a pid */
	FILTER_FUNCTION, /* pattern: function of the allocator */
};

struct filter_rule {
	enum filter_kind kind;
	bool negated; /* only FILTER_THROUGH and FILTER_STACK */
	const char *text;
	bool found; /* set by filter__apply(): @text matched something */
	/* FILTER_FUNCTION, also set by filter__apply(): the function only frees, and so has no
	 * cost. */
	bool frees;
};

struct filter_options {
	bool leaks; /* select live blocks only */
	/* --leaks selects the blocks that are live after the frees that exit_frees__find() finds,
	 * not before them. */
	bool at_exit;
	/* Select freed blocks only, including those that an exec ended. */
	bool freed;
	struct filter_time older; /* live, and at least this old at the end */
	/* Freed blocks by their lifetime, live ones by their age. */
	struct filter_time min_lifetime;
	struct filter_time max_lifetime; /* freed blocks only */
	struct filter_time freed_after;	 /* freed at this time since the start, or later */
	__u64 min_size_bytes;		 /* least average size of a count's blocks */
	__u64 max_size_bytes;		 /* greatest average size, if has_max_size */
	bool has_max_size;
	struct filter_rule *rules;
	size_t n_rules;
	struct filter_where *where; /* expressions of --where, all of which must hold */
	size_t n_where;
	struct suppressions *suppressions; /* leaks to hide, or NULL */
	/* Set by filter__apply() with @leaks, unless @at_exit, or if an expression asks what is leaked. */
	struct exit_frees exit_frees;
	bool runs_apart; /* do not add up the runs' selections */
	bool no_counted; /* leave out calls that are only counted, also where a condition is on the function */
};

/* Parameters for adding up runs. */
struct filter_runs {
	__u32 peak_run; /* the run whose peak counts, since peaks do not add up; 0: each run's
			 * own */
	__u64 *late_ns; /* by the run's number - 1: by how much the longest run was longer; owned */
};

struct filtered {
	struct selection *counts; /* selected costs by count's id - 1; owned */
	struct selection total;	  /* sum of all counts */
	struct selection
		/* Sum of the unfiltered profile; the live part is what was live before the frees
		 * in @exit_frees. */
		whole;
	__u64 left, left_bytes;		 /* blocks and bytes that were live at the end */
	struct profile_estimate of_left; /* their precision */
	struct exit_frees exit_frees;	 /* of the filter's options */
	/* The most bytes that were live at a time, as counted; the stacks' parts of @total add up
	 * to within 1 % of it. 0: not all is selected, or it is not known. */
	__u64 peak_bytes;
	__u64 end_ns;	/* duration; the longest one of several runs */
	__u64 epoch_ns; /* epoch length; the greatest one of several runs; 0: without --live */
	struct filter_runs runs;
};

/* Returns whether @profile has blocks: it was recorded with --live. */
bool filter__has_live(const struct profile *profile);

/*
 * Applies @options: marks rules that match as found, and counts in the suppressions what they
 * hide. Ignores calls of free. @groups may be NULL unless filter__needs_groups(). Returns
 * 0, or a negative errno with @error set: -EINVAL for a stack that does not exist, -ENODATA if
 * @profile lacks the data. The caller releases @filtered.
 */
int filter__apply(const struct profile *profile, const struct stack_groups *groups,
		  struct filter_options *options, struct filtered *filtered, struct error *error);
void filtered__release(struct filtered *filtered);

/*
 * Selects lifetimes by options that filter__apply() has accepted. The caller frees *@selected,
 * which is indexed like the profile's lifetimes. Does not count suppressions. Returns 0 or a
 * negative errno with @error set.
 */
int filter__select_lifetimes(const struct profile *profile, const struct stack_groups *groups,
			     struct filter_options *options, bool **selected, struct error *error);

/* Stores all blocks of @count, unfiltered: none, if its function is only counted. With @runs births are
 * shifted as if all runs had ended together; NULL: they are as in their run. */
void filter__whole(const struct profile *profile, const struct filter_runs *runs,
		   const struct profile_count *count, struct selection *selection);

/* Works like filter__whole(), but also stores the calls of a function that is only counted. They belong to no
 * other sum: a filter selects them where it names functions. */
void filter__whole_or_calls(const struct profile *profile, const struct filter_runs *runs,
			    const struct profile_count *count, struct selection *selection);

/* Checks whether the conditions agree, and @cost can be computed with them: temporary blocks and
 * the peak are not known by epoch. Needs no profile. Returns 0, or -EINVAL with @error set. */
int filter__check_options(const struct filter_options *options, enum cost cost,
			  struct error *error);
/* Returns whether a rule or an expression is about numbers of stacks. */
bool filter__names_stacks(const struct filter_options *options);
/* Returns whether a rule or an expression is about these, or about what reports print of stacks. */
bool filter__needs_groups(const struct filter_options *options);
/* Returns whether it matters when blocks ended. */
bool filter__needs_times(const struct filter_options *options);
/* Returns whether all blocks of all counts are selected. */
bool filter__selects_all(const struct filter_options *options);
/* Returns whether blocks are selected one by one, so that their temporary ones and their peak are
 * unknown. */
bool filter__selects_blocks(const struct filter_options *options);
/* Checks whether @profile has data for @cost. Returns 0, or -ENODATA with @error set. */
int filter__check_cost(const struct profile *profile, enum cost cost, struct error *error);

#endif
