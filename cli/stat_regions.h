/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Prints the regions that the target marks (allocprof-targets(7), REGIONS). */
#ifndef ALLOCPROF_STAT_REGIONS_H
#define ALLOCPROF_STAT_REGIONS_H

#include <json-c/json.h>
#include <stdio.h>

struct measure;
struct profile;

/* Prints a block for each region that was entered, and the coverage gaps. */
void stat_regions__print(const struct measure *measure, const struct profile *profile,
			 size_t columns, FILE *to);
/* Adds the keys about regions to @root; none if there are no regions. */
void stat_regions__add(json_object *root, const struct measure *measure,
		       const struct profile *profile);

#endif
