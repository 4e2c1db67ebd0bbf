/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The report of `allocprof stat -r` (allocprof-stat(1)). */
#ifndef ALLOCPROF_STAT_SERIES_H
#define ALLOCPROF_STAT_SERIES_H

#include <json-c/json.h>
#include <stdio.h>

#include "measure.h"
#include "stat_figures.h"

struct error;
struct measure;
struct profile;

/* The figures of a region by run. They are zeros for runs that had no region of this name. */
struct stat_series_region {
	char *name;
	struct stat_figures *runs;
};

/* The runs of a series. Zeroed it is empty. The caller releases it. */
struct stat_series {
	const struct measure *measure;
	const struct series *series;
	__u64 per; /* divisor of every figure (--per) */
	struct stat_figures *runs;
	size_t n_runs, room;
	struct stat_series_region *regions;
	size_t n_regions, regions_room;
	json_object *objects; /* the allocprof-stat/1 object of each run; only for --json */
	bool wants_objects;
	bool is_complete, has_live, are_regions_complete;
};

/* Adds a finished run. Returns 0 or -ENOMEM. */
int stat_series__add(struct stat_series *stat, const struct profile *profile);
void stat_series__release(struct stat_series *stat);

/* Writes the report of the series as text. Returns 0, -ENOMEM or the negative errno of the write. */
int stat_series__text(const struct stat_series *stat, size_t columns, FILE *to);
/* Writes the report of the series as JSON (allocprof-stat/2); to be called once. */
int stat_series__json(struct stat_series *stat, const struct series_end *end, FILE *to);

#endif
