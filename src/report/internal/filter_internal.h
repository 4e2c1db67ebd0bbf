/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The two parts of a filter; for filter*.c only. */
#ifndef ALLOCPROF_FILTER_INTERNAL_H
#define ALLOCPROF_FILTER_INTERNAL_H

#include "filter.h"
#include "profile_runs.h"

struct profile_count;
struct profile_lifetime;

/* Selects counts by stack, thread, process and function. */
struct count_filter {
	const struct profile *profile;
	bool *stacks;	 /* selected stacks, by id - 1 */
	bool *threads;	 /* by id - 1: the thread and its process are selected */
	bool *functions; /* selected functions, by enum ap_function */
};

/* Marks rules that match as found. Returns 0 or a negative errno with @error set. The caller
 * releases it. */
int count_filter__init(struct count_filter *filter, const struct profile *profile,
		       const struct stack_groups *groups, struct filter_options *options,
		       struct error *error);
void count_filter__release(struct count_filter *filter);
bool count_filter__passes(const struct count_filter *filter, const struct profile_count *count);

/*
 * Returns the index of the suppression that hides each stack, by the stack's id - 1; -1: none. The
 * caller frees it; NULL if there is no memory.
 */
int *filter__suppressed_stacks(const struct profile *profile,
			       const struct suppressions *suppressions);

/* Limits of a run in absolute time, to which shares of its duration are converted. */
struct block_limits {
	struct run_clock clock;
	__u64 born_before_ns; /* --older */
	__u64 min_ns, max_ns; /* limits of lifetimes */
	__u64 freed_from_ns;
};

/* Selects blocks of a count by their fate and its time. */
struct block_filter {
	const struct profile *profile;
	const struct filter_options *options;
	bool by_time; /* a condition needs epochs */
	/* Frees whose blocks count as live; zero if that is not asked for. */
	struct exit_frees exit_frees;
	__u64 end_ns, epoch_ns;	     /* greatest values of the runs */
	struct block_limits *limits; /* by the run's number - 1; owned */
	struct filter_runs runs;
	__u32 *order; /* positions of the lifetimes for profile__next_lifetime(), sorted by
			 * count */
	/* By count's id - 1: the position of the count's first block in @order. One further
	 * element ends the last count. */
	size_t *starts;
};

int block_filter__init(struct block_filter *filter, const struct profile *profile,
		       const struct filter_options *options, struct error *error);
void block_filter__release(struct block_filter *filter);
/* Stores the selected part of @count, with unsure blocks apart. */
void block_filter__select(const struct block_filter *filter, const struct profile_count *count,
			  struct selection *selection);
/* Returns whether the epochs of @lifetime prove that its blocks are selected. */
bool block_filter__passes(const struct block_filter *filter,
			  const struct profile_lifetime *lifetime);
#endif
