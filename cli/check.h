/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What `allocprof check` finds out about each test, and says of it (allocprof-check(1)). */
#ifndef ALLOCPROF_CHECK_H
#define ALLOCPROF_CHECK_H

#include <stdbool.h>
#include <stdio.h>

#include "budget.h"
#include "error.h"
#include "figures.h"
#include "series.h"

struct measure;
struct measure_surroundings;
struct session_results;

/* The worse the greater: the worst of all tests is the status. */
enum check_outcome {
	CHECK_WITHIN,
	CHECK_STALE,
	CHECK_OVER,
	CHECK_INCOMPLETE,
	CHECK_FAILED,  /* the test's command did, or it has no limits */
	CHECK_NOT_RUN, /* the command could not be run, or allocprof failed */
	CHECK_INTERRUPTED,
	CHECK_OUTCOMES,
};

/* A region that the test limits. */
struct check_region {
	struct budget_region *region;
	struct figure_range figures[BUDGET_FIGURES];
	struct error missing; /* that some run did not enter it */
	/* By figure and run; while it is measured. */
	__s64 *values[BUDGET_FIGURES];
};

struct check_result {
	const struct budget_test *test;
	enum check_outcome outcome;
	int status;	    /* of the command, or why it was not run */
	struct error error; /* of what is neither within nor over nor stale */
	struct figure_range figures[BUDGET_FIGURES];
	struct check_region *regions; /* as many as the test has; owned */
	size_t n_runs;		      /* that counted; 0: figures are not known */
	double seconds;
	bool is_updated;
	struct budget_limit old_limits[BUDGET_FIGURES]; /* where it is */
	/* Of the run with the fewest allocations, "" where it could not be kept; owned. */
	char *profile;
	char *baseline; /* of the last pass, NULL where there is none; owned */
	char *details;	/* what is said below the test's line; owned */
};

struct check_context {
	const struct measure *measure; /* but for the command */
	struct series series;	       /* what the command line says */
	struct measure_surroundings *surroundings;
	char *const *argv;    /* in place of the test's command, or NULL */
	int root_fd;	      /* the directory that the tests' own are relative to */
	const char *baseline; /* directory, absolute; NULL: no profile can be kept */
	bool update;
};

/* Runs @test and judges it. All that goes wrong is in @result, to be released. */
void check__run(const struct check_context *context, struct budget_test *test,
		struct check_result *result);
void check_result__release(struct check_result *result);

/* The exit status for the worst of @n results. */
int check__status(const struct check_result *results, size_t n);

/* How @figure of the test, and of its regions, stands to its limits: the worst of it. */
enum budget_verdict check_result__verdict(const struct check_result *result,
					  enum budget_figure figure);

/* Makes room for the regions of @test in @runs runs. 0 or -ENOMEM. */
int check_regions__prepare(struct check_result *result, const struct budget_test *test,
			   size_t runs);
/* Takes down what run @run, from 0, did in them. */
void check_regions__take(struct check_result *result, const struct measure *measure,
			 const struct session_results *results, size_t run);
/* All runs are over. -ENOENT, with a sentence in the result, where one is not known to the target. */
int check_regions__settle(struct check_result *result);
int check_regions__update(struct check_result *result, bool *is_updated);
void check_regions__release(struct check_result *result);

/* "within", "over" and so on. */
const char *check__outcome_name(enum check_outcome outcome);
/* What is to be said of figures and limits: "total_allocations 7,004 > 4,050". NULL without memory. */
char *check_result__summary(const struct check_result *result);
/* The difference to the baseline into the details, where there is one and the test is over or stale. */
void check_result__explain(struct check_result *result);
/* The line of the test and the details. */
void check_report__print(const struct check_result *result, FILE *to);

/* JUnit's XML of all results. *@text is to be freed. 0 or -ENOMEM. */
int junit__write(const char *suite, const struct check_result *results, size_t n, char **text,
		 size_t *size);

#endif
