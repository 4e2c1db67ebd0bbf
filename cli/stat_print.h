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

/* Lines of the report have no more columns, but for names that have. */
#define STAT_COLUMNS 80
/* The width of the numbers on the left. */
#define STAT_NUMBER_COLUMNS 16

/* @text, which comes behind @used columns of a line, and begins further lines after @indent; ends the line. */
void stat_print__wrapped(FILE *to, const char *text, size_t used, size_t indent);
/* "  not complete: ..." */
void stat_print__sentence(FILE *to, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* @before, @name and @after in a line: on a terminal of @columns (0: no limit) no more of the name than fits. */
void stat_print__title(FILE *to, size_t columns, const char *before, const char *name,
		       const char *after);
/* The same for a command; @after may have two lines. */
void stat_print__command(FILE *to, size_t columns, char *const argv[], const char *after);
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
