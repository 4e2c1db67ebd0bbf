// SPDX-License-Identifier: GPL-3.0-or-later
/* Prints the results of `check`: lines, differences to the baseline, and JUnit's XML. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "cleanup.h"
#include "data_command.h"
#include "diff.h"
#include "diff_output.h"
#include "number.h"
#include "page_text.h"
#include "stack_view.h"
#include "terminal.h"

const char *check__outcome_name(enum check_outcome outcome)
{
	static const char *const names[CHECK_OUTCOMES] = {
		[CHECK_WITHIN] = "within",	   [CHECK_IMPROVED] = "improved",
		[CHECK_STALE] = "stale",	   [CHECK_OVER] = "over",
		[CHECK_INCOMPLETE] = "incomplete", [CHECK_FAILED] = "failed",
		[CHECK_NOT_RUN] = "not run",	   [CHECK_INTERRUPTED] = "interrupted",
	};

	return names[outcome];
}

static struct number_text signed_count(__s64 value)
{
	struct number_text number = number__count(value < 0 ? -(__u64)value : (__u64)value);
	struct number_text text;

	snprintf(text.text, sizeof(text.text), "%s%.30s", value < 0 ? "-" : "", number.text);
	return text;
}

static void print_limits(const struct budget_limit *limit, enum budget_figure figure, __s64 value,
			 FILE *to)
{
	__s64 min;
	bool has_min = budget_limit__lower(limit, figure, &min);

	switch (budget_limit__judge(limit, figure, value)) {
	case BUDGET_OVER:
		fprintf(to, ", over the limit of %s", signed_count(limit->max).text);
		fprintf(to, " by %s", signed_count(value - limit->max).text);
		return;
	case BUDGET_STALE:
		fprintf(to, ", under the lower limit of %s", signed_count(min).text);
		fprintf(to, " by %s", signed_count(min - value).text);
		if (!limit->has_min)
			fprintf(to,
				" (no \"min\" is given, so %s less than the upper limit of %s; "
				"--update writes limits that fit, \"min\": 0 allows any)",
				signed_count(limit->max - min).text, signed_count(limit->max).text);
		else
			fputs(" (the \"min\" of the budget; --update writes limits that fit)", to);
		return;
	case BUDGET_WITHIN:
		break;
	}
	if (has_min && limit->has_max && min == limit->max)
		fprintf(to, " (exactly %s)", signed_count(min).text);
	else if (has_min && limit->has_max)
		fprintf(to, " (%s to %s)", signed_count(min).text, signed_count(limit->max).text);
	else if (limit->has_max)
		fprintf(to, " (at most %s)", signed_count(limit->max).text);
	else
		fprintf(to, " (at least %s)", signed_count(min).text);
}

static void print_figure(const struct check_result *result, const struct figure_range *range,
			 const struct budget_limit *limit, int figure, FILE *to)
{
	fprintf(to, "%s %s", budget__figure_name(figure), signed_count(range->min).text);
	if (range->max != range->min)
		fprintf(to, " to %s in %s runs", signed_count(range->max).text,
			number__count(result->n_runs).text);
	print_limits(limit, figure, range->min, to);
}

/* Prints the limited figures of the test, or of @region. */
static void print_figures(const struct check_result *result, const struct check_region *region,
			  size_t *shown, FILE *to)
{
	const struct budget_limit *limits = region ? region->region->limits : result->test->limits;
	const struct figure_range *ranges = region ? region->figures : result->figures;

	for (int i = 0; i < BUDGET_FIGURES; i++) {
		if (!limits[i].has_max && !limits[i].has_min)
			continue;
		fprintf(to, "%s", (*shown)++ ? "; " : "");
		if (region)
			fprintf(to, "in region '%s' ", region->region->name);
		print_figure(result, &ranges[i], &limits[i], i, to);
	}
}

char *check_result__summary(const struct check_result *result)
{
	char *summary = NULL;
	size_t size, shown = 0;
	FILE *to = open_memstream(&summary, &size);

	if (!to)
		return NULL;
	if (result->error.text[0]) {
		fprintf(to, "%s", result->error.text);
	} else {
		print_figures(result, NULL, &shown, to);
		for (size_t i = 0; i < result->test->n_regions; i++)
			print_figures(result, &result->regions[i], &shown, to);
	}
	if (!fclose(to))
		return summary;
	free(summary);
	return NULL;
}

void check_report__print(const struct check_result *result, FILE *to)
{
	_cleanup_(free_ptr) char *summary = check_result__summary(result);

	const struct terminal terminal = { .to = to };

	fprintf(to, "%-11s ",
		result->is_updated ? "updated" : check__outcome_name(result->outcome));
	terminal__print(&terminal, result->test->name, 0);
	fputs(": ", to);
	terminal__print(&terminal, summary ? summary : "", 0);
	fputc('\n', to);
	if (result->details)
		fprintf(to, "\n%s\n", result->details);
	fflush(to);
}

/* Maximum number of stacks that are listed: enough to find the cause, and few enough to keep a log
 * readable. */
#define MOST_STACKS 5

static const enum cost costs[BUDGET_FIGURES] = {
	[BUDGET_TOTAL_ALLOCATIONS] = COST_ALLOCATIONS,
	[BUDGET_TOTAL_ALLOCATED_BYTES] = COST_BYTES,
	[BUDGET_REMAINING_ALLOCATIONS] = COST_LIVE,
	[BUDGET_REMAINING_BYTES] = COST_LIVE_BYTES,
	[BUDGET_PEAK_BYTES] = COST_PEAK,
};

static void free_diff(struct diff **diff)
{
	diff__free(*diff);
}

static void free_views(struct stack_view *(*views)[DIFF_SIDES])
{
	for (int side = 0; side < DIFF_SIDES; side++)
		stack_view__free((*views)[side]);
}

static void release_selected(struct selected (*selected)[DIFF_SIDES])
{
	for (int side = 0; side < DIFF_SIDES; side++)
		selected__release(&(*selected)[side]);
}

static int print_diff(const struct check_result *result, enum cost cost, FILE *to,
		      struct error *error)
{
	const char *const paths[DIFF_SIDES] = { result->baseline, result->profile };
	const struct diff_options options = { .cost = cost };
	_cleanup_(release_selected) struct selected selected[DIFF_SIDES] = { 0 };
	_cleanup_(free_views) struct stack_view *lines[DIFF_SIDES] = { NULL };
	_cleanup_(free_diff) struct diff *diff = NULL;
	/* Stacks are compared without lines, so that an edited function keeps its stacks. */
	const struct view_choice with_lines = { .options.lines = true };
	struct diff_input inputs[DIFF_SIDES];
	int err = 0;

	for (int side = 0; side < DIFF_SIDES && !err; side++) {
		struct data_choice choice = {
			.paths.input = paths[side],
			.needs_no_groups = true,
		};

		err = selected__open(&selected[side], &choice, cost, error);
		if (!err)
			err = view_choice__open(&with_lines, selected[side].profile, &lines[side],
						error);
		inputs[side] = (struct diff_input){
			.profile = selected[side].profile,
			.view = selected[side].view,
			.counts = selected[side].filtered.counts,
		};
	}
	if (!err)
		err = diff__new(inputs, &options, &diff, error);
	if (err)
		return err;
	return diff_output__text(&(struct diff_output){
		.diff = diff,
		.profiles = { selected[DIFF_BEFORE].profile, selected[DIFF_AFTER].profile },
		.inputs = { paths[DIFF_BEFORE], paths[DIFF_AFTER] },
		.lines = { lines[DIFF_BEFORE], lines[DIFF_AFTER] },
		.top = MOST_STACKS,
		.terminal = { .to = to },
	});
}

/* Prints @name, which may contain any characters, between @before and @after. */
static void print_words(FILE *to, const char *before, const char *name, const char *after)
{
	const struct terminal terminal = { .to = to };

	fputs(before, to);
	terminal__print(&terminal, name, 0);
	fputs(after, to);
}

static void print_details(const struct check_result *result, FILE *to)
{
	struct error error = { 0 };

	if (!result->profile || access(result->profile, R_OK))
		return;
	if (access(result->baseline, R_OK)) {
		print_words(to, "No recording of a run that passed to compare with at ",
			    result->baseline, ".\n");
		print_words(to, "allocprof report -i ", result->profile, " shows this one.\n");
		return;
	}
	for (int i = 0; i < BUDGET_FIGURES; i++) {
		if (check_result__verdict(result, i) == BUDGET_WITHIN)
			continue;
		fprintf(to, "Since the last pass, %s:\n", budget__figure_name(i));
		if (print_diff(result, costs[i], to, &error))
			print_words(to, "cannot be compared: ", error.text, "\n");
		fputc('\n', to);
	}
	print_words(to, "More of it: allocprof diff ", result->baseline, " ");
	print_words(to, "", result->profile, "\n");
}

void check_result__explain(struct check_result *result)
{
	size_t size;
	FILE *to;

	if (!result->baseline)
		return;
	to = open_memstream(&result->details, &size);
	if (!to)
		return;
	print_details(result, to);
	if (fclose(to) || !size) {
		free(result->details);
		result->details = NULL;
	}
}

static void print_attribute(const char *name, const char *value, FILE *to)
{
	fprintf(to, " %s=\"", name);
	page_text__print_lines(value, "&#10;", to);
	fputc('"', to);
}

static void print_problem(const struct check_result *result, const char *summary, FILE *to)
{
	bool is_failure = result->outcome == CHECK_OVER || result->outcome == CHECK_STALE;
	const char *element = is_failure ? "failure" : "error";

	fprintf(to, "   <%s", element);
	print_attribute("type", check__outcome_name(result->outcome), to);
	print_attribute("message", summary, to);
	fputc('>', to);
	page_text__print_lines(result->details ? result->details : summary, "\n", to);
	fprintf(to, "</%s>\n", element);
}

static int print_case(const char *suite, const struct check_result *result, FILE *to)
{
	_cleanup_(free_ptr) char *summary = check_result__summary(result);

	if (!summary)
		return -ENOMEM;
	fputs("  <testcase", to);
	print_attribute("name", result->test->name, to);
	print_attribute("classname", suite, to);
	fprintf(to, " time=\"%.3f\">\n", result->seconds);
	if (result->outcome > CHECK_IMPROVED)
		print_problem(result, summary, to);
	fputs("   <system-out>", to);
	page_text__print_lines(summary, "\n", to);
	fputs("</system-out>\n  </testcase>\n", to);
	return 0;
}

static int print_suite(const char *suite, const struct check_result *results, size_t n, FILE *to)
{
	size_t failures = 0, errors = 0;
	double seconds = 0;
	int err = 0;

	for (size_t i = 0; i < n; i++) {
		failures += results[i].outcome == CHECK_OVER || results[i].outcome == CHECK_STALE;
		errors += results[i].outcome > CHECK_OVER;
		seconds += results[i].seconds;
	}
	fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n <testsuite", to);
	print_attribute("name", suite, to);
	fprintf(to, " tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" time=\"%.3f\">\n", n, failures,
		errors, seconds);
	for (size_t i = 0; !err && i < n; i++)
		err = print_case(suite, &results[i], to);
	fputs(" </testsuite>\n</testsuites>\n", to);
	return err;
}

int junit__write(const char *suite, const struct check_result *results, size_t n, char **text,
		 size_t *size)
{
	_cleanup_(free_ptr) char *written = NULL;
	size_t written_size;
	FILE *to = open_memstream(&written, &written_size);
	int err;

	if (!to)
		return -ENOMEM;
	err = print_suite(suite, results, n, to);
	if (fclose(to) || err)
		return -ENOMEM;
	*text = written;
	*size = written_size;
	written = NULL;
	return 0;
}
