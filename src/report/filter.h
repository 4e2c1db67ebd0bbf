/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Selects the counts of a profile, and the blocks of these, for a report. All conditions must hold.
 *
 * Times are known by epoch (meta "epoch_ns"): a block is selected if its epochs prove the
 * condition, and counted as unsure if they leave it open.
 */
#ifndef ALLOCPROF_FILTER_H
#define ALLOCPROF_FILTER_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "selection.h"

struct error;
struct profile;
struct profile_count;
struct stack_groups;
struct suppressions;

/* The frees by which a program ends: when they began, how long they took, and how much they freed. */
struct exit_frees {
	__u64 epoch; /* the first of the end; 0: not much was freed then */
	__u64 took_ns;
	__u64 freed_bytes;
};

/*
 * Finds the last moments of a recording whose processes have all ended, if they freed a fourth and 1 MiB or more of
 * what was live: exit handlers, an interpreter that takes itself apart, or a program that is tidy. They are the epochs at the end
 * in which little was allocated beside what was freed. *@out is zero for several runs, and if there are none such. 0, -ENOMEM,
 * or -EINVAL for a damaged file, with @error set.
 */
int exit_frees__find(const struct profile *profile, struct exit_frees *out, struct error *error);

/* A time, or a share of the recording's duration. */
struct filter_time {
	bool is_given;
	bool is_share;
	__u64 ns;
	double share; /* 0 to 1 */
};

/* What a rule matches. Rules of one kind must all hold if they are about frames; of the other kinds
 * one is enough. */
enum filter_kind {
	FILTER_THROUGH,	 /* pattern: function of any frame, inlined or not */
	FILTER_MODULE,	 /* pattern: path or base name of any frame's file */
	FILTER_STACK,	 /* id of a stack: it and all that print alike; negated: none of them */
	FILTER_THREAD,	 /* pattern: thread name */
	FILTER_PROCESS,	 /* pattern: process name; or a pid */
	FILTER_FUNCTION, /* pattern: function of the allocator */
};

struct filter_rule {
	enum filter_kind kind;
	bool negated; /* only FILTER_THROUGH and FILTER_STACK */
	const char *text;
	bool found; /* set by filter__apply(): @text matched something */
	bool frees; /* FILTER_FUNCTION, set by it, too: a function that only frees, and has no cost */
};

struct filter_options {
	bool leaks; /* live blocks only */
	bool at_exit; /* of --leaks: those that are live after what exit_frees__find() finds, not before */
	bool freed;			 /* freed blocks only, including those that an exec ended */
	struct filter_time older;	 /* live, and at least this old at the end */
	struct filter_time min_lifetime; /* freed blocks by lifetime, live ones by age */
	struct filter_time max_lifetime; /* freed ones only */
	struct filter_time freed_after;	 /* freed at this time since the start or later */
	__u64 min_size_bytes;		 /* average size of a count's blocks */
	__u64 max_size_bytes;		 /* the same, if has_max_size */
	bool has_max_size;
	struct filter_rule *rules;
	size_t n_rules;
	struct suppressions *suppressions; /* leaks to hide, or NULL */
	struct exit_frees exit_frees;	   /* set by filter__apply() with @leaks, but @at_exit */
	bool runs_apart;		   /* do not add up the runs' selections */
};

/* Parameters for adding up runs. */
struct filter_runs {
	__u32 peak_run; /* the run whose peak counts, since peaks do not add up; 0: each run's
			 * own */
	__u64 *late_ns; /* by number - 1: how much longer the longest run was; owned */
};

struct filtered {
	struct selection *counts; /* by count's id - 1; owned */
	struct selection total;	  /* sum of all counts */
	struct selection
		whole; /* of the unfiltered profile; live is what was live before exit_frees */
	__u64 left, left_bytes;		 /* what was live at the end, */
	struct profile_estimate of_left; /* and its precision */
	struct exit_frees exit_frees;	 /* of the filter's options */
	/* Most bytes that were live at a time, as counted, which the stacks' parts of @total add up to within 1 %;
	 * 0 where not all is selected or it is not known. */
	__u64 peak_bytes;
	__u64 end_ns;	/* duration; of several runs the longest */
	__u64 epoch_ns; /* of several runs the greatest; 0: without --live */
	struct filter_runs runs;
};

/* Whether @profile has blocks: it was recorded with --live. */
bool filter__has_live(const struct profile *profile);

/*
 * Applies @options; marks rules that match as found, and counts in the suppressions what they hide.
 * Ignores calls of free. @groups may be NULL without rules about numbers of stacks. 0, or a negative
 * errno with @error set: -EINVAL for a stack that does not exist, -ENODATA if @profile lacks the data.
 * @filtered is to be released.
 */
int filter__apply(const struct profile *profile, const struct stack_groups *groups,
		  struct filter_options *options, struct filtered *filtered, struct error *error);
void filtered__release(struct filtered *filtered);

/*
 * The same by lifetime, for options that filter__apply() accepted: *@selected, by index in the
 * profile's lifetimes, is to be freed. Suppressions are not counted. 0 or a negative errno with
 * @error set.
 */
int filter__select_lifetimes(const struct profile *profile, const struct stack_groups *groups,
			     struct filter_options *options, bool **selected, struct error *error);

/* All blocks of @count, unfiltered. With @runs births are shifted as if all runs had ended
 * together; NULL: as in its run. */
void filter__whole(const struct profile *profile, const struct filter_runs *runs,
		   const struct profile_count *count, struct selection *selection);

/* Whether the conditions go together and @cost can be computed with them: temporary blocks and the
 * peak are not known by epoch. Needs no profile. 0 or -EINVAL with @error set. */
int filter__check_options(const struct filter_options *options, enum cost cost,
			  struct error *error);
/* Whether a rule is about the number of a stack. */
bool filter__names_stacks(const struct filter_options *options);
/* Whether it matters when blocks ended. */
bool filter__needs_times(const struct filter_options *options);
/* Whether all blocks of all counts are selected. */
bool filter__selects_all(const struct filter_options *options);
/* Whether blocks are selected one by one, so that their temporary ones and their peak are unknown. */
bool filter__selects_blocks(const struct filter_options *options);
/* Whether @profile has data for @cost. 0 or -ENODATA with @error set. */
int filter__check_cost(const struct profile *profile, enum cost cost, struct error *error);

#endif
