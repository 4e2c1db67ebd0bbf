/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Makes the time line of a recording as numbers, for allocprof-graph(1). */
#ifndef ALLOCPROF_GRAPH_DATA_H
#define ALLOCPROF_GRAPH_DATA_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

struct error;
struct profile;
struct profile_rss_sample;
struct timeline_sample;
struct stack_groups;

#define GRAPH_DEFAULT_TOP 8
/* The largest number of bands; more could not be told apart. */
#define GRAPH_MAX_TOP 16
/* The largest number of points besides the start; longer time lines merge epochs. */
#define GRAPH_MAX_POINTS 1000

/* Series that are asked for in place of the greatest stacks. */
struct graph_choice {
	size_t n;
	const char *names[GRAPH_MAX_TOP];
	/* By lifetime: whether it is of the series. One that is of several belongs to the first. */
	bool *lifetimes[GRAPH_MAX_TOP];
};

/* Live memory of a stack group, of a series of struct graph_choice, or of all that is in none of them. */
struct graph_series {
	const char *name;	/* of the choice; NULL: it is of a group, or the others */
	__u32 stack;		/* smallest id of the group; 0 for all else */
	__u32 group;		/* index of the group */
	size_t n_stacks;	/* 0 with a choice */
	bool is_rest;		/* it is of all that is in no other */
	__u64 peak_bytes;	/* largest value at the end of an epoch */
	__u64 live, live_bytes; /* blocks that were not freed, also by processes that have ended */
	/* For each point, owned by the graph: live bytes that stay, and live bytes that are freed
	 * later. A block stays if it is never freed, and at its end is older than its group's
	 * usual age; a younger one counts as freed later. If at least 100 blocks of a group were
	 * freed, and no fewer than are left, the usual age is the one that 99 % of the freed ones
	 * did not exceed; else all blocks that are never freed stay. */
	__u64 *stays_bytes, *freed_bytes;
};

struct graph {
	__u64 epoch_ns;
	__u64 end_ns;	 /* end of the recording, since its start */
	__u64 *times_ns; /* by point; the first is 0, the last @end_ns; owned */
	size_t n_points;
	struct graph_series *series; /* by descending peak, the others last; owned */
	size_t n_series;
	size_t n_stacks;	   /* number of groups with a block */
	__u64 peak_bytes, peak_ns; /* peak of all series together, at the end of an epoch */
	__u64 live, live_bytes;
	__u64 *allocations; /* blocks allocated, by span; owned */
	size_t n_spans;	    /* at least 1; each lasts @span_ns, but the last ends at @end_ns */
	__u64 span_ns;
	/* Owned by the profile. The last one is the last at which a process had resident memory. */
	const struct timeline_sample *samples;
	size_t n_samples;
	const struct profile_rss_sample *rss_samples; /* owned by the profile */
	size_t n_rss_samples;
};

/*
 * Makes the time line of those lifetimes of @profile that are @selected (by index; NULL: all), with a series for each of
 * the @top stack groups with the greatest peaks or, where @choice is not NULL, for each of its own. @profile and @choice
 * must outlive it. Returns 0, or with @error set -ENODATA for a recording without --live, -EINVAL for a profile that
 * contradicts itself, -ENOMEM.
 */
int graph__new(const struct profile *profile, const struct stack_groups *groups,
	       const bool *selected, const struct graph_choice *choice, size_t top,
	       struct graph **graph, struct error *error);
void graph__free(struct graph *graph);

/* Returns the length of span @span in nanoseconds; never 0. */
__u64 graph__span_ns(const struct graph *graph, size_t span);

#endif
