// SPDX-License-Identifier: GPL-3.0-or-later
#include "stat_regions.h"

#include <string.h>

#include "cleanup.h"
#include "json.h"
#include "measure_gaps.h"
#include "number.h"
#include "profile.h"
#include "stat_figures.h"
#include "stat_print.h"
#include "text.h"

static void print_region(const struct measure *measure, const struct profile *profile,
			 const struct region *region, size_t columns, FILE *to)
{
	struct stat_totals totals = stat_totals__of_region(measure, profile, region);
	char entered[400];

	snprintf(entered, sizeof(entered), "', entered %s %s:\n",
		 number__count(region->entered).text, plural__of("time{|s}", region->entered).text);
	fputc('\n', to);
	stat_print__title(to, columns, " Region '", region->name, entered);
	stat_print__functions(measure, profile, region, to);
	fputc('\n', to);
	stat_print__totals(&totals, profile->totals.has_live, to);
	if (!profile->totals.has_live)
		return;
	stat_print__count(to, region->stats[AP_STAT_FREED_BYTES], "bytes freed",
			  "by frees and reallocations");
	stat_print__count(to, region->stats[AP_STAT_FAILED], "failed requests", "");
}

static void print_others(const struct profile_totals *totals, FILE *to)
{
	_cleanup_(free_ptr) char *names = NULL;
	size_t size, n = 0;
	FILE *memory = open_memstream(&names, &size);

	for (size_t i = 0; memory && i < totals->n_regions; i++)
		if (!totals->regions[i].entered)
			fprintf(memory, "%s%s", n++ ? ", " : " Regions that were not entered: ",
				totals->regions[i].name);
	if (!memory || fclose(memory) || !n)
		return;
	fputc('\n', to);
	stat_print__wrapped(to, names, 0, 2);
}

void stat_regions__print(const struct measure *measure, const struct profile *profile,
			 size_t columns, FILE *to)
{
	const struct profile_totals *totals = &profile->totals;

	for (size_t i = 0; i < totals->n_regions; i++)
		if (totals->regions[i].entered)
			print_region(measure, profile, &totals->regions[i], columns, to);
	print_others(totals, to);
	if (profile__has_gaps(profile, true))
		fputc('\n', to);
	measure_gaps__visit(profile, true, stat_print__gap, to);
}

static json_object *region_object(const struct measure *measure, const struct profile *profile,
				  const struct region *region)
{
	struct stat_totals totals = stat_totals__of_region(measure, profile, region);
	json_object *object = json_object_new_object();

	json__add(object, "entered", json__count(region->entered));
	json__add(object, "functions", stat_print__functions_object(measure, profile, region));
	stat_print__add_totals(object, &totals, profile->totals.has_live,
			       region->stats[AP_STAT_FAILED]);
	return object;
}

static json_object *gaps_object(const struct profile *profile)
{
	json_object *object = json_object_new_object();

	for (enum gap gap = GAP_REGION_DEPTH; gap <= GAP_REGION_UNNOTICED; gap++)
		json__add(object, gap__key(gap) + strlen("region_"),
			  json__count(profile__gap(profile, gap)));
	json__add(object, "files", stat_print__gaps_array(profile, true));
	return object;
}

void stat_regions__add(json_object *root, const struct measure *measure,
		       const struct profile *profile)
{
	const struct profile_totals *totals = &profile->totals;
	json_object *object;

	if (!totals->n_regions && !profile__has_gaps(profile, true))
		return;
	object = json_object_new_object();
	for (size_t i = 0; i < totals->n_regions; i++)
		json__add(object, totals->regions[i].name,
			  region_object(measure, profile, &totals->regions[i]));
	json__add(root, "regions", object);
	json__add(root, "regions_complete",
		  json_object_new_boolean(!profile__has_gaps(profile, true)));
	json__add(root, "regions_gaps", gaps_object(profile));
}
