/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Ticks of axes, and quantities in words. */
#ifndef ALLOCPROF_GRAPH_AXIS_H
#define ALLOCPROF_GRAPH_AXIS_H

#include <linux/types.h>
#include <stddef.h>

/* Ticks at 0, step, 2 * step, ... up to @end, all in one unit. */
struct graph_axis {
	double end;	       /* end of the axis */
	double step;	       /* between ticks, greater than 0 */
	double unit;	       /* of the labels */
	const char *unit_name; /* "MiB", "ms", "k", or "" */
};

/* Axes from 0 with about @n_ticks ticks. Axes of bytes and counts end with the first tick that is
 * not below @max, that of time exactly at the end. */
struct graph_axis graph_axis__bytes(__u64 max, unsigned int n_ticks);
struct graph_axis graph_axis__count(double max, unsigned int n_ticks);
struct graph_axis graph_axis__time(__u64 end_ns, unsigned int n_ticks);

/* Number of ticks, from 0 to the end. */
size_t graph_axis__ticks(const struct graph_axis *axis);
/* "0", "1.5 MiB" */
void graph_axis__label(const struct graph_axis *axis, size_t tick, char *text, size_t size);

/* "1.25 MiB", "17 bytes"; "2.5 s", "1 h 5 min"; "12,345". */
void graph_axis__print_bytes(__u64 bytes, char *text, size_t size);
void graph_axis__print_time(__u64 time_ns, char *text, size_t size);
void graph_axis__print_count(__u64 count, char *text, size_t size);

#endif
