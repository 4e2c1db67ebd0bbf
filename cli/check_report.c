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
#include "growth_text.h"
#include "number.h"
#include "page_text.h"
#include "stack_view.h"
#include "terminal.h"

const char *check__outcome_name(enum check_outcome outcome)
{
	static const char *const names[CHECK_OUTCOMES] = {
		[CHECK_WITHIN] = "within",
		[CHECK_IMPROVED] = "improved",
		[CHECK_STALE] = "stale",
		[CHECK_OVER] = "over",
		[CHECK_INCOMPLETE] = "incomplete",
		[CHECK_MISSING] = "missing",
		[CHECK_FAILED] = "failed",
		[CHECK_NOT_RUN] = "not run",
		[CHECK_INTERRUPTED] = "interrupted",
	};

	return names[outcome];
}

const char *check_result__name(const struct check_result *result)
{
	return result->is_updated ? "updated" : check__outcome_name(result->outcome);
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
	else if (has_min)
		fprintf(to, " (at least %s)", signed_count(min).text);
}

static void print_range(const struct budget_measured *figure, FILE *to)
{
	fputs(signed_count(figure->least).text, to);
	if (figure->greatest != figure->least)
		fprintf(to, " to %s", signed_count(figure->greatest).text);
}

/* Prints how the figure compares with the base. */
static void print_growth(const struct check_result *result, size_t part, int figure, FILE *to)
{
	const struct growth_limit *allowed;
	enum check_growth growth = check_result__growth(result, part, figure, &allowed);
	const struct budget_measured *base;
	__s64 value;

	if (growth == CHECK_NOT_COMPARED)
		return;
	base = &result->figures[CHECK_BASE][part][figure];
	value = result->figures[CHECK_HEAD][part][figure].value;
	if (base->value == value)
		fputs(", as in the base", to);
	else
		fprintf(to, ", %s against %s of the base",
			growth_text__difference(base->value, value).text,
			signed_count(base->value).text);
	if (base->greatest != base->least) {
		fputs(", which has ", to);
		print_range(base, to);
	}
	if (growth == CHECK_GREW)
		fprintf(to, ", where %s is allowed", growth_limit__text(allowed).text);
	else if (growth == CHECK_NOISE)
		fputs(": the runs of both overlap, so it may be chance", to);
}

static void print_figure(const struct check_result *result, size_t part, int figure, FILE *to)
{
	const struct budget_measured *measured = &result->figures[CHECK_HEAD][part][figure];
	const struct budget_limit *limit = &check_result__limits(result, part)[figure];

	fprintf(to, "%s %s", budget__figure_name(figure), signed_count(measured->value).text);
	if (measured->greatest != measured->least && result->test->percentile) {
		fputs(", of ", to);
		print_range(measured, to);
	} else if (measured->greatest != measured->least) {
		fprintf(to, " to %s", signed_count(measured->greatest).text);
	}
	if (measured->greatest != measured->least)
		fprintf(to, " in %s runs", number__count(result->n_runs).text);
	print_limits(limit, figure, measured->value, to);
	print_growth(result, part, figure, to);
}

bool check_result__shows(const struct check_result *result, size_t part, enum budget_figure figure)
{
	const struct budget_limit *limit = &check_result__limits(result, part)[figure];
	const struct growth_limit *allowed;

	if (part && check_result__part(result, part)->is_off)
		return false;
	return limit->has_max || limit->has_min ||
	       check_result__growth(result, part, figure, &allowed) != CHECK_NOT_COMPARED;
}

/* Prints the figures that have limits. */
static void print_figures(const struct check_result *result, FILE *to)
{
	size_t shown = 0;

	for (size_t part = 0; part <= result->test->n_parts; part++)
		for (int i = 0; i < BUDGET_FIGURES; i++) {
			const struct budget_part *of = check_result__part(result, part);

			if (!check_result__shows(result, part, i))
				continue;
			fputs(shown++ ? "; " : "", to);
			if (of)
				fprintf(to, "%s '%s' ", budget_part__words(of->kind), of->name);
			print_figure(result, part, i, to);
		}
}

/* Prints @name, which may contain any characters, between @before and @after. */
static void print_words(FILE *to, const char *before, const char *name, const char *after)
{
	const struct terminal terminal = { .to = to };

	fputs(before, to);
	terminal__print(&terminal, name, 0);
	fputs(after, to);
}

static void print_part(FILE *to, const struct budget_part *part, const char *after)
{
	fputs(budget_part__words(part->kind), to);
	print_words(to, " '", part->name, "'");
	fputs(after, to);
}

/* Proposes limits for figures whose runs differ. */
static void print_room(const struct check_result *result, FILE *to)
{
	size_t shown = 0;

	for (size_t part = 0; part <= result->test->n_parts; part++)
		for (int i = 0; i < BUDGET_FIGURES; i++) {
			const struct budget_measured *measured =
				&result->figures[CHECK_HEAD][part][i];
			const struct budget_part *of = check_result__part(result, part);

			if (!check_result__shows(result, part, i) ||
			    !check_result__limits(result, part)[i].has_max ||
			    measured->least == measured->greatest)
				continue;
			fputs(shown++ ? "; " : "  with room for it: ", to);
			if (of)
				print_part(to, of, " ");
			fprintf(to, "%s at most %s", budget__figure_name(i),
				signed_count(budget__slack_of(measured).max).text);
		}
	if (shown)
		fputc('\n', to);
}

/* Returns the figures that exceeded limits, such as "total_allocations 7,004 > 4,050". The caller
 * frees the text; NULL if there is no memory. */
static char *check_result__summary(const struct check_result *result)
{
	char *summary = NULL;
	size_t size;
	FILE *to = open_memstream(&summary, &size);

	if (!to)
		return NULL;
	if (result->error.text[0])
		fprintf(to, "%s", result->error.text);
	else if (result->figures[CHECK_HEAD])
		print_figures(result, to);
	if (!fclose(to))
		return summary;
	free(summary);
	return NULL;
}

void check_report__print(const struct check_result *result, FILE *to)
{
	_cleanup_(free_ptr) char *summary = check_result__summary(result);

	const struct terminal terminal = { .to = to };

	fprintf(to, "%-11s ", check_result__name(result));
	terminal__print(&terminal, result->test->name, 0);
	fputs(": ", to);
	terminal__print(&terminal, summary ? summary : "", 0);
	fputc('\n', to);
	if (result->spread) {
		fputs(result->spread, to);
		print_room(result, to);
	}
	if (result->details)
		fprintf(to, "\n%s\n", result->details);
	fflush(to);
}

/* Maximum number of stacks that are listed: enough to find the cause, and few enough to keep a log
 * readable. */
#define MOST_STACKS 5

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

/* @function: a pattern for a function of the stacks; NULL: all stacks. */
static int print_diff(const char *const paths[DIFF_SIDES], enum cost cost,
		      const struct budget_part *part, FILE *to, struct error *error)
{
	const struct diff_options options = { .cost = cost };
	_cleanup_(release_selected) struct selected selected[DIFF_SIDES] = { 0 };
	_cleanup_(free_views) struct stack_view *lines[DIFF_SIDES] = { NULL };
	_cleanup_(free_diff) struct diff *diff = NULL;
	/* Stacks are compared without lines, so that an edited function keeps its stacks. */
	const struct view_choice with_lines = { .options.lines = true };
	struct diff_input inputs[DIFF_SIDES];
	int err = 0;

	for (int side = 0; side < DIFF_SIDES && !err; side++) {
		struct check_selection selection;
		struct data_choice choice = {
			.paths.input = paths[side],
			.needs_no_groups = true,
		};

		err = check__select(part, &selection, &choice.filter.options, error);
		if (!err)
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

/* Returns whether the figure is to be explained by the recording @before. */
static bool has_failed(const struct check_result *result, size_t part, enum budget_figure figure,
		       bool is_base)
{
	const struct growth_limit *allowed;

	if (is_base)
		return check_result__growth(result, part, figure, &allowed) == CHECK_GREW;
	return check_result__verdict(result, part, figure) != BUDGET_WITHIN;
}

static void print_differences(const struct check_result *result, const char *before, bool is_base,
			      FILE *to)
{
	const char *const paths[DIFF_SIDES] = { before, result->profiles[CHECK_HEAD] };
	struct error error = { 0 };
	bool is_any = false;

	for (size_t part = 0; part <= result->test->n_parts; part++)
		for (int i = 0; i < BUDGET_FIGURES; i++) {
			const struct budget_part *of = check_result__part(result, part);
			bool is_whole = !of || of->kind == BUDGET_REGION;

			/* Recordings do not know of regions. */
			if (!has_failed(result, part, i, is_base) || (of && is_whole && is_any))
				continue;
			is_any = true;
			fprintf(to, "%s, %s", is_base ? "Since the base" : "Since the last pass",
				budget__figure_name(i));
			if (!is_whole) {
				fputc(' ', to);
				print_part(to, of, "");
			}
			fputs(":\n", to);
			if (print_diff(paths, check__cost(i), is_whole ? NULL : of, to, &error))
				print_words(to, "cannot be compared: ", error.text, "\n");
			fputc('\n', to);
		}
	if (!is_any)
		return;
	print_words(to, "More of it: allocprof diff ", before, " ");
	print_words(to, "", paths[DIFF_AFTER], "\n");
}

static bool is_anything_over(const struct check_result *result, bool is_base)
{
	for (size_t part = 0; part <= result->test->n_parts; part++)
		for (int i = 0; i < BUDGET_FIGURES; i++)
			if (has_failed(result, part, i, is_base))
				return true;
	return false;
}

static void print_details(const struct check_result *result, FILE *to)
{
	const char *profile = result->profiles[CHECK_HEAD], *base = result->profiles[CHECK_BASE];
	bool has_base = base && !access(base, R_OK);

	if (!profile || access(profile, R_OK))
		return;
	if (has_base)
		print_differences(result, base, true, to);
	if (!is_anything_over(result, false))
		return;
	if (!access(result->baseline, R_OK)) {
		print_differences(result, result->baseline, false, to);
		return;
	}
	print_words(to, "No recording of a run that passed to compare with at ", result->baseline,
		    ".\n");
	print_words(to, "allocprof report -i ", profile, " shows this one.\n");
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
