/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Makes the sentences of findings, for reports and pages. report_output__findings() prints them. */
#ifndef ALLOCPROF_FINDING_TEXT_H
#define ALLOCPROF_FINDING_TEXT_H

#include <json-c/json.h>

#include "findings.h"
#include "moved.h"

struct terminal;

/* Returns the findings of @report as a list of objects with the members kind, function, which may
 * be null, says ("holds 64.4 % of the peak") and detail ("96.0 MiB of 149 MiB, in 96 blocks"), and
 * with the numbers. */
json_object *findings_text__json(const struct report *report, const struct findings *findings);

/* Returns all advice, in its order, as a list of objects with the members kind, function, says (what
 * is to be done), detail (what it saves) and reason. */
json_object *advice_text__json(const struct report *report, const struct findings *findings);

/* Print what moved between two recordings, a sentence each. */
void moved_text__print(const struct moved *list, size_t n, const struct terminal *terminal);
json_object *moved_text__json(const struct moved *list, size_t n);

/* Returns what a part of the resident memory is. */
const char *resident_text__part(enum rss_kind kind);

#endif
