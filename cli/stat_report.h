/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The report of `allocprof stat`, as text (allocprof-stat(1)) and as JSON (allocprof-stat(5)). */
#ifndef ALLOCPROF_STAT_REPORT_H
#define ALLOCPROF_STAT_REPORT_H

#include <json-c/json.h>
#include <stdio.h>

struct measure;
struct profile;

/* 0, -ENOMEM or the negative errno of the write. */
int stat_report__text(const struct measure *measure, const struct profile *profile, size_t columns,
		      FILE *to);
int stat_report__json(const struct measure *measure, const struct profile *profile, FILE *to);

/* The object that stat_report__json() writes, allocprof-stat/1; NULL on ENOMEM. */
json_object *stat_report__object(const struct measure *measure, const struct profile *profile);

#endif
