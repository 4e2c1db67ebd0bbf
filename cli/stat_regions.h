/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What stat prints of the regions that the target marks (allocprof-stat(1), Regions). */
#ifndef ALLOCPROF_STAT_REGIONS_H
#define ALLOCPROF_STAT_REGIONS_H

#include <json-c/json.h>
#include <stdio.h>

struct measure;
struct session;
struct session_results;

/* A block for each region that was entered, and what is not known. */
void stat_regions__print(const struct session *session, const struct measure *measure,
			 const struct session_results *results, size_t columns, FILE *to);
/* The keys of @root that are about regions; none where there are none. */
void stat_regions__add(json_object *root, const struct session *session,
		       const struct measure *measure, const struct session_results *results);
/* Says as messages what is not known of regions. */
void stat_regions__report_gaps(const struct session *session,
			       const struct session_results *results);

#endif
