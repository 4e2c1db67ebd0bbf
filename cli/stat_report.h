/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The report of `allocprof stat`, as text (allocprof-stat(1)) and as JSON (allocprof-stat(5)). */
#ifndef ALLOCPROF_STAT_REPORT_H
#define ALLOCPROF_STAT_REPORT_H

#include <json-c/json.h>
#include <stdio.h>

struct measure;
struct profile;

/* Writes the report as text, for a terminal of @columns (0: no limit). Returns 0, -ENOMEM or the
 * negative errno of the write. */
int stat_report__text(const struct measure *measure, const struct profile *profile, size_t columns,
		      FILE *to);
int stat_report__json(const struct measure *measure, const struct profile *profile, FILE *to);

/* Makes the object that stat_report__json() writes (allocprof-stat/1); the caller owns it. Returns
 * NULL on ENOMEM. */
json_object *stat_report__object(const struct measure *measure, const struct profile *profile);

/* Width of the report's lines; only long names exceed it. */
#define STAT_COLUMNS 80

/* Parts of the text that stat_series.c uses, too. */

/* Prints @text after @used columns of a line, wraps it with @indent, and ends the line. */
void stat_print__wrapped(FILE *to, const char *text, size_t used, size_t indent);
/* Prints a sentence on lines of its own, such as "  not complete: ...". */
void stat_print__sentence(FILE *to, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Prints a title line and truncates @name to fit a terminal of @columns (0: no limit). */
void stat_print__title(FILE *to, size_t columns, const char *before, const char *name,
		       const char *after);
/* Does the same with a command line for the name; @after may have two lines. */
void stat_print__command(FILE *to, size_t columns, char *const argv[], const char *after);

#endif
