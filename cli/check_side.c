// SPDX-License-Identifier: GPL-3.0-or-later
/* Takes the figures of the runs of one side of a test: the test as a whole, its regions and functions. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "cleanup.h"
#include "completeness.h"
#include "completeness_messages.h"
#include "data_command.h"
#include "data_file.h"
#include "measure_gaps.h"
#include "message.h"
#include "number.h"
#include "profile.h"
#include "profile_runs.h"
#include "recording.h"
#include "session.h"
#include "stat_figures.h"
#include "symbol_options.h"

/* The figures of stat that a budget can limit, and what they are called in recordings. */
static const struct {
	enum stat_figure of_run;
	enum cost of_stack;
} figures[BUDGET_FIGURES] = {
	[BUDGET_TOTAL_ALLOCATIONS] = { STAT_TOTAL_ALLOCATIONS, COST_ALLOCATIONS },
	[BUDGET_TOTAL_ALLOCATED_BYTES] = { STAT_TOTAL_ALLOCATED_BYTES, COST_BYTES },
	[BUDGET_REMAINING_ALLOCATIONS] = { STAT_REMAINING_ALLOCATIONS, COST_LIVE },
	[BUDGET_REMAINING_BYTES] = { STAT_LIVE_BYTES, COST_LIVE_BYTES },
	[BUDGET_PEAK_BYTES] = { STAT_PEAK_BYTES, COST_PEAK },
	[BUDGET_TEMPORARY_ALLOCATIONS] = { STAT_TEMPORARY, COST_TEMPORARY },
	[BUDGET_CALLS] = { STAT_TOTAL_ALLOCATIONS, COST_ALLOCATIONS },
	/* These are of stacks alone. */
	[BUDGET_LOST_ALLOCATIONS] = { .of_stack = COST_LOST },
	[BUDGET_LOST_BYTES] = { .of_stack = COST_LOST },
};

enum cost check__cost(enum budget_figure figure)
{
	return figures[figure].of_stack;
}

static __u64 figure_of(enum budget_figure figure, const struct selection *selection)
{
	if (figure == BUDGET_LOST_ALLOCATIONS)
		return cost__blocks(COST_LOST, selection);
	return cost__of(check__cost(figure), selection);
}

static size_t n_parts(const struct check_runs *runs)
{
	return runs->result->test->n_parts + 1;
}

static __s64 *values_of(const struct check_runs *runs, size_t part, int figure)
{
	return &runs->values[(part * BUDGET_FIGURES + figure) * runs->room];
}

int check_runs__prepare(struct check_runs *runs, size_t room)
{
	runs->room = room;
	runs->values = calloc(n_parts(runs) * BUDGET_FIGURES * room, sizeof(__s64));
	return runs->values ? 0 : -ENOMEM;
}

void check_runs__release(struct check_runs *runs)
{
	free(runs->values);
	profile__free(runs->all);
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

static void take_region(struct check_runs *runs, const struct profile *profile, size_t part)
{
	const char *name = runs->result->test->parts[part - 1].name;
	const struct region *region = find_region(profile, name);
	struct stat_totals totals;

	if (!region || !region->entered) {
		report_missing(profile, region, name, &runs->missing);
		return;
	}
	totals = stat_totals__of_region(runs->measure, profile, region);
	values_of(runs, part, BUDGET_TOTAL_ALLOCATIONS)[runs->n] =
		totals.allocations + totals.reallocations;
	values_of(runs, part, BUDGET_TOTAL_ALLOCATED_BYTES)[runs->n] =
		stat_totals__total_bytes(&totals);
	values_of(runs, part, BUDGET_REMAINING_ALLOCATIONS)[runs->n] =
		totals.allocations - totals.deallocations;
	values_of(runs, part, BUDGET_REMAINING_BYTES)[runs->n] =
		totals.bytes_allocated - totals.bytes_deallocated;
}

static __u64 count_unsearched(const struct selection *selection)
{
	__u64 blocks = selection->live;

	for (int i = 0; i < PROFILE_REACHES; i++)
		blocks -= selection->reached[i].blocks;
	return blocks;
}

int check__select(const struct budget_part *part, struct check_selection *selection,
		  struct filter_options *options, struct error *error)
{
	if (!part)
		return 0;
	if (part->kind == BUDGET_WHERE) {
		options->where = &selection->where;
		options->n_where = 1;
		options->no_counted = true;
		return filter_where__parse(&selection->where, part->name, error);
	}
	selection->rule = (struct filter_rule){
		.kind = part->kind == BUDGET_COUNT ? FILTER_FUNCTION : FILTER_THROUGH,
		.text = part->name,
	};
	options->rules = &selection->rule;
	options->n_rules = 1;
	return 0;
}

/* Adds the costs of what @of selects, or of all if it is NULL, to run after run: those of the figures from @first on. */
static int add_stacks(struct check_runs *runs, size_t part, enum budget_figure first,
		      struct profile *profile, const struct budget_part *of, struct error *error)
{
	struct check_selection selection;
	struct data_choice choice = { .needs_no_groups = true, .filter.all_runs = true };
	struct selected selected = { .profile = profile };
	bool is_searched = budget_test__limits_lost(runs->result->test);
	int err = check__select(of, &selection, &choice.filter.options, error);

	choice.filter.options.runs_apart = true;
	if (!err)
		err = selected__choose(&selected, &choice, COST_ALLOCATIONS, error);
	for (size_t i = 0; i < profile->n_counts && !err; i++) {
		__u32 run = profile__count_run(profile, &profile->counts[i]) - 1;

		for (int j = first; j < BUDGET_FIGURES; j++)
			values_of(runs, part, j)[runs->n + run] +=
				figure_of(j, &selected.filtered.counts[i]);
		if (!part && is_searched)
			runs->unsearched += count_unsearched(&selected.filtered.counts[i]);
	}
	/* The caller's. */
	selected.profile = NULL;
	selected__release(&selected);
	return err;
}

static bool is_of_stacks(const struct budget_part *part)
{
	return part->kind != BUDGET_REGION && !part->is_off;
}

/* Reports that nobody counts a function that has a limit. */
static void check_counted(struct check_runs *runs, const struct profile *profile,
			  const struct budget_part *part)
{
	int function = definition_names__find(&profile->definitions, part->name);

	if (part->kind != BUDGET_COUNT ||
	    (function >= 0 && definition_names__counts(&profile->definitions, function)))
		return;
	error__set(
		&runs->missing, -ENOENT,
		"no `count` line counts '%.64s'; name the definition that has it with --allocator",
		part->name);
}

/* Takes the figures of functions and expressions. */
static int take_functions(struct check_runs *runs, struct profile *profile, struct error *error)
{
	const struct budget_test *test = runs->result->test;
	int err = 0;

	for (size_t i = 0; i < test->n_parts && !err; i++)
		if (is_of_stacks(&test->parts[i])) {
			check_counted(runs, profile, &test->parts[i]);
			err = add_stacks(runs, i + 1, 0, profile, &test->parts[i], error);
		}
	return err;
}

/* Takes what is lost, if that has limits. Where some of the blocks were not searched for, not all is known. */
static int take_lost(struct check_runs *runs, struct profile *profile, struct error *error)
{
	__u64 before = runs->unsearched;
	int err;

	if (!budget_test__limits_lost(runs->result->test))
		return 0;
	err = add_stacks(runs, 0, BUDGET_LOST_ALLOCATIONS, profile, NULL, error);
	if (err || runs->unsearched == before)
		return err;
	runs->is_incomplete = true;
	message__print(
		"test '%s' left %s blocks of which nobody knows whether they are lost: in other "
		"processes than its command's own, which alone is searched, or in mappings",
		runs->result->test->name, number__count(runs->unsearched - before).text);
	return 0;
}

static void take_regions(struct check_runs *runs, const struct profile *profile)
{
	const struct budget_test *test = runs->result->test;

	for (size_t i = 0; i < test->n_parts; i++)
		if (test->parts[i].kind == BUDGET_REGION && !test->parts[i].is_off)
			take_region(runs, profile, i + 1);
}

/* Warns that no profile was kept; the figures are judged nevertheless. */
static void forget_profile(struct check_runs *runs, const struct error *why)
{
	message__print("%s; a failure of test '%s' cannot be explained", why->text,
		       runs->result->test->name);
	free(runs->result->profiles[runs->side]);
	runs->result->profiles[runs->side] = NULL;
}

static const char *condition_of(void *profile, enum budget_condition condition)
{
	static const char *const keys[BUDGET_CONDITIONS] = {
		[BUDGET_MACHINE] = "machine",	[BUDGET_SYSTEM] = "system",
		[BUDGET_LIBC] = "libc",		[BUDGET_COMPILER] = "compiler",
		[BUDGET_LIBRARY] = "libraries",
	};

	return profile__meta(profile, keys[condition]);
}

/* Chooses the limits that hold for where the first run was. */
static int choose_limits(struct check_runs *runs, const struct profile *profile)
{
	struct error none = { 0 };
	int err;

	if (!runs->result->test->n_whens || runs->side != CHECK_HEAD)
		return 0;
	err = budget_test__choose_when(runs->result->test, condition_of, (void *)profile, &none);
	/* --update writes some, and a comparison needs none. */
	if (err == -ENODATA && !runs->context->update && !runs->result->base)
		runs->missing = none;
	return err == -ENODATA ? 0 : err;
}

/* Looks up names, which functions and the explanation of failures need. */
static int name_run(struct check_runs *runs, const struct session *session, struct error *error)
{
	/* A debuginfod server must change neither a test's result nor its duration. */
	const struct symbol_options symbols = { .no_debuginfod = true };

	return recording__name(session, &symbols, true, runs->all, error);
}

/* Keeps the recording, of which only one is kept. */
static void keep_profile(struct check_runs *runs, const struct profile *profile)
{
	const char *path = runs->result->profiles[runs->side];
	struct error error = { 0 };

	unlink(path);
	if (data_file__write(profile, path, &error))
		forget_profile(runs, &error);
}

static int take_figures(struct check_runs *runs, struct session *session, __s64 allocations,
			struct error *error)
{
	struct profile *profile = session__profile(session);
	bool is_fewest = !runs->n || allocations < runs->fewest;
	bool keeps = is_fewest && runs->result->profiles[runs->side];
	bool has_functions = budget_test__has_part(runs->result->test, BUDGET_THROUGH) ||
			     budget_test__has_part(runs->result->test, BUDGET_WHERE);
	struct error why = { 0 };
	int err;

	if (is_fewest)
		runs->fewest = allocations;
	err = keeps || has_functions || runs->all ? name_run(runs, session, &why) : 0;
	if (err && has_functions)
		return error__wrap(error, err, "%.400s", why.text);
	if (err) {
		forget_profile(runs, &why);
		return 0;
	}
	if (keeps)
		keep_profile(runs, profile);
	err = take_functions(runs, profile, error);
	if (!err && runs->all && runs->n < CHECK_SPREAD_RUNS &&
	    profile__add_run(runs->all, profile)) {
		/* Where runs differ is not found out then, which changes no result. */
		profile__free(runs->all);
		runs->all = NULL;
	}
	return err;
}

int check_runs__take(void *context, struct session *session, size_t run, struct error *error)
{
	const struct profile *profile = session__profile(session);
	struct check_runs *runs = context;
	struct stat_figures of_run = stat_figures__of(runs->measure, profile);
	int err;

	(void)run;
	if (runs->n == runs->room)
		return error__set(error, -E2BIG, "there are more runs than were asked for");
	measure__report_gaps(runs->measure, profile);
	err = choose_limits(runs, profile);
	if (err)
		return error__set(error, err, "out of memory");
	for (int i = 0; i < BUDGET_LOST_ALLOCATIONS; i++)
		values_of(runs, 0, i)[runs->n] = of_run.values[figures[i].of_run];
	take_regions(runs, profile);
	if (!profile__is_complete(profile) || profile->totals.run.runs ||
	    (budget_test__has_part(runs->result->test, BUDGET_REGION) &&
	     profile__has_gaps(profile, true)))
		runs->is_incomplete = true;
	err = take_lost(runs, session__profile(session), error);
	if (!err)
		err = take_figures(runs, session, of_run.values[STAT_TOTAL_ALLOCATIONS], error);
	runs->n += !err;
	return err;
}

/* Refuses recordings whose figures are not those of whole runs. */
static int check_recording(const struct profile *profile, bool needs_lost, const char *path,
			   struct error *error)
{
	if (!filter__has_live(profile))
		return error__set(error, -ENODATA,
				  "%.256s does not follow blocks; make it with record --live",
				  path);
	if (profile__sample_bytes(profile))
		return error__set(
			error, -ENODATA,
			"%.256s is sampled, so its figures are estimates; make it without "
			"--sample",
			path);
	if (profile__meta(profile, "window_opened"))
		return error__set(error, -ENODATA,
				  "%.256s has only a part of a run; make it without a window",
				  path);
	if (!completeness__has_ended(profile))
		return error__set(
			error, -ENODATA,
			"%.256s ended before what it recorded did; record a command until "
			"it ends",
			path);
	if (needs_lost && !profile__has_reach(profile))
		return error__set(
			error, -ENODATA,
			"%.256s does not know what is lost; make it with record --reachable", path);
	for (__u32 run = 1; run <= profile__n_runs(profile); run++) {
		const char *status = profile__run_meta(profile, run, "exit_status");

		if (strcmp(status, "0") != 0)
			return error__set(error, -ECHILD,
					  "the command of %.256s ended with status %.16s", path,
					  status);
	}
	return 0;
}

int check_runs__read(struct check_runs *runs, const char *path, struct error *error)
{
	struct profile *profile = NULL;
	int err = data_file__read(path, &profile, error);
	bool needs_lost = budget_test__limits_lost(runs->result->test);
	__u32 n = err ? 0 : profile__n_runs(profile);

	if (err)
		return err;
	err = check_recording(profile, needs_lost, path, error);
	if (!err && check_runs__prepare(runs, n))
		err = error__set(error, -ENOMEM, "out of memory");
	if (!err)
		err = add_stacks(runs, 0, 0, profile, NULL, error);
	for (__u32 run = 1; run <= n && !err; run++) {
		const char *peak = profile__run_meta(profile, run, "peak_bytes");

		/* Stacks' parts of the peak are known to within a hundredth. */
		if (peak)
			values_of(runs, 0, BUDGET_PEAK_BYTES)[run - 1] = strtoll(peak, NULL, 10);
	}
	if (!err)
		err = take_functions(runs, profile, error);
	runs->is_incomplete = !completeness__is_complete(profile) || runs->unsearched;
	if (!err && runs->is_incomplete)
		completeness_messages__print(profile, path, 0);
	runs->n = n;
	profile__free(profile);
	return err;
}

static int compare_values(const void *a, const void *b)
{
	const __s64 *first = a, *second = b;

	return *first < *second ? -1 : *first > *second;
}

/* Returns what is judged of @n values, of which there is one. */
static struct budget_measured measured_of(__s64 *values, size_t n, __u64 percentile)
{
	qsort(values, n, sizeof(*values), compare_values);
	return (struct budget_measured){
		.value = values[(n - 1) * percentile / 100],
		.least = values[0],
		.greatest = values[n - 1],
	};
}

int check_runs__settle(struct check_runs *runs, struct error *error)
{
	struct check_result *result = runs->result;
	struct budget_measured(*made)[BUDGET_FIGURES];

	if (runs->missing.text[0]) {
		*error = runs->missing;
		return -ENOENT;
	}
	made = calloc(n_parts(runs), sizeof(*made));
	if (!made)
		return error__set(error, -ENOMEM, "out of memory");
	for (size_t part = 0; part < n_parts(runs); part++)
		for (int i = 0; i < BUDGET_FIGURES; i++)
			made[part][i] = measured_of(values_of(runs, part, i), runs->n,
						    result->test->percentile);
	free(result->figures[runs->side]);
	result->figures[runs->side] = made;
	return 0;
}
