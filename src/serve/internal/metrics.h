/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Numbers of a recording that goes on, as Prometheus and others scrape them: in OpenMetrics' text, or the older
 * format of Prometheus. */
#ifndef ALLOCPROF_METRICS_H
#define ALLOCPROF_METRICS_H

#include <stdbool.h>
#include <stdio.h>

struct metrics;
struct served_profile;

/* @most: functions, and processes, that have a series each; others are added up. With @is_restart, what the
 * first copy has was counted by another process that has ended: counters begin at 0. Returns NULL if there is no
 * memory. */
struct metrics *metrics__new(unsigned int most, bool is_restart);

/*
 * Writes the metrics of @served to @to. Remembers what has a series, since such a one must not be another's
 * later, and what counters were: each series has what its rows gained from copy to copy, so none falls, though live
 * blocks of a copy may be torn, or has what another has had. Returns 0 or a negative errno.
 */
int metrics__write(struct metrics *metrics, const struct served_profile *served, bool is_open,
		   FILE *to);

#endif
