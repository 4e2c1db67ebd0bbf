/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Runs the tests of a budget for `allocprof check` (allocprof-check(1)), and judges their results. */
#ifndef ALLOCPROF_CHECK_H
#define ALLOCPROF_CHECK_H

#include <stdbool.h>
#include <stdio.h>

#include "array.h"
#include "budget.h"
#include "error.h"
#include "measure.h"

struct profile;

/* Ordered by severity: the exit status is that of the worst test. */
enum check_outcome {
	CHECK_WITHIN,
	CHECK_IMPROVED, /* below a lower limit, which passes */
	CHECK_STALE,	/* below a lower limit, which fails only with --strict-limits */
	CHECK_OVER,
	CHECK_INCOMPLETE,
	CHECK_FAILED,  /* the command failed, or the test has no limits */
	CHECK_NOT_RUN, /* the command could not be run, or allocprof failed */
	CHECK_INTERRUPTED,
	CHECK_OUTCOMES,
};

/* The result of a region that the test limits. */
struct check_region {
	struct budget_region *region;
	struct figure_range figures[BUDGET_FIGURES];
	struct error missing; /* why the region is missing, if some run did not enter it */
	/* values by figure and run; only during the measurement */
	__s64 *values[BUDGET_FIGURES];
};

struct check_result {
	const struct budget_test *test;
	enum check_outcome outcome;
	/* Exit status of the command, or of allocprof if the command was not run. */
	int status;
	/* Says why, if the outcome is none of within, improved, stale and over. */
	struct error error;
	struct figure_range figures[BUDGET_FIGURES];
	struct check_region *regions; /* one for each region of the test; owned */
	size_t n_runs;		      /* number of runs that counted; 0: there are no figures */
	double seconds;
	bool is_updated;
	struct budget_limit old_limits[BUDGET_FIGURES]; /* the limits before --update */
	/* Path of the data file of the run with the fewest allocations, "" if it could not be
	 * kept; owned. */
	char *profile;
	/* Path of the data file of the last run that passed, NULL if there is none; owned. */
	char *baseline;
	char *details; /* text printed below the test's line; owned */
};

struct check_context {
	const struct measure *measure; /* how to measure; the command is filled in per test */
	struct series series;	       /* -r and --warmup of the command line */
	struct measure_surroundings *surroundings;
	char *const *argv; /* command that replaces the test's command, or NULL */
	/* Descriptor of the directory that the tests' working directories are relative to. */
	int root_fd;
	/* Absolute path of the directory of recordings that passed; NULL: none is kept. */
	const char *baseline;
	bool update;
	bool strict_limits; /* a figure below its lower limit fails */
};

/* Runs @test and judges it. All errors end up in @result, which the caller releases. */
void check__run(const struct check_context *context, struct budget_test *test,
		struct check_result *result);
void check_result__release(struct check_result *result);

/* Returns the exit status of the worst of @n results. */
int check__status(const struct check_result *results, size_t n);

/* Returns the worst verdict on @figure of the test and of its regions. */
enum budget_verdict check_result__verdict(const struct check_result *result,
					  enum budget_figure figure);

/* Returns the name of the outcome, such as "within" or "over". */
const char *check__outcome_name(enum check_outcome outcome);
/* Returns the figures that exceeded limits, such as "total_allocations 7,004 > 4,050". The caller
 * frees the text; NULL if there is no memory. */
char *check_result__summary(const struct check_result *result);
/* Appends the difference from the baseline to the result's details, if there is a baseline. */
void check_result__explain(struct check_result *result);
/* Prints the line of the test and its details. */
void check_report__print(const struct check_result *result, FILE *to);

/* Makes JUnit XML of all results. The caller frees *@text. Returns 0 or -ENOMEM. */
int junit__write(const char *suite, const struct check_result *results, size_t n, char **text,
		 size_t *size);

#endif
