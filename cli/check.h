/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Runs and judges the tests of a budget for `allocprof check` (allocprof-check(1)). */
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
	CHECK_STALE,	/* below a lower limit, which fails with --strict-limits */
	CHECK_OVER,
	CHECK_INCOMPLETE,
	CHECK_FAILED,  /* the command failed, or the test has no limits */
	CHECK_NOT_RUN, /* the command could not be run, or allocprof failed */
	CHECK_INTERRUPTED,
	CHECK_OUTCOMES,
};

/* A region that the test limits. */
struct check_region {
	struct budget_region *region;
	struct figure_range figures[BUDGET_FIGURES];
	struct error missing; /* why the region is missing, where some run did not enter it */
	/* by figure and run; only during the measurement */
	__s64 *values[BUDGET_FIGURES];
};

struct check_result {
	const struct budget_test *test;
	enum check_outcome outcome;
	int status;	    /* the command's exit status, or ours where it was not run */
	struct error error; /* why the outcome is none of within, improved, stale and over */
	struct figure_range figures[BUDGET_FIGURES];
	struct check_region *regions; /* one for each region of the test; owned */
	size_t n_runs;		      /* runs that counted; 0: no figures */
	double seconds;
	bool is_updated;
	struct budget_limit old_limits[BUDGET_FIGURES]; /* the limits before --update */
	/* Data file of the run with the fewest allocations, "" if it could not be kept; owned. */
	char *profile;
	char *baseline; /* data file of the last pass, NULL if there is none; owned */
	char *details;	/* text printed below the test's line; owned */
};

struct check_context {
	const struct measure *measure; /* how to measure; the command is filled in per test */
	struct series series;	       /* -r and --warmup of the command line */
	struct measure_surroundings *surroundings;
	char *const *argv;    /* replaces the test's command, or NULL */
	int root_fd;	      /* base of the tests' working directories */
	const char *baseline; /* of recordings, absolute; NULL: none is kept */
	bool update;
	bool strict_limits; /* a figure below its lower limit fails */
};

/* Runs @test and judges it. All errors end up in @result, which the caller releases. */
void check__run(const struct check_context *context, struct budget_test *test,
		struct check_result *result);
void check_result__release(struct check_result *result);

/* The exit status of the worst of @n results. */
int check__status(const struct check_result *results, size_t n);

/* The worst verdict on @figure of the test and of its regions. */
enum budget_verdict check_result__verdict(const struct check_result *result,
					  enum budget_figure figure);

/* "within", "over" and so on. */
const char *check__outcome_name(enum check_outcome outcome);
/* The figures that broke limits: "total_allocations 7,004 > 4,050". NULL on ENOMEM; to be freed. */
char *check_result__summary(const struct check_result *result);
/* Appends the difference to the baseline, if there is one. */
void check_result__explain(struct check_result *result);
/* Prints the line of the test and its details. */
void check_report__print(const struct check_result *result, FILE *to);

/* All results as JUnit XML. *@text is to be freed. 0 or -ENOMEM. */
int junit__write(const char *suite, const struct check_result *results, size_t n, char **text,
		 size_t *size);

#endif
