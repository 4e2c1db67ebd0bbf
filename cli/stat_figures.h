/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The figures that stat computes from the counters of a run. */
#ifndef ALLOCPROF_STAT_FIGURES_H
#define ALLOCPROF_STAT_FIGURES_H

#include <linux/types.h>
#include <stdbool.h>

#include "abi.h"

struct measure;
struct region;
struct profile;

/* Sums over the functions. Functions that map memory, and page faults, have sums of their own. docs/semantics.md
 * defines the words. */
struct stat_totals {
	__u64 allocations, reallocations, deallocations;
	__u64 allocations_size_bytes, reallocations_size_bytes;
	/* With --live; these sums include the bytes of reallocations. */
	__u64 bytes_allocated, bytes_deallocated;
	__s64 bytes_reallocated;
	__u64 internal;
	/* Calls for mappings that the kernel refused, and bytes of mappings that were returned to
	 * it. */
	__u64 mappings_failed, returned_bytes;
	__u64 faulted_bytes; /* a page for each page fault */
	bool knows_faults;   /* page faults were selected */
	bool knows_mappings; /* functions that map memory were selected */
	bool knows_frees;    /* free was among the selected functions */
};

/* Returns the counts of function @i in @region, or in the whole run if @region is NULL. */
const struct ap_site_counts *stat_totals__counts(const struct profile *profile,
						 const struct region *region, int i);
/* Returns whether function @i was selected and probed. */
bool stat_totals__shows(const struct measure *measure, const struct profile *profile, int i);
struct stat_totals stat_totals__of(const struct measure *measure, const struct profile *profile);
/* Returns the requested bytes of allocations and reallocations together. Like all sums of bytes
 * here they saturate at PROFILE_MAX. */
__u64 stat_totals__total_bytes(const struct stat_totals *totals);
/* Returns the same as stat_totals__of() for one region. */
struct stat_totals stat_totals__of_region(const struct measure *measure,
					  const struct profile *profile,
					  const struct region *region);

/* The figures of a run. The calls of each function come first, by enum ap_function. */
enum stat_figure {
	STAT_ALLOCATIONS = AP_FUNCTIONS,
	STAT_REALLOCATIONS,
	STAT_DEALLOCATIONS,
	STAT_TOTAL_ALLOCATIONS,
	STAT_REMAINING_ALLOCATIONS,
	STAT_TOTAL_ALLOCATED_BYTES,
	STAT_LIVE_BYTES,
	STAT_PEAK_BYTES,
	STAT_TEMPORARY,
	STAT_FAILED,
	STAT_ENTERED, /* number of times that a region was entered; for regions only */
	STAT_INTERNAL,
	STAT_PROCESSES,
	STAT_ELAPSED_SECONDS, /* stored in nanoseconds */
	STAT_USER_SECONDS,
	STAT_SYSTEM_SECONDS,
	STAT_FIGURES,
};

struct stat_figures {
	__s64 values[STAT_FIGURES];
	bool is_known[STAT_FIGURES];
};

struct stat_figures stat_figures__of(const struct measure *measure, const struct profile *profile);
struct stat_figures stat_figures__of_region(const struct measure *measure,
					    const struct profile *profile,
					    const struct region *region);
/* Returns the key of the figure in JSON, such as "total_allocations". */
const char *stat_figure__key(const struct measure *measure, int figure);
/* Returns the name of the figure in text, such as "total allocations". */
const char *stat_figure__words(const struct measure *measure, int figure, bool has_live);
bool stat_figure__is_time(int figure);

#endif
