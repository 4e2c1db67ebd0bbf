/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Which counts of a profile, and which of their blocks, a report is about. All conditions must hold.
 *
 * Times are known by epochs (meta "epoch_ns"): a block is selected where its epochs leave no doubt, and
 * where they leave one it is counted as unsure instead.
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

/* A time, or a share of the recording's duration. */
struct filter_time {
	bool is_given;
	bool is_share;
	__u64 ns;
	double share; /* 0 to 1 */
};

/* What a rule looks at. Those of one kind that look at stacks must all hold, of the others one. */
enum filter_kind {
	FILTER_THROUGH, /* a function of any frame, inlined or not: pattern */
	FILTER_MODULE,	/* the path or base name of any frame's file: pattern */
	FILTER_STACK, /* the id of a stack, and with it all that print alike; negated: none of them */
	FILTER_THREAD,	 /* its name: pattern */
	FILTER_PROCESS,	 /* its name: pattern; or its pid */
	FILTER_FUNCTION, /* of the allocator: pattern */
};

struct filter_rule {
	enum filter_kind kind;
	bool negated; /* of FILTER_THROUGH and FILTER_STACK only */
	const char *text;
	bool found; /* set by filter__apply(): @text was met in the profile */
};

struct filter_options {
	bool leaks;			 /* live blocks only */
	bool freed;			 /* the others; here and below an exec frees too */
	struct filter_time older;	 /* live, and born this long before the end */
	struct filter_time min_lifetime; /* also live ones, by their age */
	struct filter_time max_lifetime; /* freed ones only */
	struct filter_time freed_after;	 /* freed, at this time since the start or later */
	__u64 min_size_bytes;		 /* average of a count */
	__u64 max_size_bytes;		 /* the same; 0: no limit */
	struct filter_rule *rules;
	size_t n_rules;
	struct suppressions *suppressions; /* NULL, or what to leave out of the leaks */
	bool runs_apart;		   /* the selections of several runs are not added up */
};

/* What it takes to add runs up. */
struct filter_runs {
	__u32 peak_run; /* the one whose peak counts, as peaks of several are none; 0: that of each */
	__u64 *late_ns; /* by number - 1: by how much the longest was longer; owned */
};

struct filtered {
	struct selection *counts; /* by count's id - 1; owned */
	struct selection total;	  /* of them all */
	struct selection whole;	  /* of the profile without any filter */
	__u64 end_ns;		  /* the recording's duration, of several runs the longest's */
	__u64 epoch_ns;		  /* of several runs the longest; 0: without --live */
	struct filter_runs runs;
};

/* Whether @profile says what became of blocks: it was recorded with --live. */
bool filter__has_live(const struct profile *profile);

/*
 * Applies @options, whose rules it marks as found and whose suppressions count what they hid. Calls of
 * free are in nothing. 0, or a negative errno with @error set: -EINVAL for a stack that does not exist,
 * -ENODATA where @profile does not know. @filtered is to be released.
 */
int filter__apply(const struct profile *profile, const struct stack_groups *groups,
		  struct filter_options *options, struct filtered *filtered, struct error *error);
void filtered__release(struct filtered *filtered);

/*
 * The same by lifetime, for options that filter__apply() took: whether those blocks are in, by index in
 * the profile's lifetimes. Suppressions count nothing. 0 or a negative errno with @error set; *@selected is to be freed.
 */
int filter__select_lifetimes(const struct profile *profile, const struct stack_groups *groups,
			     struct filter_options *options, bool **selected, struct error *error);

/* All blocks of @count, where nothing is filtered. With @runs births are as if all runs had ended at once;
 * NULL: as its run has them. */
void filter__whole(const struct profile *profile, const struct filter_runs *runs,
		   const struct profile_count *count, struct selection *selection);

/* Whether the conditions make sense together, and leave @cost known: temporary blocks and the peak are not
 * known by epoch. To be asked before there is a profile. 0 or -EINVAL with @error set. */
int filter__check_options(const struct filter_options *options, enum cost cost,
			  struct error *error);
/* Whether @profile has @cost. 0 or -ENODATA with @error set. */
int filter__check_cost(const struct profile *profile, enum cost cost, struct error *error);

#endif
