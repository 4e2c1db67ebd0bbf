/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The report of `allocprof stat`, as text (allocprof-stat(1)) and as JSON (allocprof-stat(5)). */
#ifndef ALLOCPROF_STAT_REPORT_H
#define ALLOCPROF_STAT_REPORT_H

#include <json-c/json.h>
#include <stdio.h>

struct measure;
struct session;
struct session_results;

/* 0, -ENOMEM or the negative errno of the write. */
int stat_report__text(const struct session *session, const struct measure *measure,
		      const struct session_results *results, size_t columns, FILE *to);
int stat_report__json(const struct session *session, const struct measure *measure,
		      const struct session_results *results, FILE *to);

/* The object that stat_report__json() writes, allocprof-stat/1; NULL on ENOMEM. */
json_object *stat_report__object(const struct session *session, const struct measure *measure,
				 const struct session_results *results);

#endif
