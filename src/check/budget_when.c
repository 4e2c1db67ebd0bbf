// SPDX-License-Identifier: GPL-3.0-or-later
/* Chooses the limits of a test by where it was run. */
#include <errno.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "budget.h"
#include "cleanup.h"
#include "error.h"

/* Returns whether one of the @lines matches. */
static bool matches(const char *condition, const char *lines)
{
	regex_t compiled;
	bool found;

	/* Lines begin and end where ^ and $ match. It was compiled before. */
	if (!lines || regcomp(&compiled, condition, REG_EXTENDED | REG_NOSUB | REG_NEWLINE))
		return false;
	found = !regexec(&compiled, lines, 0, NULL, 0);
	regfree(&compiled);
	return found;
}

static bool holds(const struct budget_when *when, budget_condition_fn says, void *context)
{
	for (int i = 0; i < BUDGET_CONDITIONS; i++)
		if (when->conditions[i] && !matches(when->conditions[i], says(context, i)))
			return false;
	return true;
}

/* Leaves out what the same part of the test itself limits, too. */
static void replace_part(struct budget_test *test, const struct budget_part *by)
{
	for (size_t i = 0; i < test->n_parts; i++) {
		struct budget_part *part = &test->parts[i];

		if (part->when || part->kind != by->kind || strcmp(part->name, by->name) != 0)
			continue;
		for (int j = 0; j < BUDGET_FIGURES; j++)
			if (budget_limit__is_any(&by->limits[j]))
				part->limits[j] = (struct budget_limit){ 0 };
	}
}

/* Takes the limits of entry @chosen, counted from 1; 0: no entry holds. */
static void take(struct budget_test *test, size_t chosen)
{
	const struct budget_when *when = chosen ? &test->whens[chosen - 1] : NULL;
	bool is_bare = true;

	for (size_t i = 0; i < test->n_parts; i++) {
		struct budget_part *part = &test->parts[i];

		part->is_off = part->when && part->when != chosen;
		if (!part->when || part->is_off)
			continue;
		is_bare = false;
		replace_part(test, part);
	}
	for (int i = 0; i < BUDGET_FIGURES && when; i++)
		is_bare &= !budget_limit__is_any(&when->limits[i]);
	for (int i = 0; i < BUDGET_FIGURES && when; i++) {
		/* An entry without limits gets all that --update writes. */
		if (is_bare || budget_limit__is_any(&when->limits[i]))
			test->owners[i] = when->object;
		if (budget_limit__is_any(&when->limits[i]))
			test->limits[i] = when->limits[i];
	}
}

int budget_test__choose_when(struct budget_test *test, budget_condition_fn says, void *context,
			     struct error *error)
{
	_cleanup_(free_ptr) char *place = NULL;
	size_t chosen = 0, size;
	FILE *to;

	for (size_t i = 0; i < test->n_whens && !chosen; i++)
		if (holds(&test->whens[i], says, context))
			chosen = i + 1;
	take(test, chosen);
	free(test->whens);
	test->whens = NULL;
	test->n_whens = 0;
	if (budget_test__has_limits(test))
		return 0;
	to = open_memstream(&place, &size);
	for (int i = 0; to && i < BUDGET_LIBRARY; i++)
		fprintf(to, "%s%s '%.120s'", i ? ", " : "", budget__condition_name(i),
			says(context, i) ? says(context, i) : "");
	if (!to || fclose(to))
		return -ENOMEM;
	return error__set(error, -ENODATA,
			  "it has no limits for where it was run: %s; add an entry to \"when\"",
			  place);
}
