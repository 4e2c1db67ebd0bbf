/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The calls of a recording in the order in which they were made, by its event log. */
#ifndef ALLOCPROF_EVENT_CHART_H
#define ALLOCPROF_EVENT_CHART_H

#include <linux/types.h>
#include <stddef.h>

#include "selection.h"

struct error;
struct event_log_reader;
struct filter_options;
struct profile;
struct stack_groups;

/* A chart has at most so many columns, each of which has an equal part of the whole cost: more than a picture
 * has pixels that can be told apart. */
#define EVENT_CHART_COLUMNS 4096

/* The calls of one count in one column. */
struct event_chart_part {
	__u32 column; /* from 1 on; parts are in the order of their columns */
	__u32 count;  /* id of the profile's count */
	double cost;
	__u64 first_ns, last_ns; /* of the calls, since the start of the recording */
};

/* Zeroed it has no calls. */
struct event_chart {
	struct event_chart_part *parts; /* owned */
	size_t n;
	__u64 unknown; /* blocks of the log whose calls the data file does not have */
};

/* Returns 0 if a log has @cost block by block, else -EINVAL with @error set. */
int event_chart__check_cost(enum cost cost, struct error *error);
/* Reads @log, that of the recording @profile, to its end. What filter__apply() says of its parameters is so here.
 * Returns 0 or a negative errno with @error set; the caller releases *@out. */
int event_chart__read(struct event_log_reader *log, const struct profile *profile,
		      const struct stack_groups *groups, struct filter_options *filter,
		      enum cost cost, struct event_chart *out, struct error *error);
void event_chart__release(struct event_chart *chart);

#endif
