// SPDX-License-Identifier: GPL-3.0-or-later
/* Measures the tests of `check` and their regions, and judges them. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "cleanup.h"
#include "clock.h"
#include "command.h"
#include "data_file.h"
#include "measure.h"
#include "measure_gaps.h"
#include "message.h"
#include "profile.h"
#include "recording.h"
#include "session.h"
#include "stat_figures.h"
#include "symbol_options.h"

/* The figures of stat that a budget can limit. */
static const enum stat_figure stat_figures[BUDGET_FIGURES] = {
	[BUDGET_TOTAL_ALLOCATIONS] = STAT_TOTAL_ALLOCATIONS,
	[BUDGET_TOTAL_ALLOCATED_BYTES] = STAT_TOTAL_ALLOCATED_BYTES,
	[BUDGET_REMAINING_ALLOCATIONS] = STAT_REMAINING_ALLOCATIONS,
	[BUDGET_REMAINING_BYTES] = STAT_LIVE_BYTES,
	[BUDGET_PEAK_BYTES] = STAT_PEAK_BYTES,
};

/* Allocates room for the regions of @test in @runs runs. Returns 0 or -ENOMEM. */
static int prepare_regions(struct check_result *result, const struct budget_test *test, size_t runs)
{
	result->regions = calloc(test->n_regions + 1, sizeof(*result->regions));
	if (!result->regions)
		return -ENOMEM;
	for (size_t i = 0; i < test->n_regions; i++) {
		result->regions[i].region = &test->regions[i];
		for (int j = 0; j < BUDGET_FIGURES; j++) {
			result->regions[i].values[j] = calloc(runs + 1, sizeof(__s64));
			if (!result->regions[i].values[j])
				return -ENOMEM;
		}
	}
	return 0;
}

static const struct region *find_region(const struct profile *profile, const char *name)
{
	for (size_t i = 0; i < profile->totals.n_regions; i++)
		if (!strcmp(profile->totals.regions[i].name, name))
			return &profile->totals.regions[i];
	return NULL;
}

/* Reports that a limited region is missing, and which regions there are. */
static void report_missing(const struct profile *profile, const struct region *region,
			   const char *name, struct error *error)
{
	char names[400] = "";
	size_t len = 0;

	if (region) {
		error__set(error, -ENOENT, "its command did not enter the region '%.64s'", name);
		return;
	}
	for (size_t i = 0; i < profile->totals.n_regions && len < sizeof(names); i++)
		len += snprintf(names + len, sizeof(names) - len, "%s'%s'", len ? ", " : "",
				profile->totals.regions[i].name);
	error__set(error, -ENOENT, "its command has no region '%.64s'%s%s", name,
		   len ? "; it has " : "", names);
}

/* Stores the figures of the regions in run @run, counted from 0. */
static void take_regions(struct check_result *result, const struct measure *measure,
			 const struct profile *profile, size_t run)
{
	for (size_t i = 0; i < result->test->n_regions; i++) {
		struct check_region *check = &result->regions[i];
		const struct region *region = find_region(profile, check->region->name);
		struct stat_totals totals;

		if (!region || !region->entered) {
			report_missing(profile, region, check->region->name, &check->missing);
			continue;
		}
		totals = stat_totals__of_region(measure, profile, region);
		check->values[BUDGET_TOTAL_ALLOCATIONS][run] =
			totals.allocations + totals.reallocations;
		check->values[BUDGET_TOTAL_ALLOCATED_BYTES][run] =
			stat_totals__total_bytes(&totals);
		check->values[BUDGET_REMAINING_ALLOCATIONS][run] =
			totals.allocations - totals.deallocations;
		check->values[BUDGET_REMAINING_BYTES][run] =
			totals.bytes_allocated - totals.bytes_deallocated;
	}
}

/*
 * Computes the figures after the last run. Fails with -ENOENT, with a sentence in the result, if
 * the target has no region of one of the names.
 */
static int settle_regions(struct check_result *result)
{
	for (size_t i = 0; i < result->test->n_regions; i++) {
		struct check_region *check = &result->regions[i];

		if (check->missing.text[0]) {
			result->error = check->missing;
			return -ENOENT;
		}
		for (int j = 0; j < BUDGET_FIGURES; j++)
			check->figures[j] = figures__range(check->values[j], result->n_runs);
	}
	return 0;
}

static int update_regions(struct check_result *result, bool *is_updated)
{
	for (size_t i = 0; i < result->test->n_regions; i++) {
		struct check_region *check = &result->regions[i];
		__s64 values[BUDGET_FIGURES];
		bool changed = false;

		for (int j = 0; j < BUDGET_FIGURES; j++)
			values[j] = check->figures[j].min;
		if (budget_region__update(check->region, values, &changed))
			return -ENOMEM;
		*is_updated |= changed;
	}
	return 0;
}

static void release_regions(struct check_result *result)
{
	for (size_t i = 0; result->regions && i < result->test->n_regions; i++)
		for (int j = 0; j < BUDGET_FIGURES; j++)
			free(result->regions[i].values[j]);
	free(result->regions);
	result->regions = NULL;
}

struct check_runs {
	const struct check_context *context;
	const struct measure *measure;
	struct check_result *result;
	__s64 *values[BUDGET_FIGURES]; /* values of each figure by run */
	__s64 fewest;
	bool is_incomplete;
};

/* Keeps the profile of the run with the fewest allocations, whose figures are judged. */
static int keep_profile(const struct check_runs *runs, const struct session *session,
			struct error *error)
{
	/* A debuginfod server must change neither a test's result nor its duration. */
	const struct symbol_options symbols = { .no_debuginfod = true };
	const char *path = runs->result->profile;
	int err = recording__name(session, &symbols, true, NULL, error);

	if (err)
		return err;
	/* Only one profile is kept. */
	unlink(path);
	return data_file__write(session__profile(session), path, error);
}

/* Warns that no profile was kept; the figures are judged nevertheless. */
static void forget_profile(struct check_result *result, const struct error *why)
{
	message__print("%s; a failure of test '%s' cannot be explained", why->text,
		       result->test->name);
	free(result->profile);
	result->profile = NULL;
}

static int take_run(void *context, struct session *session, size_t run, struct error *error)
{
	const struct profile *profile = session__profile(session);
	struct check_runs *runs = context;
	struct stat_figures figures = stat_figures__of(runs->measure, profile);
	__s64 allocations = figures.values[STAT_TOTAL_ALLOCATIONS];

	measure__report_gaps(runs->measure, profile);
	for (int i = 0; i < BUDGET_FIGURES; i++)
		runs->values[i][run - 1] = figures.values[stat_figures[i]];
	take_regions(runs->result, runs->measure, profile, run - 1);
	if (!profile__is_complete(profile) || profile->totals.run.runs ||
	    (runs->result->test->n_regions && profile__has_gaps(profile, true)))
		runs->is_incomplete = true;
	if (runs->result->profile && (run == 1 || allocations < runs->fewest)) {
		runs->fewest = allocations;
		if (keep_profile(runs, session, error))
			forget_profile(runs->result, error);
	}
	return 0;
}

static void add_paths(const struct check_context *context, struct check_result *result)
{
	const char *name = result->test->name;

	if (!context->baseline)
		return;
	if (asprintf(&result->profile, "%s/%s.failed.data", context->baseline, name) < 0)
		result->profile = NULL;
	if (asprintf(&result->baseline, "%s/%s.data", context->baseline, name) < 0)
		result->baseline = NULL;
	/* The profile of an older run must not be taken for one of this run. */
	if (result->profile)
		unlink(result->profile);
}

enum budget_verdict check_result__verdict(const struct check_result *result,
					  enum budget_figure figure)
{
	enum budget_verdict worst = budget_limit__judge(&result->test->limits[figure], figure,
							result->figures[figure].min);

	for (size_t i = 0; i < result->test->n_regions; i++) {
		const struct check_region *check = &result->regions[i];
		enum budget_verdict verdict = budget_limit__judge(
			&check->region->limits[figure], figure, check->figures[figure].min);

		if (verdict > worst)
			worst = verdict;
	}
	return worst;
}

static void judge(const struct check_context *context, struct check_result *result)
{
	for (int i = 0; i < BUDGET_FIGURES; i++) {
		enum budget_verdict verdict = check_result__verdict(result, i);

		if (verdict == BUDGET_OVER)
			result->outcome = CHECK_OVER;
		else if (verdict == BUDGET_STALE && result->outcome == CHECK_WITHIN)
			result->outcome = context->strict_limits ? CHECK_STALE : CHECK_IMPROVED;
	}
}

static void update(struct check_result *result, struct budget_test *test)
{
	__s64 values[BUDGET_FIGURES];

	memcpy(result->old_limits, test->limits, sizeof(test->limits));
	for (int i = 0; i < BUDGET_FIGURES; i++)
		values[i] = result->figures[i].min;
	if (!budget_test__update(test, values, &result->is_updated) &&
	    !update_regions(result, &result->is_updated))
		return;
	result->outcome = CHECK_NOT_RUN;
	result->status = EXIT_OURS;
	error__set(&result->error, -ENOMEM, "cannot update the limits: out of memory");
}

/* As in a shell, a status above 128 stands for a signal. */
static void set_status_error(struct check_result *result, int status)
{
	const char *name = status > 128 ? sigdescr_np(status - 128) : NULL;

	if (name)
		error__set(&result->error, -ECHILD,
			   "its command ended with status %d, as of signal %d (%s)", status,
			   status - 128, name);
	else
		error__set(&result->error, -ECHILD, "its command ended with status %d", status);
}

/* Sets the outcome of a test that ended without figures to judge. */
static bool set_failure(struct check_result *result, const struct check_runs *runs,
			const struct series_end *end, int err)
{
	result->status = end->status;
	if (end->interrupted) {
		result->outcome = CHECK_INTERRUPTED;
		error__set(&result->error, -EINTR, "interrupted");
	} else if (err) {
		result->outcome = CHECK_NOT_RUN;
	} else if (end->status) {
		result->outcome = CHECK_FAILED;
		set_status_error(result, end->status);
	} else if (runs->is_incomplete) {
		result->outcome = CHECK_INCOMPLETE;
		error__set(&result->error, -ENODATA,
			   "not all of its calls are known, as said above");
	} else {
		return false;
	}
	return true;
}

static int run_in_directory(const struct check_context *context, struct check_runs *runs,
			    const struct series *series, struct series_end *end)
{
	const char *directory = runs->result->test->directory;
	_cleanup_(close_fd) int here = -1;
	struct error *error = &runs->result->error;
	int err;

	*end = (struct series_end){ .status = EXIT_OURS };
	if (directory) {
		here = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (here < 0 || fchdir(context->root_fd) || chdir(directory))
			return error__set(error, -errno, "cannot go to its directory %.256s: %s",
					  directory, strerror(errno));
	}
	err = series__run(series, runs->measure, context->surroundings, take_run, runs, end, error);
	if (directory && fchdir(here) && !err)
		err = error__set(error, -errno, "cannot go back from its directory: %s",
				 strerror(errno));
	return err;
}

/* Keeps the profile of a passed test; the next failure is compared with it. */
static void keep_baseline(struct check_result *result)
{
	if (result->outcome > CHECK_IMPROVED || !result->profile || !result->baseline)
		return;
	if (rename(result->profile, result->baseline))
		message__print("cannot keep %s: %s", result->baseline, strerror(errno));
}

static struct series series_of(const struct check_context *context, const struct budget_test *test)
{
	return (struct series){
		.runs = context->series.runs ? context->series.runs : test->runs,
		.warmup = context->series.has_warmup ? context->series.warmup : test->warmup,
	};
}

static void measure_test(const struct check_context *context, struct budget_test *test,
			 struct check_runs *runs, const struct series *series)
{
	struct check_result *result = runs->result;
	struct series_end end;
	int err = run_in_directory(context, runs, series, &end);

	result->n_runs = end.counted;
	for (int i = 0; i < BUDGET_FIGURES && end.counted; i++)
		result->figures[i] = figures__range(runs->values[i], end.counted);
	if (set_failure(result, runs, &end, err))
		return;
	if (settle_regions(result)) {
		result->outcome = CHECK_FAILED;
		return;
	}
	/* Optional steps may have left a sentence, since they fail on some systems. */
	result->error.text[0] = '\0';
	if (context->update)
		update(result, test);
	if (result->outcome == CHECK_WITHIN)
		judge(context, result);
	if (result->outcome != CHECK_WITHIN && result->outcome <= CHECK_OVER)
		check_result__explain(result);
	keep_baseline(result);
}

void check__run(const struct check_context *context, struct budget_test *test,
		struct check_result *result)
{
	struct measure measure = *context->measure;
	struct check_runs runs = { .context = context, .measure = &measure, .result = result };
	struct series series = series_of(context, test);
	double start = clock__now_ns() / 1e9;
	bool has_memory;

	*result = (struct check_result){ .test = test };
	measure.argv = (char **)(context->argv ? (void *)context->argv : (void *)test->command);
	if (!context->update && !budget_test__has_limits(test)) {
		result->outcome = CHECK_FAILED;
		error__set(&result->error, -EINVAL,
			   "it has no limits; --update writes what it needs now");
		return;
	}
	add_paths(context, result);
	has_memory = !prepare_regions(result, test, series.runs);
	for (int i = 0; i < BUDGET_FIGURES; i++) {
		runs.values[i] = calloc(series.runs, sizeof(__s64));
		has_memory &= !!runs.values[i];
	}
	if (has_memory) {
		measure_test(context, test, &runs, &series);
	} else {
		result->outcome = CHECK_NOT_RUN;
		result->status = EXIT_OURS;
		error__set(&result->error, -ENOMEM, "out of memory");
	}
	for (int i = 0; i < BUDGET_FIGURES; i++)
		free(runs.values[i]);
	result->seconds = clock__now_ns() / 1e9 - start;
}

void check_result__release(struct check_result *result)
{
	free(result->profile);
	free(result->baseline);
	free(result->details);
	release_regions(result);
}

int check__status(const struct check_result *results, size_t n)
{
	static const int statuses[CHECK_OUTCOMES] = {
		[CHECK_WITHIN] = EXIT_GOOD, [CHECK_IMPROVED] = EXIT_GOOD,
		[CHECK_STALE] = 3,	    [CHECK_OVER] = 1,
		[CHECK_INCOMPLETE] = 4,	    [CHECK_FAILED] = EXIT_FAILED,
	};
	const struct check_result *worst = NULL;

	for (size_t i = 0; i < n; i++)
		if (!worst || results[i].outcome > worst->outcome)
			worst = &results[i];
	if (!worst)
		return EXIT_GOOD;
	if (worst->outcome == CHECK_INTERRUPTED)
		return 130;
	return worst->outcome == CHECK_NOT_RUN ? worst->status : statuses[worst->outcome];
}
