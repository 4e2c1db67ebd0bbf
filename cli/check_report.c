// SPDX-License-Identifier: GPL-3.0-or-later
/* Prints the results of `check`. */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "cleanup.h"
#include "number.h"
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
