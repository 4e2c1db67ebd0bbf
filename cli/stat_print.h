/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Parts of stat's report that are the same for a run and a region. */
#ifndef ALLOCPROF_STAT_PRINT_H
#define ALLOCPROF_STAT_PRINT_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stdio.h>

#include "stat_figures.h"

struct measure;
struct region;
struct profile;

/* Width of the report's lines; only long names exceed it. */
#define STAT_COLUMNS 80
/* Width of the column of numbers. */
#define STAT_NUMBER_COLUMNS 16

/* Prints @text after @used columns of a line, wraps it with @indent, and ends the line. */
void stat_print__wrapped(FILE *to, const char *text, size_t used, size_t indent);
/* "  not complete: ..." */
void stat_print__sentence(FILE *to, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Prints a line; truncates @name to fit a terminal of @columns (0: no limit). */
void stat_print__title(FILE *to, size_t columns, const char *before, const char *name,
		       const char *after);
/* The same for a command line; @after may have two lines. */
void stat_print__command(FILE *to, size_t columns, char *const argv[], const char *after);
/* Prints the line of a figure; @note may be "". */
void stat_print__count(FILE *to, __u64 value, const char *what, const char *note);
/* Prints the sentence into the FILE @to: a measure_gaps_say. */
void stat_print__gap(void *to, const char *sentence);
/* The table of functions of the run or, if it is not NULL, of those called in @region. */
void stat_print__functions(const struct measure *measure, const struct profile *profile,
			   const struct region *region, FILE *to);
/* Prints the sums of the functions. */
void stat_print__totals(const struct stat_totals *totals, bool has_live, FILE *to);

/* The same as JSON. */
json_object *stat_print__functions_object(const struct measure *measure,
					  const struct profile *profile,
					  const struct region *region);
void stat_print__add_totals(json_object *object, const struct stat_totals *totals, bool has_live,
			    __u64 failed);
/* Returns the sentences on files that mark regions, or on what the engine alone knows to be missing. */
json_object *stat_print__gaps_array(const struct profile *profile, bool of_regions);

#endif
