/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The parts of a filter; for filter*.c only. */
#ifndef ALLOCPROF_FILTER_INTERNAL_H
#define ALLOCPROF_FILTER_INTERNAL_H

#include "filter.h"
#include "profile_runs.h"
#include "where_internal.h"

struct profile_count;
struct profile_lifetime;

/*
 * Returns the index of the suppression that hides each stack, by the stack's id - 1; -1: none. The
 * caller frees it; NULL if there is no memory.
 */
int *filter__suppressed_stacks(const struct profile *profile,
			       const struct suppressions *suppressions);

/* A condition of a filter: an expression of the user, or what an option is short for. */
struct condition {
	struct filter_where where;
	struct filter_where *given;   /* the user's expression; NULL: it is of an option */
	struct filter_rule *rule;     /* a rule that has an expression of its own, or NULL */
	char *text;		      /* an option's expression; owned */
	struct where_answers answers; /* owned */
};

struct conditions {
	struct condition *list;
	size_t n, room;
};

/* Makes the conditions of @options for a duration of @end_ns, which is 0 if runs differ in it, and marks rules about
 * threads, processes and functions that match as found. @groups: as in filter__apply(). Returns 0 or a negative errno
 * with @error set. The caller releases them. */
int conditions__make(struct conditions *conditions, const struct profile *profile,
		     const struct stack_groups *groups, struct filter_options *options,
		     __u64 end_ns, struct error *error);
/* Evaluates them, and marks the rules about frames that match as found. */
int conditions__evaluate(struct conditions *conditions, const struct where_data *data,
			 struct error *error);
void conditions__release(struct conditions *conditions);
/* Returns the columns that the conditions read. */
__u32 conditions__columns(const struct conditions *conditions);
/* Returns the answer of all conditions of @level at @index. */
enum answer conditions__answer(const struct conditions *conditions, enum where_level level,
			       size_t index);

/* The place of a lifetime. */
struct block_cell {
	__u32 at; /* for profile__next_lifetime() */
	__u32 index;
};

/* Selects blocks of counts. */
struct block_filter {
	const struct profile *profile;
	struct conditions conditions;
	enum where_level level; /* the finest of the conditions */
	bool has_counted; /* calls that are only counted may be selected: a condition is on the function */
	/* Frees whose blocks count as live; zero if that is not asked for. */
	struct exit_frees exit_frees;
	__u64 end_ns, epoch_ns;	  /* greatest values of the runs */
	struct run_clock *clocks; /* by the run's number - 1; owned */
	struct filter_runs runs;
	struct block_cell *order; /* of the lifetimes, sorted by count */
	/* By count's id - 1: the position of the count's first block in @order. One further
	 * element ends the last count. */
	size_t *starts;
};

/* Makes the filter without evaluating its conditions. Returns 0 or a negative errno with @error set. */
int block_filter__prepare(struct block_filter *filter, const struct profile *profile,
			  const struct stack_groups *groups, struct filter_options *options,
			  struct error *error);
int block_filter__init(struct block_filter *filter, const struct profile *profile,
		       const struct stack_groups *groups, struct filter_options *options,
		       struct error *error);
void block_filter__release(struct block_filter *filter);
/* Stores the selected part of @count, with unsure blocks apart. */
void block_filter__select(const struct block_filter *filter, const struct profile_count *count,
			  struct selection *selection);
/* Sets the live part of @whole to the blocks that are live before @filter->exit_frees. */
void block_filter__set_leaked(const struct block_filter *filter, const struct profile_count *count,
			      struct selection *whole);
/* Returns whether it is sure that the blocks of @lifetime, which is number @index, are selected. */
bool block_filter__passes(const struct block_filter *filter,
			  const struct profile_lifetime *lifetime, size_t index);
#endif
