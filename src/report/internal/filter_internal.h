/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The two halves of a filter; for filter*.c only. */
#ifndef ALLOCPROF_FILTER_INTERNAL_H
#define ALLOCPROF_FILTER_INTERNAL_H

#include "filter.h"
#include "run_clocks.h"

struct profile_count;
struct profile_lifetime;

/* Which counts: by stack, thread, process and function. */
struct count_filter {
	const struct profile *profile;
	bool *stacks;	 /* by id - 1: may be in */
	bool *threads;	 /* by id - 1: thread and its process may */
	bool *functions; /* by enum ap_function */
};

/* Marks the rules that are met as found. 0 or a negative errno with @error set. To be released. */
int count_filter__init(struct count_filter *filter, const struct profile *profile,
		       const struct stack_groups *groups, struct filter_options *options,
		       struct error *error);
void count_filter__release(struct count_filter *filter);
bool count_filter__passes(const struct count_filter *filter, const struct profile_count *count);

/* The suppression that hides each stack, by id - 1; -1: none. To be freed; NULL without memory. */
int *filter__suppressed_stacks(const struct profile *profile,
			       const struct suppressions *suppressions);

/* Shares of a run are different times in each. */
struct block_limits {
	struct run_clock clock;
	__u64 born_before_ns; /* --older */
	__u64 min_ns, max_ns; /* lifetimes */
	__u64 freed_from_ns;
};

/* Which blocks of a count: by what became of them, and when. */
struct block_filter {
	const struct profile *profile;
	const struct filter_options *options;
	bool by_time;		     /* asks for what only the epochs tell */
	__u64 end_ns, epoch_ns;	     /* the greatest of the runs */
	struct block_limits *limits; /* by number of the run - 1; owned */
	struct filter_runs runs;
	__u32 *order;	/* where profile__next_lifetime() finds the lifetimes, by count */
	size_t *starts; /* in order, by count's id - 1; and their end */
};

int block_filter__init(struct block_filter *filter, const struct profile *profile,
		       const struct filter_options *options, struct error *error);
void block_filter__release(struct block_filter *filter);
/* What of @count is selected, unsure blocks apart. */
void block_filter__select(const struct block_filter *filter, const struct profile_count *count,
			  struct selection *selection);
/* Whether blocks of @lifetime are, without a doubt. */
bool block_filter__passes(const struct block_filter *filter,
			  const struct profile_lifetime *lifetime);
#endif
