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
	bool *stacks;	 /* by id - 1: selected */
	bool *threads;	 /* by id - 1: thread and its process are selected */
	bool *functions; /* by enum ap_function */
};

/* Marks rules that match as found. 0 or a negative errno with @error set. To be released. */
int count_filter__init(struct count_filter *filter, const struct profile *profile,
		       const struct stack_groups *groups, struct filter_options *options,
		       struct error *error);
void count_filter__release(struct count_filter *filter);
bool count_filter__passes(const struct count_filter *filter, const struct profile_count *count);

/*
 * Index of the suppression that hides each stack, by id - 1; -1: none. To be freed; NULL on ENOMEM.
 */
int *filter__suppressed_stacks(const struct profile *profile,
			       const struct suppressions *suppressions);

/* Absolute limits of a run, to which shares of its duration are converted. */
struct block_limits {
	struct run_clock clock;
	__u64 born_before_ns; /* --older */
	__u64 min_ns, max_ns; /* of lifetimes */
	__u64 freed_from_ns;
};

/* Selects blocks of a count by their fate and its time. */
struct block_filter {
	const struct profile *profile;
	const struct filter_options *options;
	bool by_time;		      /* has a condition that needs epochs */
	struct exit_frees exit_frees; /* what these freed was live; zero if that is not asked for */
	__u64 end_ns, epoch_ns;	      /* maxima over the runs */
	struct block_limits *limits;  /* by number of the run - 1; owned */
	struct filter_runs runs;
	__u32 *order;	/* positions of the lifetimes for profile__next_lifetime(), sorted by
			 * count */
	size_t *starts; /* by count's id - 1: its first in order; one more ends the last */
};

int block_filter__init(struct block_filter *filter, const struct profile *profile,
		       const struct filter_options *options, struct error *error);
void block_filter__release(struct block_filter *filter);
/* The selected part of @count, with unsure blocks apart. */
void block_filter__select(const struct block_filter *filter, const struct profile_count *count,
			  struct selection *selection);
/* Whether the epochs of @lifetime prove that its blocks are selected. */
bool block_filter__passes(const struct block_filter *filter,
			  const struct profile_lifetime *lifetime);
#endif
