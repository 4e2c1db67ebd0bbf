/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The time line of a recording as numbers: what allocprof-graph(1) draws. */
#ifndef ALLOCPROF_GRAPH_DATA_H
#define ALLOCPROF_GRAPH_DATA_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

struct error;
struct profile;
struct profile_moment;
struct stack_groups;

#define GRAPH_DEFAULT_TOP 8
/* More bands than this cannot be told apart. */
#define GRAPH_MAX_TOP 16
/* So many points of time at most, besides the start; of longer time lines several epochs make one. */
#define GRAPH_MAX_POINTS 1000

/* What was live of the stacks that print alike, or of all that have no series of their own. */
struct graph_series {
	__u32 stack; /* the smallest id; 0 for the others */
	__u32 group; /* index of the stack group */
	size_t n_stacks;
	__u64 peak_bytes;	/* the most that was live when an epoch ended */
	__u64 live, live_bytes; /* when the recording ended */
	/* By point, owned: of blocks that are live when the recording ends, and of the others. */
	__u64 *stays_bytes, *freed_bytes;
};

struct graph {
	__u64 epoch_ns;
	__u64 end_ns;	 /* of the recording, since its start */
	__u64 *times_ns; /* by point; the first is 0, the last @end_ns; owned */
	size_t n_points;
	struct graph_series *series; /* by falling peak, the others last; owned */
	size_t n_series;
	size_t n_stacks;	   /* groups that had a block */
	__u64 peak_bytes, peak_ns; /* of all series together, when an epoch ended */
	__u64 live, live_bytes;
	__u64 *allocations; /* by span: blocks born; owned */
	size_t n_spans;	    /* at least 1; each @span_ns long but the last, which ends at @end_ns */
	__u64 span_ns;
	const struct profile_moment *moments; /* the profile's */
	size_t n_moments;
};

/*
 * Makes the time line of @profile's lifetimes that are @selected (by index; NULL: all) with series for
 * the @top stack groups whose peaks are greatest. To be
 * given to graph__free(), and no longer used than @profile. 0, or with @error set -ENODATA where it
 * was not recorded with --live, -EINVAL where @profile contradicts itself, -ENOMEM.
 */
int graph__new(const struct profile *profile, const struct stack_groups *groups,
	       const bool *selected, size_t top, struct graph **graph, struct error *error);
void graph__free(struct graph *graph);

/* Nanoseconds that span number @span lasts; never 0. */
__u64 graph__span_ns(const struct graph *graph, size_t span);

#endif
