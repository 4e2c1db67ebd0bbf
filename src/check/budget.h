/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads and writes budget files: named tests with limits of what they may allocate,
 * allocprof-check(1). */
#ifndef ALLOCPROF_BUDGET_H
#define ALLOCPROF_BUDGET_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "growth_limit.h"

struct error;
struct json_object;

/* Figures that can have limits. */
enum budget_figure {
	BUDGET_TOTAL_ALLOCATIONS,
	BUDGET_TOTAL_ALLOCATED_BYTES,
	BUDGET_REMAINING_ALLOCATIONS,
	BUDGET_REMAINING_BYTES,
	BUDGET_PEAK_BYTES,
	BUDGET_TEMPORARY_ALLOCATIONS,
	BUDGET_CALLS, /* of a function that is only counted; BUDGET_COUNT alone has it, and nothing else */
	/* What was left that no pointer leads to, also indirectly; the last ones. */
	BUDGET_LOST_ALLOCATIONS,
	BUDGET_LOST_BYTES,
	BUDGET_FIGURES,
};

struct budget_limit {
	bool has_max, has_min;
	__s64 max, min;
	bool has_growth;
	struct growth_limit growth; /* from the base of --against */
};

/* What a recording says of where it was made, and a condition is a regular expression of. */
enum budget_condition {
	BUDGET_MACHINE,
	BUDGET_SYSTEM,
	BUDGET_LIBC,
	BUDGET_COMPILER,
	BUDGET_LIBRARY, /* one of the lines matches */
	BUDGET_CONDITIONS,
};

/* Limits for where all of its conditions hold. They take the place of the test's own for the same figures. */
struct budget_when {
	const char *conditions[BUDGET_CONDITIONS]; /* NULL: none */
	struct budget_limit limits[BUDGET_FIGURES];
	struct json_object *object;
};

enum budget_part_kind {
	BUDGET_REGION,	/* a region that the program marks, allocprof-targets(7) */
	BUDGET_THROUGH, /* stacks through a function, whose name is a pattern */
	BUDGET_COUNT,	/* calls of a function that is only counted, allocprof-allocators(5) */
	BUDGET_WHERE,	/* blocks of which an expression holds, allocprof-where(7) */
};

/* Limits for a part of what the command does. Only BUDGET_THROUGH has figures behind BUDGET_REMAINING_BYTES. */
struct budget_part {
	enum budget_part_kind kind;
	const char *name;
	/* Index + 1 of the struct budget_when that it is in; 0: none. It does not count where another one holds. */
	size_t when;
	bool is_off;
	struct budget_limit limits[BUDGET_FIGURES];
	struct json_object *object; /* the part in the file */
};

struct budget_test {
	const char *name;      /* owned by the budget, as are the other strings */
	const char **command;  /* ends with NULL; NULL if the file has none */
	const char *directory; /* NULL: none was given */
	__u64 runs, warmup;
	/* Which of the runs is judged, from 0, the least one, to 100, the greatest. */
	__u64 percentile;
	struct budget_limit limits[BUDGET_FIGURES];
	struct budget_part *parts;
	size_t n_parts, parts_room;
	struct budget_when *whens;
	size_t n_whens;
	struct json_object *object; /* the test in the file */
	/* Where the limits of each figure are in the file: @object, or the one of a struct budget_when. */
	struct json_object *owners[BUDGET_FIGURES];
};

struct budget {
	struct budget_test *tests; /* tests in the file's order */
	size_t n_tests;
	struct json_object *root;
};

/* How a figure compares with its limits, in ascending severity; negative values are errors. */
enum budget_verdict {
	BUDGET_WITHIN,
	BUDGET_STALE, /* below the lower limit */
	BUDGET_OVER,
};

#define BUDGET_DEFAULT_RUNS 3
/* The figure is the minimum over the runs, so a first run that allocates more does no harm, and
 * none is discarded. */
#define BUDGET_DEFAULT_WARMUP 0
#define BUDGET_MAX_RUNS	      10000

/* Reads @path; the caller releases *@budget. Returns 0, -ENOENT, -EINVAL for an invalid budget, or
 * another negative errno; @error names the position. */
int budget__read(const char *path, struct budget *budget, struct error *error);
/* Parses @size bytes at @text; @path is for messages. Fails with the errors of budget__read(). */
int budget__parse(const char *text, size_t size, const char *path, struct budget *budget,
		  struct error *error);
/*
 * Adds a test of @command, without limits, to @budget, which may be empty ({ 0 }) and must not
 * have a test of that name. @name NULL: the command's base name. @path is where the budget will be
 * written. Pointers to its tests become invalid. Returns 0, -EINVAL for what a budget cannot
 * express, or -ENOMEM, with @error set.
 */
int budget__add(struct budget *budget, const char *path, const char *name, char *const command[],
		struct error *error);
void budget__release(struct budget *budget);

/* Returns the test called @name, or NULL with @error, which suggests the nearest name. */
struct budget_test *budget__find(const struct budget *budget, const char *name,
				 struct error *error);
/* Returns whether a figure of @test or of its parts has a limit, wherever it is run, beside those of growth. */
bool budget_test__has_limits(const struct budget_test *test);
/* Returns whether one of them has such a limit. */
bool budget_test__limits_growth(const struct budget_test *test);
/* Return what a kind of part is called in JSON, and what stands before the name of a part: "region", "in region". */
const char *budget_part__key(enum budget_part_kind kind);
const char *budget_part__words(enum budget_part_kind kind);
/* Returns whether @test has a part of this kind that is not off. */
bool budget_test__has_part(const struct budget_test *test, enum budget_part_kind kind);
/* Returns whether one of them is of what is lost, which has to be searched for. */
bool budget_test__limits_lost(const struct budget_test *test);
bool budget_limit__is_any(const struct budget_limit *limit);

/* Returns what the recording says, or NULL. */
typedef const char *(*budget_condition_fn)(void *context, enum budget_condition condition);

/* Takes the limits of the first struct budget_when whose conditions hold; parts of the others are off. To be
 * called once. Returns 0, -ENODATA with @error set if then nothing has a limit, or -ENOMEM. */
int budget_test__choose_when(struct budget_test *test, budget_condition_fn says, void *context,
			     struct error *error);
/* Returns the condition's key in the budget, such as "libc". */
const char *budget__condition_name(enum budget_condition condition);

/* Stores the effective lower limit in *@min: that of the file or, for allocations, SwiftNIO's (max
 * - 1000, exclusive). Returns false if there is none. */
bool budget_limit__lower(const struct budget_limit *limit, enum budget_figure figure, __s64 *min);
enum budget_verdict budget_limit__judge(const struct budget_limit *limit, enum budget_figure figure,
					__s64 value);

/* Returns the limit to write for a measured @value: exactly @value below 1000, else the next
 * multiple of 50 above it, which also passes values up to 999 less. */
struct budget_limit budget__slack(__s64 value);

/* A figure over the runs: what is judged of it, and how far it goes. */
struct budget_measured {
	__s64 value, least, greatest;
};

/* Does the same, with room for runs that differ as much as these. */
struct budget_limit budget__slack_of(const struct budget_measured *measured);

/* Takes the test's limit of allocations from the environment variable MAX_ALLOCS_ALLOWED_<name>,
 * if it is set; characters of the name other than letters and digits become '_'. Returns 0, or
 * -EINVAL with @error set. */
int budget_test__read_environment(struct budget_test *test, struct error *error);

/*
 * Writes limits for what was measured to the test's object: for the figures that already have limits or, if
 * none has, for total_allocations and remaining_allocations (unless the test has parts).
 * *@changed: whether any limit has changed. Returns 0 or -ENOMEM.
 */
int budget_test__update(struct budget_test *test,
			const struct budget_measured measured[BUDGET_FIGURES], bool *changed);
/* Does the same for a part, for which only total_allocations gets a limit if no figure has one. */
int budget_part__update(struct budget_part *part,
			const struct budget_measured measured[BUDGET_FIGURES], bool *changed);
/* Checks before long runs whether budget__write() to @path, which need not exist, would succeed.
 * Returns 0 or a negative errno with @error set. */
int budget__check_writable(const char *path, struct error *error);
/* Replaces the file atomically. Returns 0 or a negative errno with @error set. */
int budget__write(const struct budget *budget, const char *path, struct error *error);

/* Returns the figure's JSON key: "total_allocations" and so on. */
const char *budget__figure_name(enum budget_figure figure);

#endif
