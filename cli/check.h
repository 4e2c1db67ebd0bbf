/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Runs the tests of a budget for `allocprof check` (allocprof-check(1)), and judges their results. */
#ifndef ALLOCPROF_CHECK_H
#define ALLOCPROF_CHECK_H

#include <stdbool.h>
#include <stdio.h>

#include "array.h"
#include "budget.h"
#include "error.h"
#include "filter.h"
#include "measure.h"
#include "selection.h"

struct profile;
struct session;

/* Ordered by severity: the exit status is that of the worst test. */
enum check_outcome {
	CHECK_WITHIN,
	CHECK_IMPROVED, /* below a lower limit, which passes */
	CHECK_STALE,	/* below a lower limit, which fails only with --strict-limits */
	CHECK_OVER,
	CHECK_INCOMPLETE,
	CHECK_MISSING, /* the test has no limits, or what they are of is not there */
	CHECK_FAILED,  /* the command failed, or what it is compared with cannot be */
	CHECK_NOT_RUN, /* the command could not be run, or allocprof failed */
	CHECK_INTERRUPTED,
	CHECK_OUTCOMES,
};

enum check_side {
	CHECK_HEAD, /* the test's command */
	CHECK_BASE, /* what --against compares it with */
	CHECK_SIDES,
};

/* The kinds of things that --against can name. */
enum check_base_kind {
	CHECK_NO_BASE,
	CHECK_BASE_COMMAND,
	CHECK_BASE_DIRECTORY, /* the test's command is run there */
	CHECK_BASE_RECORDING,
};

struct check_base {
	enum check_base_kind kind;
	char **argv; /* of a command */
	/* Descriptors of the directory, and of the one in it that the tests' working directories are
	 * relative to; only of CHECK_BASE_DIRECTORY. */
	int here_fd, root_fd;
	const char *path; /* of a directory or recording */
	struct growth_limit
		allowed; /* --fail-over, for total_allocations where no growth is limited */
};

struct check_result {
	struct budget_test *test;
	enum check_outcome outcome;
	/* Exit status of the command, or of allocprof if the command was not run. */
	int status;
	/* Says why, if the outcome is none of within, improved, stale and over. */
	struct error error;
	/* By part and figure; NULL: there are none. Part 0 is the test as a whole, part n is
	 * test->parts[n - 1]. Owned. */
	struct budget_measured (*figures[CHECK_SIDES])[BUDGET_FIGURES];
	size_t n_runs;		       /* number of runs of the test's command that counted */
	const struct check_base *base; /* NULL: the test is not compared */
	double seconds;
	bool is_updated;
	/* Path of the data file of the run with the fewest allocations, NULL if it could not be
	 * kept, by side; owned. */
	char *profiles[CHECK_SIDES];
	/* Path of the data file of the last run that passed, NULL if there is none; owned. */
	char *baseline;
	char *spread;  /* lines that say which stacks differ from run to run; NULL: none; owned */
	char *details; /* text printed below the test's line; owned */
};

struct check_context {
	const struct measure *measure; /* how to measure; the command is filled in per test */
	struct series series;	       /* -r and --warmup of the command line */
	struct measure_surroundings *surroundings;
	char *const *argv; /* command that replaces the test's command, or NULL */
	/* Descriptor of the directory that the tests' working directories are relative to. */
	int root_fd;
	struct check_base base;
	/* Absolute path of the directory of recordings that passed; NULL: none is kept. */
	const char *baseline;
	bool update;
	bool strict_limits; /* a figure below its lower limit fails */
};

/* Runs @test and judges it. All errors end up in @result, which the caller releases. */
void check__run(const struct check_context *context, struct budget_test *test,
		struct check_result *result);
void check_result__release(struct check_result *result);

/* Returns the exit status that the result has if it is the worst. */
int check_result__status(const struct check_result *result);
/* Returns the exit status of the worst of @n results. */
int check__status(const struct check_result *results, size_t n);

/* Return the limits and the name of part @part. */
const struct budget_limit *check_result__limits(const struct check_result *result, size_t part);
const struct budget_part *check_result__part(const struct check_result *result, size_t part);

/* Returns the verdict on a figure by its limits. */
enum budget_verdict check_result__verdict(const struct check_result *result, size_t part,
					  enum budget_figure figure);

/* How a figure compares with that of the base. */
enum check_growth {
	CHECK_NOT_COMPARED,
	CHECK_ALLOWED,
	CHECK_NOISE, /* the runs of both sides overlap, so the difference may be chance */
	CHECK_GREW,
};

/* Returns how the figure compares with the base, and stores its limit in *@allowed. */
enum check_growth check_result__growth(const struct check_result *result, size_t part,
				       enum budget_figure figure,
				       const struct growth_limit **allowed);

/* Returns whether the figure has a limit, or is compared. */
bool check_result__shows(const struct check_result *result, size_t part, enum budget_figure figure);

/* Holds what a part selects; it must outlive the options that point to it. */
struct check_selection {
	struct filter_rule rule;
	struct filter_where where;
};

/* Sets @options to select @part, a function or expression; NULL: all. Returns 0, or -EINVAL with @error set. */
int check__select(const struct budget_part *part, struct check_selection *selection,
		  struct filter_options *options, struct error *error);

/* The runs of one side of a test (check_side.c). */
struct check_runs {
	const struct check_context *context;
	const struct measure *measure;
	struct check_result *result;
	enum check_side side;
	size_t room, n; /* runs: those for which there is room, and those that were taken */
	__s64 *values;	/* by part, figure and run */
	__s64 fewest;
	bool is_incomplete;
	__u64 unsearched;     /* live blocks of which it is not known whether they are lost */
	struct error missing; /* why a region, or any limit, is missing */
	struct profile *
		all; /* up to CHECK_SPREAD_RUNS runs, to find out where they differ; NULL: not wanted */
};

/* Make and release room for @room runs. -ENOMEM. */
int check_runs__prepare(struct check_runs *runs, size_t room);
void check_runs__release(struct check_runs *runs);
/* A series_take: takes the figures of a run, and keeps the recording of the one with the fewest allocations. */
int check_runs__take(void *runs, struct session *session, size_t run, struct error *error);
/* Takes the runs of a recording. Returns 0, or a negative errno with @error set. */
int check_runs__read(struct check_runs *runs, const char *path, struct error *error);
/* Computes the result's figures of this side. Fails with -ENOENT, with @error set, if a region is missing; or with
 * -ENOMEM. */
int check_runs__settle(struct check_runs *runs, struct error *error);
/* How many runs are compared with each other by stack: more say little more, and take memory. */
#define CHECK_SPREAD_RUNS 100

/* Returns lines that say in which stacks @n runs of @all differ, which the caller frees; NULL if they do not. */
char *check_spread__text(struct profile *all, size_t n);

/* Returns the cost of stacks that adds up to the figure of a whole run. */
enum cost check__cost(enum budget_figure figure);

/* Returns the name of the outcome, such as "within" or "over". */
const char *check__outcome_name(enum check_outcome outcome);
/* The same, or "updated". */
const char *check_result__name(const struct check_result *result);
/* Sets the result's details: the differences from the base and from the baseline, if there are such. */
void check_result__explain(struct check_result *result);
/* Prints the line of the test and its details. */
void check_report__print(const struct check_result *result, FILE *to);

/* Make texts of all results of the budget @suite: JUnit's XML, Markdown, JSON of allocprof-check(1), and JSON as
 * github-action-benchmark's customSmallerIsBetter. The caller frees *@text. Return 0 or -ENOMEM. */
typedef int check_writer(const char *suite, const struct check_result *results, size_t n,
			 char **text, size_t *size);
check_writer junit__write, check_markdown__write, check_json__write, check_benchmark__write;

#endif
