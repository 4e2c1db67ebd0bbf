/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Evaluates expressions on the blocks of a profile; for filter*.c and where*.c only. */
#ifndef ALLOCPROF_WHERE_INTERNAL_H
#define ALLOCPROF_WHERE_INTERNAL_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "exit_frees.h"
#include "pattern.h"
#include "where.h"

struct event_block;
struct profile;
struct run_clock;
struct sqlite3;
struct stack_groups;

enum where_column {
	WHERE_THREAD,
	WHERE_PROCESS,
	WHERE_PID,
	WHERE_ARGUMENTS,
	WHERE_CGROUP,
	WHERE_RUN,
	WHERE_DURATION,
	WHERE_FUNCTION,
	WHERE_STACK,
	WHERE_CALLER,
	WHERE_MODULE,
	WHERE_TYPE,
	WHERE_SIZE,
	WHERE_ALLOCATIONS,
	WHERE_LEAKED,
	WHERE_ALIVE,
	WHERE_FREED,
	WHERE_AGE,
	WHERE_LIFETIME,
	WHERE_ALIVE_FOR,
	WHERE_ALLOCATED_AT,
	WHERE_FREED_AT,
	WHERE_FREED_AFTER,
	WHERE_COLUMNS,
};

#define WHERE_BIT(column) (1U << (column))
#define WHERE_GROUP_COLUMNS                                                                        \
	(WHERE_BIT(WHERE_STACK) | WHERE_BIT(WHERE_CALLER) | WHERE_BIT(WHERE_MODULE) |              \
	 WHERE_BIT(WHERE_TYPE))
#define WHERE_FATE_COLUMNS                                                                         \
	(WHERE_BIT(WHERE_LEAKED) | WHERE_BIT(WHERE_ALIVE) | WHERE_BIT(WHERE_FREED))
#define WHERE_BIRTH_COLUMNS  (WHERE_BIT(WHERE_AGE) | WHERE_BIT(WHERE_ALLOCATED_AT))
#define WHERE_DEATH_COLUMNS  (WHERE_BIT(WHERE_FREED_AT) | WHERE_BIT(WHERE_FREED_AFTER))
#define WHERE_LENGTH_COLUMNS (WHERE_BIT(WHERE_LIFETIME) | WHERE_BIT(WHERE_ALIVE_FOR))
#define WHERE_TIME_COLUMNS   (WHERE_BIRTH_COLUMNS | WHERE_DEATH_COLUMNS | WHERE_LENGTH_COLUMNS)
#define WHERE_BLOCK_COLUMNS  (WHERE_FATE_COLUMNS | WHERE_TIME_COLUMNS)

/* Whether a condition holds. The lesser of two is the answer to both conditions together. */
enum answer {
	NO,
	UNSURE,
	YES,
};

/* The units of which a condition is the same, coarsest first. */
enum where_level {
	WHERE_COUNTS, /* counts */
	WHERE_FATES,  /* freed and live blocks of counts */
	WHERE_CELLS,  /* lifetimes */
	WHERE_BLOCKS, /* single blocks of an event log */
};

/* The recording that a condition is evaluated on. */
struct where_data {
	const struct profile *profile;
	const struct stack_groups *groups; /* NULL: no column of WHERE_GROUP_COLUMNS is asked for */
	const struct run_clock *clocks;	   /* by run's number - 1 */
	struct exit_frees exit_frees;	   /* by which blocks are leaked */
	/* Single blocks that are to be judged in place of what the profile has; NULL: none are. */
	const struct event_block *blocks;
	size_t n_blocks;
};

struct where_answers {
	enum where_level level;
	/* enum answer: by count's id - 1; by 2 * (count's id - 1), of live blocks, and one more of freed ones; or by index
	 * of the lifetime or single block. Owned. */
	unsigned char *answers;
};

/*
 * Evaluates @where, and sets what of it matches nothing. @is_limited: its time and memory are. The caller frees the
 * answers. Returns 0, or a negative errno with @error set.
 */
int where__evaluate(const struct where_data *data, struct filter_where *where, bool is_limited,
		    struct where_answers *out, struct error *error);

/* A pattern that through(), through_module() or matches() were called with. */
struct where_pattern {
	char *text; /* owned */
	bool of_modules;
	bool found; /* something matches */
	struct pattern pattern;
	bool *stacks; /* by id - 1: stacks with a frame that matches; NULL for matches(); owned */
};

struct where_patterns {
	const struct profile *profile;
	const __u32 *stack; /* id of the row's stack */
	struct where_pattern *list;
	size_t n, room;
};

/* Defines the functions of expressions. Returns a result of SQLite. */
int where_patterns__define(struct where_patterns *patterns, struct sqlite3 *db);
void where_patterns__release(struct where_patterns *patterns);

/* A bound of a column that the table itself compares with, by what is known of times. */
struct where_bound {
	enum where_column column;
	int op; /* of SQLite's constraints */
	double value;
};

#define WHERE_MAX_BOUNDS 16

/* The table that an expression is evaluated on, and the row where it is. */
struct where_scan {
	const struct where_data *data; /* NULL: no row is read */
	enum where_level level;
	__u32 columns;
	unsigned char *answers;
	struct where_bound bounds[WHERE_MAX_BOUNDS];
	size_t n_bounds;

	size_t index;	    /* of the count, half count, lifetime or block */
	__u32 next_cell;    /* for profile__next_lifetime() */
	__u32 count, stack; /* ids */
	__u32 sized_count;
	double size;		      /* of sized_count */
	__u64 allocations;	      /* of it, too */
	bool is_alive, is_leaked;     /* at the end, and before the end's frees */
	__u64 born_ns[2], died_ns[2]; /* earliest and latest */
	/* Each lifetime is a row for each of the earliest and latest times that the expression depends on. */
	int corner, n_corners, n_true;
	enum answer bounded; /* by the bounds */
	bool is_over;
};

/* Defines the table "blocks". Returns a result of SQLite. */
int where_scan__define(struct where_scan *scan, struct sqlite3 *db);
/* To be called when the expression holds for the row. */
void where_scan__take(struct where_scan *scan);

#endif
