/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A budget file: named tests with the limits of what they may allocate, allocprof-check(1). */
#ifndef ALLOCPROF_BUDGET_H
#define ALLOCPROF_BUDGET_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

struct error;
struct json_object;

/* What can be limited. */
enum budget_figure {
	BUDGET_TOTAL_ALLOCATIONS,
	BUDGET_TOTAL_ALLOCATED_BYTES,
	BUDGET_REMAINING_ALLOCATIONS,
	BUDGET_REMAINING_BYTES,
	BUDGET_PEAK_BYTES,
	BUDGET_FIGURES,
};

struct budget_limit {
	bool has_max, has_min;
	__s64 max, min;
};

/* Limits of what is allocated within a region that the program marks, allocprof-stat(1). There is no
 * BUDGET_PEAK_BYTES among them. */
struct budget_region {
	const char *name;
	struct budget_limit limits[BUDGET_FIGURES];
	struct json_object *object; /* the region in the file */
};

struct budget_test {
	const char *name;      /* the budget's, as the other strings */
	const char **command;  /* ends with NULL; NULL where the file has none */
	const char *directory; /* NULL: none was given */
	__u64 runs, warmup;
	struct budget_limit limits[BUDGET_FIGURES];
	struct budget_region *regions;
	size_t n_regions;
	struct json_object *object; /* the test in the file */
};

struct budget {
	struct budget_test *tests; /* in the file's order */
	size_t n_tests;
	struct json_object *root;
};

/* Smaller than nothing is wrong: how a figure stands to its limits, the worse the greater. */
enum budget_verdict {
	BUDGET_WITHIN,
	BUDGET_STALE, /* below the lower limit */
	BUDGET_OVER,
};

#define BUDGET_DEFAULT_RUNS 3
/* The least of the runs counts, so that a first one that allocates more does no harm. */
#define BUDGET_DEFAULT_WARMUP 0
#define BUDGET_MAX_RUNS	      10000

/*
 * Reads @path; *@budget is to be released. 0, -ENOENT, -EINVAL for what is no budget, or another negative
 * errno, with @error naming the place.
 */
int budget__read(const char *path, struct budget *budget, struct error *error);
/* The same of the @size bytes at @text; @path is what to call it. */
int budget__parse(const char *text, size_t size, const char *path, struct budget *budget,
		  struct error *error);
/*
 * A budget of one test of @command, without limits; @name NULL: it is called as the command is. @path is where it
 * will be written. *@budget is to be released. 0, -EINVAL for what no budget can have, or -ENOMEM, with @error set.
 */
int budget__new(const char *path, const char *name, char *const command[], struct budget *budget,
		struct error *error);
void budget__release(struct budget *budget);

/* The test called @name, or NULL with @error naming the nearest. */
struct budget_test *budget__find(const struct budget *budget, const char *name,
				 struct error *error);
/* Whether any figure of @test, or of a region of it, has a limit. */
bool budget_test__has_limits(const struct budget_test *test);

/* The lower limit that holds: the file's, or SwiftNIO's for allocations, which are fewer by less than 1000
 * than the upper one. False where there is none. */
bool budget_limit__lower(const struct budget_limit *limit, enum budget_figure figure, __s64 *min);
enum budget_verdict budget_limit__judge(const struct budget_limit *limit, enum budget_figure figure,
					__s64 value);

/* Limits for a measured @value: below 1000 just it, else up to the next multiple of 50 above and 1000
 * less. */
struct budget_limit budget__slack(__s64 value);

/*
 * Takes MAX_ALLOCS_ALLOWED_<name> out of the environment as the test's limit of allocations, where it is
 * there; characters of the name that variables cannot have are '_'. 0, or -EINVAL with @error set.
 */
int budget_test__read_environment(struct budget_test *test, struct error *error);

/*
 * Puts limits for @values into the test's object, for the figures that have some, or, where none has,
 * for total_allocations and remaining_allocations, unless the test is about regions. Whether anything changed in *@changed. 0 or -ENOMEM.
 */
int budget_test__update(struct budget_test *test, const __s64 values[BUDGET_FIGURES],
			bool *changed);
/* The same of a region, by default for total_allocations only. */
int budget_region__update(struct budget_region *region, const __s64 values[BUDGET_FIGURES],
			  bool *changed);
/* Whether budget__write() to @path, which need not be there, could succeed, to be asked before long runs.
 * 0 or a negative errno with @error set. */
int budget__check_writable(const char *path, struct error *error);
/* Writes the file anew, whole or not at all. 0 or a negative errno with @error set. */
int budget__write(const struct budget *budget, const char *path, struct error *error);

/* "total_allocations" and so on. */
const char *budget__figure_name(enum budget_figure figure);

#endif
