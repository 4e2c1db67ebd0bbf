/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A budget file: named tests with limits of what they may allocate, allocprof-check(1). */
#ifndef ALLOCPROF_BUDGET_H
#define ALLOCPROF_BUDGET_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

struct error;
struct json_object;

/* Figures that can have limits. */
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

/*
 * Limits for a region that the program marks, allocprof-targets(7). Regions have no BUDGET_PEAK_BYTES.
 */
struct budget_region {
	const char *name;
	struct budget_limit limits[BUDGET_FIGURES];
	struct json_object *object; /* the region in the file */
};

struct budget_test {
	const char *name;      /* owned by the budget, as are the other strings */
	const char **command;  /* ends with NULL; NULL if the file has none */
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

/* How a figure relates to its limits, in ascending severity; negative values are errors. */
enum budget_verdict {
	BUDGET_WITHIN,
	BUDGET_STALE, /* below the lower limit */
	BUDGET_OVER,
};

#define BUDGET_DEFAULT_RUNS 3
/* The minimum over the runs counts, so that a first run that allocates more does no harm. */
#define BUDGET_DEFAULT_WARMUP 0
#define BUDGET_MAX_RUNS	      10000

/* Reads @path; *@budget is to be released. 0, -ENOENT, -EINVAL for an invalid budget, or another
 * negative errno; @error names the position. */
int budget__read(const char *path, struct budget *budget, struct error *error);
/* Parses @size bytes at @text; @path is used in messages. */
int budget__parse(const char *text, size_t size, const char *path, struct budget *budget,
		  struct error *error);
/*
 * Adds a test of @command, without limits, to @budget, which may be empty ({ 0 }) and has no test of that name. @name
 * NULL: the command's base name. @path is where it will be written. Pointers to its tests are not valid any more.
 * 0, -EINVAL for what a budget cannot express, or -ENOMEM, with @error set.
 */
int budget__add(struct budget *budget, const char *path, const char *name, char *const command[],
		struct error *error);
void budget__release(struct budget *budget);

/* The test called @name, or NULL with @error suggesting the nearest name. */
struct budget_test *budget__find(const struct budget *budget, const char *name,
				 struct error *error);
/* Whether any figure of @test or of its regions has a limit. */
bool budget_test__has_limits(const struct budget_test *test);

/* The effective lower limit: that of the file or, for allocations, SwiftNIO's (max - 1000,
 * exclusive). False if there is none. */
bool budget_limit__lower(const struct budget_limit *limit, enum budget_figure figure, __s64 *min);
enum budget_verdict budget_limit__judge(const struct budget_limit *limit, enum budget_figure figure,
					__s64 value);

/* The limit to write for a measured @value: exactly @value if that is below 1000, else the next multiple of 50 above
 * it, which passes values up to 999 less. */
struct budget_limit budget__slack(__s64 value);

/* Takes the test's limit of allocations from the environment variable MAX_ALLOCS_ALLOWED_<name>, if
 * set; other characters than letters and digits become '_'. 0, or -EINVAL with @error set. */
int budget_test__read_environment(struct budget_test *test, struct error *error);

/*
 * Writes limits for @values to the test's object: for the figures that already have some or, if
 * none has, for total_allocations and remaining_allocations (unless the test has regions).
 * *@changed: whether anything did. 0 or -ENOMEM.
 */
int budget_test__update(struct budget_test *test, const __s64 values[BUDGET_FIGURES],
			bool *changed);
/* The same for a region, by default only for total_allocations. */
int budget_region__update(struct budget_region *region, const __s64 values[BUDGET_FIGURES],
			  bool *changed);
/* Whether budget__write() to @path, which need not exist, would succeed; for a check before long
 * runs. 0 or a negative errno with @error set. */
int budget__check_writable(const char *path, struct error *error);
/* Replaces the file atomically. 0 or a negative errno with @error set. */
int budget__write(const struct budget *budget, const char *path, struct error *error);

/* The JSON key: "total_allocations" and so on. */
const char *budget__figure_name(enum budget_figure figure);

#endif
