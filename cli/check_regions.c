// SPDX-License-Identifier: GPL-3.0-or-later
/* The regions of a test of `check`, each with limits of its own. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "profile.h"
#include "stat_figures.h"

int check_regions__prepare(struct check_result *result, const struct budget_test *test, size_t runs)
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

void check_regions__take(struct check_result *result, const struct measure *measure,
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

int check_regions__settle(struct check_result *result)
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

int check_regions__update(struct check_result *result, bool *is_updated)
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

void check_regions__release(struct check_result *result)
{
	for (size_t i = 0; result->regions && i < result->test->n_regions; i++)
		for (int j = 0; j < BUDGET_FIGURES; j++)
			free(result->regions[i].values[j]);
	free(result->regions);
	result->regions = NULL;
}
