/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads and writes budget files: named tests with limits of what they may allocate,
 * allocprof-check(1). */
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
 * Limits for a region that the program marks, allocprof-targets(7). Regions have no
 * BUDGET_PEAK_BYTES.
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
/* Returns whether a figure of @test or of its regions has a limit. */
bool budget_test__has_limits(const struct budget_test *test);

/* Stores the effective lower limit in *@min: that of the file or, for allocations, SwiftNIO's (max
 * - 1000, exclusive). Returns false if there is none. */
bool budget_limit__lower(const struct budget_limit *limit, enum budget_figure figure, __s64 *min);
enum budget_verdict budget_limit__judge(const struct budget_limit *limit, enum budget_figure figure,
					__s64 value);

/* Returns the limit to write for a measured @value: exactly @value below 1000, else the next
 * multiple of 50 above it, which also passes values up to 999 less. */
struct budget_limit budget__slack(__s64 value);

/* Takes the test's limit of allocations from the environment variable MAX_ALLOCS_ALLOWED_<name>,
 * if it is set; characters of the name other than letters and digits become '_'. Returns 0, or
 * -EINVAL with @error set. */
int budget_test__read_environment(struct budget_test *test, struct error *error);

/*
 * Writes limits for @values to the test's object: for the figures that already have limits or, if
 * none has, for total_allocations and remaining_allocations (unless the test has regions).
 * *@changed: whether any limit has changed. Returns 0 or -ENOMEM.
 */
int budget_test__update(struct budget_test *test, const __s64 values[BUDGET_FIGURES],
			bool *changed);
/* Does the same for a region, for which only total_allocations gets a limit if no figure has one. */
int budget_region__update(struct budget_region *region, const __s64 values[BUDGET_FIGURES],
			  bool *changed);
/* Checks before long runs whether budget__write() to @path, which need not exist, would succeed.
 * Returns 0 or a negative errno with @error set. */
int budget__check_writable(const char *path, struct error *error);
/* Replaces the file atomically. Returns 0 or a negative errno with @error set. */
int budget__write(const struct budget *budget, const char *path, struct error *error);

/* Returns the figure's JSON key: "total_allocations" and so on. */
const char *budget__figure_name(enum budget_figure figure);

#endif
