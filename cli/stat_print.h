/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Parts of stat's report that a run and a region have in common. */
#ifndef ALLOCPROF_STAT_PRINT_H
#define ALLOCPROF_STAT_PRINT_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stdio.h>

#include "stat_figures.h"

struct measure;
struct region;
struct session_results;

/* A line of a figure; @note may be "". */
void stat_print__count(FILE *to, __u64 value, const char *what, const char *note);
/* The table of functions: of the run or, where it is not NULL, of @region those that were called. */
void stat_print__functions(const struct measure *measure, const struct session_results *results,
			   const struct region *region, FILE *to);
/* The lines of what they add up to. */
void stat_print__totals(const struct stat_totals *totals, bool has_live, FILE *to);

/* The same as JSON. */
json_object *stat_print__functions_object(const struct measure *measure,
					  const struct session_results *results,
					  const struct region *region);
void stat_print__add_totals(json_object *object, const struct stat_totals *totals, bool has_live,
			    __u64 failed);

#endif
