// SPDX-License-Identifier: GPL-3.0-or-later
/* Measures the tests of `check`, alone or in turns with what they are compared with, and judges them. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "cleanup.h"
#include "clock.h"
#include "command.h"
#include "measure.h"
#include "message.h"
#include "profile.h"

/*
 * How often each side is run, at least, before a test fails by its growth. If both do the same, however much their runs
 * differ, ten of each are in order once in 184,756 times.
 */
#define CONFIRMING_RUNS 10

const struct budget_part *check_result__part(const struct check_result *result, size_t part)
{
	return part ? &result->test->parts[part - 1] : NULL;
}

const struct budget_limit *check_result__limits(const struct check_result *result, size_t part)
{
	return part ? result->test->parts[part - 1].limits : result->test->limits;
}

enum budget_verdict check_result__verdict(const struct check_result *result, size_t part,
					  enum budget_figure figure)
{
	if (part && check_result__part(result, part)->is_off)
		return BUDGET_WITHIN;
	return budget_limit__judge(&check_result__limits(result, part)[figure], figure,
				   result->figures[CHECK_HEAD][part][figure].value);
}

/* Returns the limit of growth; NULL: there is none. */
static const struct growth_limit *growth_limit_of(const struct check_result *result, size_t part,
						  enum budget_figure figure)
{
	const struct budget_limit *limit = &check_result__limits(result, part)[figure];
	bool is_whole = !part && figure == BUDGET_TOTAL_ALLOCATIONS;

	if (limit->has_growth)
		return &limit->growth;
	return is_whole && !budget_test__limits_growth(result->test) ? &result->base->allowed
								     : NULL;
}

enum check_growth check_result__growth(const struct check_result *result, size_t part,
				       enum budget_figure figure,
				       const struct growth_limit **allowed)
{
	const struct budget_measured *head, *base;

	if (!result->base || !result->figures[CHECK_BASE] ||
	    (part && check_result__part(result, part)->is_off))
		return CHECK_NOT_COMPARED;
	*allowed = growth_limit_of(result, part, figure);
	if (!*allowed)
		return CHECK_NOT_COMPARED;
	head = &result->figures[CHECK_HEAD][part][figure];
	base = &result->figures[CHECK_BASE][part][figure];
	if (growth_limit__allows(*allowed, base->value, head->value))
		return CHECK_ALLOWED;
	return head->least <= base->greatest ? CHECK_NOISE : CHECK_GREW;
}

static size_t n_parts(const struct check_result *result)
{
	return result->test->n_parts + 1;
}

static bool has_grown(const struct check_result *result)
{
	const struct growth_limit *allowed;

	for (size_t part = 0; part < n_parts(result); part++)
		for (int i = 0; i < BUDGET_FIGURES; i++)
			if (check_result__growth(result, part, i, &allowed) == CHECK_GREW)
				return true;
	return false;
}

static void judge(const struct check_context *context, struct check_result *result)
{
	if (has_grown(result))
		result->outcome = CHECK_OVER;
	for (size_t part = 0; part < n_parts(result); part++)
		for (int i = 0; i < BUDGET_FIGURES; i++) {
			enum budget_verdict verdict = check_result__verdict(result, part, i);

			if (verdict == BUDGET_OVER)
				result->outcome = CHECK_OVER;
			else if (verdict == BUDGET_STALE && result->outcome == CHECK_WITHIN)
				result->outcome =
					context->strict_limits ? CHECK_STALE : CHECK_IMPROVED;
		}
}

static void update(struct check_result *result)
{
	struct budget_test *test = result->test;
	int err = budget_test__update(test, result->figures[CHECK_HEAD][0], &result->is_updated);

	for (size_t i = 0; i < test->n_parts && !err; i++) {
		bool changed = false;

		if (!test->parts[i].is_off)
			err = budget_part__update(&test->parts[i],
						  result->figures[CHECK_HEAD][i + 1], &changed);
		result->is_updated |= changed;
	}
	if (!err)
		return;
	result->outcome = CHECK_NOT_RUN;
	result->status = EXIT_OURS;
	error__set(&result->error, -ENOMEM, "cannot update the limits: out of memory");
}

/* As in a shell, a status above 128 stands for a signal. */
static void set_status_error(struct check_result *result, const char *whose, int status)
{
	const char *name = status > 128 ? sigdescr_np(status - 128) : NULL;

	if (name)
		error__set(&result->error, -ECHILD,
			   "%s command ended with status %d, as of signal %d (%s)", whose, status,
			   status - 128, name);
	else
		error__set(&result->error, -ECHILD, "%s command ended with status %d", whose,
			   status);
}

static void set_incomplete(struct check_result *result, const struct check_runs *runs)
{
	const char *what = runs->unsearched ? "blocks" : "calls";

	result->outcome = CHECK_INCOMPLETE;
	if (runs->side == CHECK_BASE)
		error__set(&result->error, -ENODATA,
			   "not all %s of the base are known, as said above", what);
	else
		error__set(&result->error, -ENODATA, "not all of its %s are known, as said above",
			   what);
}

/* Sets the outcome of a test that ended without figures to judge. */
static bool set_failure(struct check_result *result, const struct check_runs *runs,
			const struct series_end *end, int err)
{
	bool is_base = runs->side == CHECK_BASE;

	result->status = end->status;
	if (end->interrupted) {
		result->outcome = CHECK_INTERRUPTED;
		error__set(&result->error, -EINTR, "interrupted");
	} else if (err) {
		result->outcome = CHECK_NOT_RUN;
		if (is_base)
			error__wrap(&result->error, err, "the base");
	} else if (end->status) {
		result->outcome = CHECK_FAILED;
		set_status_error(result, is_base ? "the base's" : "its", end->status);
	} else if (runs->is_incomplete) {
		set_incomplete(result, runs);
	} else {
		return false;
	}
	return true;
}

/* Goes where the runs are to be made, for as long as *@here is open. */
static int enter_directory(const struct check_runs *runs, int *here, struct error *error)
{
	const struct check_base *base = &runs->context->base;
	bool is_elsewhere = runs->side == CHECK_BASE && base->kind == CHECK_BASE_DIRECTORY;
	const char *directory = runs->result->test->directory;
	int root_fd;

	if (!directory && !is_elsewhere)
		return 0;
	*here = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	root_fd = !is_elsewhere ? runs->context->root_fd
		  : directory	? base->root_fd
				: base->here_fd;
	if (*here < 0 || fchdir(root_fd) || (directory && chdir(directory)))
		return error__set(error, -errno, "cannot go to its directory %.256s: %s",
				  directory ? directory : base->path, strerror(errno));
	return 0;
}

static int run_in_directory(struct check_runs *runs, const struct series *series,
			    struct series_end *end)
{
	struct error *error = &runs->result->error;
	_cleanup_(close_fd) int here = -1;
	int err;

	*end = (struct series_end){ .status = EXIT_OURS };
	err = enter_directory(runs, &here, error);
	if (err)
		return err;
	err = series__run(series, runs->measure, runs->context->surroundings, check_runs__take,
			  runs, end, error);
	if (here >= 0 && fchdir(here) && !err)
		err = error__set(error, -errno, "cannot go back from its directory: %s",
				 strerror(errno));
	return err;
}

/* Runs one side, and computes its figures. Returns false if the test has failed, which the result says. */
static bool run_side(struct check_runs *runs, const struct series *series)
{
	struct check_result *result = runs->result;
	struct series_end end;
	int err = run_in_directory(runs, series, &end);

	if (set_failure(result, runs, &end, err))
		return false;
	err = check_runs__settle(runs, &result->error);
	if (err) {
		result->outcome = err == -ENOENT ? CHECK_MISSING : CHECK_NOT_RUN;
		result->status = EXIT_OURS;
		return false;
	}
	/* Optional steps may have left a sentence, since they fail on some systems. */
	result->error.text[0] = '\0';
	return true;
}

/* Runs both sides in turns: what changes in the course of time changes both. Goes on beyond @series if the test would fail, until
 * that is certain or has turned out to be chance. */
static bool run_in_turns(struct check_runs sides[CHECK_SIDES], const struct series *series)
{
	off_t input = lseek(STDIN_FILENO, 0, SEEK_CUR);
	struct series one = { .runs = 1, .warmup = series->warmup, .has_warmup = true };

	for (__u64 i = 0;
	     i < series->runs || (i < CONFIRMING_RUNS && has_grown(sides[CHECK_HEAD].result));
	     i++) {
		for (int turn = 0; turn < CHECK_SIDES; turn++) {
			enum check_side side = turn ? CHECK_HEAD : CHECK_BASE;

			if (input >= 0)
				lseek(STDIN_FILENO, input, SEEK_SET);
			if (!run_side(&sides[side], &one))
				return false;
		}
		one.warmup = 0;
	}
	return true;
}

/* A recording has no regions to compare with. */
static int refuse_regions(struct check_result *result)
{
	const struct budget_test *test = result->test;

	for (size_t i = 0; i < test->n_parts; i++) {
		const struct budget_part *part = &test->parts[i];

		for (int j = 0; j < BUDGET_FIGURES; j++)
			if (part->kind == BUDGET_REGION && !part->is_off &&
			    part->limits[j].has_growth)
				return error__set(
					&result->error, -EINVAL,
					"the growth of region '%.64s' is limited, and a recording "
					"has no regions; name a command or a directory with "
					"--against",
					part->name);
	}
	return 0;
}

static bool read_base(struct check_runs *runs)
{
	struct check_result *result = runs->result;
	int err = refuse_regions(result);

	if (!err)
		err = check_runs__read(runs, runs->context->base.path, &result->error);
	if (!err && runs->is_incomplete) {
		set_incomplete(result, runs);
		return false;
	}
	if (!err)
		err = check_runs__settle(runs, &result->error);
	result->status = EXIT_FAILED;
	if (err)
		result->outcome = CHECK_FAILED;
	return !err;
}

static bool run_all(const struct check_context *context, struct check_runs sides[CHECK_SIDES],
		    const struct series *series)
{
	if (context->base.kind == CHECK_BASE_COMMAND || context->base.kind == CHECK_BASE_DIRECTORY)
		return run_in_turns(sides, series);
	if (!run_side(&sides[CHECK_HEAD], series))
		return false;
	return context->base.kind == CHECK_NO_BASE || read_base(&sides[CHECK_BASE]);
}

static char *path_of(const char *directory, const char *name, const char *ending)
{
	char *path;

	return asprintf(&path, "%s/%s%s", directory, name, ending) < 0 ? NULL : path;
}

static void add_paths(const struct check_context *context, struct check_result *result)
{
	const char *name = result->test->name;

	if (context->base.kind == CHECK_BASE_RECORDING)
		result->profiles[CHECK_BASE] = strdup(context->base.path);
	if (!context->baseline)
		return;
	result->profiles[CHECK_HEAD] = path_of(context->baseline, name, ".failed.data");
	result->baseline = path_of(context->baseline, name, ".data");
	if (result->base && !result->profiles[CHECK_BASE])
		result->profiles[CHECK_BASE] = path_of(context->baseline, name, ".base.data");
	/* The profile of an older run must not be taken for one of this run. */
	if (result->profiles[CHECK_HEAD])
		unlink(result->profiles[CHECK_HEAD]);
}

/* Keeps the profile of a passed test; the next failure is compared with it. */
static void keep_baseline(struct check_result *result)
{
	const char *profile = result->profiles[CHECK_HEAD];

	if (result->outcome > CHECK_IMPROVED || !profile || !result->baseline)
		return;
	if (rename(profile, result->baseline))
		message__print("cannot keep %s: %s", result->baseline, strerror(errno));
}

static struct series series_of(const struct check_context *context, const struct budget_test *test)
{
	return (struct series){
		.runs = context->series.runs ? context->series.runs : test->runs,
		.warmup = context->series.has_warmup ? context->series.warmup : test->warmup,
	};
}

static void finish(const struct check_context *context, const struct check_runs *head)
{
	struct check_result *result = head->result;

	if (context->update)
		update(result);
	if (head->all)
		result->spread = check_spread__text(
			head->all, head->n < CHECK_SPREAD_RUNS ? head->n : CHECK_SPREAD_RUNS);
	if (result->outcome == CHECK_WITHIN)
		judge(context, result);
	if (result->outcome != CHECK_WITHIN && result->outcome <= CHECK_OVER)
		check_result__explain(result);
	keep_baseline(result);
}

/* Makes the two sides' runs. Where there is only one run, no runs can differ. */
static int prepare(struct check_runs sides[CHECK_SIDES], const struct series *series)
{
	size_t most = series->runs > CONFIRMING_RUNS ? series->runs : CONFIRMING_RUNS;
	enum check_base_kind kind = sides->context->base.kind;
	int err = check_runs__prepare(&sides[CHECK_HEAD], most);

	if (!err && (kind == CHECK_BASE_COMMAND || kind == CHECK_BASE_DIRECTORY))
		err = check_runs__prepare(&sides[CHECK_BASE], most);
	if (!err && series->runs > 1) {
		sides[CHECK_HEAD].all = profile__new();
		err = sides[CHECK_HEAD].all ? 0 : -ENOMEM;
	}
	return err;
}

void check__run(const struct check_context *context, struct budget_test *test,
		struct check_result *result)
{
	struct check_runs sides[CHECK_SIDES];
	struct measure measures[CHECK_SIDES];
	struct series series = series_of(context, test);
	double start = clock__now_ns() / 1e9;

	*result = (struct check_result){ .test = test };
	if (context->base.kind != CHECK_NO_BASE)
		result->base = &context->base;
	if (!context->update && !result->base && !budget_test__has_limits(test)) {
		result->outcome = CHECK_MISSING;
		error__set(
			&result->error, -EINVAL,
			budget_test__limits_growth(test)
				? "it has limits of growth alone; name with --against what it is "
				  "compared with"
				: "it has no limits; --update writes what it needs now");
		return;
	}
	for (int side = 0; side < CHECK_SIDES; side++) {
		measures[side] = *context->measure;
		measures[side].session.reachable = budget_test__limits_lost(test);
		measures[side].argv =
			(char **)(context->argv ? (void *)context->argv : (void *)test->command);
		sides[side] = (struct check_runs){ .context = context,
						   .measure = &measures[side],
						   .result = result,
						   .side = side };
	}
	if (context->base.argv)
		measures[CHECK_BASE].argv = context->base.argv;
	add_paths(context, result);
	if (prepare(sides, &series)) {
		result->outcome = CHECK_NOT_RUN;
		result->status = EXIT_OURS;
		error__set(&result->error, -ENOMEM, "out of memory");
	} else if (run_all(context, sides, &series)) {
		result->n_runs = sides[CHECK_HEAD].n;
		finish(context, &sides[CHECK_HEAD]);
	}
	for (int side = 0; side < CHECK_SIDES; side++)
		check_runs__release(&sides[side]);
	result->seconds = clock__now_ns() / 1e9 - start;
}

void check_result__release(struct check_result *result)
{
	for (int side = 0; side < CHECK_SIDES; side++) {
		free(result->figures[side]);
		free(result->profiles[side]);
	}
	free(result->baseline);
	free(result->spread);
	free(result->details);
}

int check_result__status(const struct check_result *result)
{
	static const int statuses[CHECK_OUTCOMES] = {
		[CHECK_WITHIN] = EXIT_GOOD,
		[CHECK_IMPROVED] = EXIT_GOOD,
		[CHECK_STALE] = 3,
		[CHECK_OVER] = 1,
		[CHECK_INCOMPLETE] = 4,
		[CHECK_MISSING] = 5,
		[CHECK_FAILED] = EXIT_FAILED,
		[CHECK_INTERRUPTED] = 130,
	};

	return result->outcome == CHECK_NOT_RUN ? result->status : statuses[result->outcome];
}

int check__status(const struct check_result *results, size_t n)
{
	const struct check_result *worst = NULL;

	for (size_t i = 0; i < n; i++)
		if (!worst || results[i].outcome > worst->outcome)
			worst = &results[i];
	return worst ? check_result__status(worst) : EXIT_GOOD;
}
