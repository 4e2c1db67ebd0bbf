/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a run measured by stat comes to. */
#ifndef ALLOCPROF_STAT_FIGURES_H
#define ALLOCPROF_STAT_FIGURES_H

#include <linux/types.h>
#include <stdbool.h>

#include "abi.h"

struct measure;
struct region;
struct session_results;

/* What the counts of single functions add up to, those that map memory apart; docs/semantics.md has the words. */
struct stat_totals {
	__u64 allocations, reallocations, deallocations;
	__u64 allocations_size_bytes, reallocations_size_bytes;
	/* With live; those of reallocations are in them. */
	__u64 bytes_allocated, bytes_deallocated;
	__s64 bytes_reallocated;
	__u64 internal;
	/* Calls that the kernel refused, and what was given back to it. */
	__u64 mappings_failed, returned_bytes;
	bool knows_mappings; /* these were asked for */
	bool knows_frees;    /* free was among the functions asked for */
};

/* Whether function @i was asked for and probed. */
bool stat_totals__shows(const struct measure *measure, const struct session_results *results,
			int i);
struct stat_totals stat_totals__of(const struct measure *measure,
				   const struct session_results *results);
/* The same of one of its regions. */
struct stat_totals stat_totals__of_region(const struct measure *measure,
					  const struct session_results *results,
					  const struct region *region);

/* Figures that runs are compared by. The calls of the functions come first, by enum ap_function. */
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
	STAT_ENTERED, /* of regions only */
	STAT_INTERNAL,
	STAT_PROCESSES,
	STAT_ELAPSED_SECONDS, /* these are kept in nanoseconds */
	STAT_USER_SECONDS,
	STAT_SYSTEM_SECONDS,
	STAT_FIGURES,
};

struct stat_figures {
	__s64 values[STAT_FIGURES];
	bool is_known[STAT_FIGURES];
};

struct stat_figures stat_figures__of(const struct measure *measure,
				     const struct session_results *results);
struct stat_figures stat_figures__of_region(const struct measure *measure,
					    const struct session_results *results,
					    const struct region *region);
/* "total_allocations": the key in JSON. */
const char *stat_figure__key(const struct measure *measure, int figure);
/* "total allocations": for people. */
const char *stat_figure__words(const struct measure *measure, int figure, bool has_live);
bool stat_figure__is_time(int figure);

#endif
