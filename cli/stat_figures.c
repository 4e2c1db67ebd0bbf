// SPDX-License-Identifier: GPL-3.0-or-later
#include "stat_figures.h"

#include <stddef.h>

#include "measure_options.h"
#include "profile.h"

static bool is_selected(const struct measure *measure, const struct function_totals *function,
			int leading)
{
	if (measure->session.functions & (1ULL << leading))
		return true;
	for (size_t i = 0; i < function->n_aliases; i++) {
		int alias = profile__function_by_name(function->aliases[i]);

		if (alias >= 0 && (measure->session.functions & (1ULL << alias)))
			return true;
	}
	return false;
}

const struct ap_site_counts *stat_totals__counts(const struct profile *profile,
						 const struct region *region, int i)
{
	return region ? &region->counts[i] : &profile->totals.functions[i].counts;
}

bool stat_totals__shows(const struct measure *measure, const struct profile *profile, int i)
{
	return profile->totals.functions[i].probed &&
	       is_selected(measure, &profile->totals.functions[i], i);
}

/*
 * Counts as the Rust crate stats_alloc does: a reallocation is neither an allocation nor a
 * deallocation, but the bytes that it adds or removes count.
 */
static void add_up_live(const __u64 stats[AP_STATS], struct stat_totals *totals)
{
	__u64 shrunk = stats[AP_STAT_SHRUNK_BYTES], grown = stats[AP_STAT_GROWN_BYTES];
	/* Bytes of the blocks that realloc replaced; they do not count as deallocated. */
	__u64 moved = stats[AP_STAT_FREED_BYTES] - stats[AP_STAT_DEALLOCATED_BYTES];

	totals->knows_frees = true;
	totals->reallocations = stats[AP_STAT_REALLOCATIONS];
	totals->allocations = stats[AP_STAT_ALLOCATIONS] - totals->reallocations;
	totals->deallocations = stats[AP_STAT_DEALLOCATIONS];
	totals->reallocations_size_bytes = moved + grown - shrunk;
	totals->allocations_size_bytes =
		stats[AP_STAT_ALLOCATED_BYTES] - totals->reallocations_size_bytes;
	totals->bytes_allocated = profile__add_up(totals->allocations_size_bytes, grown);
	totals->bytes_deallocated = profile__add_up(stats[AP_STAT_DEALLOCATED_BYTES], shrunk);
	totals->bytes_reallocated = grown - shrunk;
}

/* Adds without overflow: a failed request can have a size that leaves no room for any other. */
static void add_bytes(__u64 *sum, __u64 size_bytes)
{
	*sum = profile__add_up(*sum, size_bytes);
}

/* Adds up the totals of the run, or of @region if there is one. */
static struct stat_totals add_up(const struct measure *measure, const struct profile *profile,
				 const struct region *region)
{
	struct stat_totals totals = { 0 };

	for (int i = 0; i < AP_FUNCTIONS; i++) {
		const struct ap_site_counts *counts = stat_totals__counts(profile, region, i);

		if (!stat_totals__shows(measure, profile, i))
			continue;
		if (definition_names__counts(&profile->definitions, i))
			continue;
		totals.internal += counts->internal;
		/* Allocators hand out the memory that they map, so calls that map memory are not
		 * added: bytes would count twice. */
		if (profile__function_maps(i)) {
			totals.knows_mappings = true;
			totals.mappings_failed += counts->failed;
			add_bytes(&totals.returned_bytes, counts->returned_bytes);
			continue;
		}
		/* Nor are page faults: the memory was handed out before. */
		if (profile__function_faults(i)) {
			totals.knows_faults = true;
			add_bytes(&totals.faulted_bytes, counts->size_bytes);
			continue;
		}
		if (profile__function_frees(i)) {
			totals.knows_frees = true;
			totals.deallocations += counts->calls - counts->null;
		} else if (profile__function_reallocates(i)) {
			totals.allocations += counts->fresh;
			add_bytes(&totals.allocations_size_bytes, counts->fresh_size_bytes);
			totals.deallocations += counts->released;
			totals.reallocations += counts->calls - counts->fresh - counts->released;
			add_bytes(&totals.reallocations_size_bytes,
				  counts->size_bytes - counts->fresh_size_bytes);
		} else {
			totals.allocations += counts->calls;
			add_bytes(&totals.allocations_size_bytes, counts->size_bytes);
		}
	}
	if (profile->totals.has_live)
		add_up_live(region ? region->stats : profile->totals.live.stats, &totals);
	return totals;
}

struct stat_totals stat_totals__of(const struct measure *measure, const struct profile *profile)
{
	return add_up(measure, profile, NULL);
}

struct stat_totals stat_totals__of_region(const struct measure *measure,
					  const struct profile *profile,
					  const struct region *region)
{
	return add_up(measure, profile, region);
}

__u64 stat_totals__total_bytes(const struct stat_totals *totals)
{
	return profile__add_up(totals->allocations_size_bytes, totals->reallocations_size_bytes);
}

static void set_signed(struct stat_figures *figures, int figure, __s64 value)
{
	figures->values[figure] = value;
	figures->is_known[figure] = true;
}

static void set(struct stat_figures *figures, int figure, __u64 value)
{
	set_signed(figures, figure, value < PROFILE_MAX ? value : PROFILE_MAX);
}

static void set_live(struct stat_figures *figures, const struct live_totals *live)
{
	set(figures, STAT_LIVE_BYTES, live->size_bytes);
	set(figures, STAT_PEAK_BYTES, live->peak_bytes);
	set(figures, STAT_TEMPORARY, live->stats[AP_STAT_TEMPORARY]);
	set(figures, STAT_FAILED, live->stats[AP_STAT_FAILED]);
}

static void set_totals(struct stat_figures *figures, const struct stat_totals *totals)
{
	set(figures, STAT_ALLOCATIONS, totals->allocations);
	set(figures, STAT_REALLOCATIONS, totals->reallocations);
	set(figures, STAT_TOTAL_ALLOCATIONS, totals->allocations + totals->reallocations);
	set(figures, STAT_TOTAL_ALLOCATED_BYTES, stat_totals__total_bytes(totals));
	if (!totals->knows_frees)
		return;
	set(figures, STAT_DEALLOCATIONS, totals->deallocations);
	set_signed(figures, STAT_REMAINING_ALLOCATIONS,
		   totals->allocations - totals->deallocations);
}

struct stat_figures stat_figures__of_region(const struct measure *measure,
					    const struct profile *profile,
					    const struct region *region)
{
	struct stat_totals totals = stat_totals__of_region(measure, profile, region);
	struct stat_figures figures = { 0 };

	for (int i = 0; i < AP_FUNCTIONS; i++)
		if (stat_totals__shows(measure, profile, i) && region->counts[i].calls)
			set(&figures, i, region->counts[i].calls);
	set_totals(&figures, &totals);
	if (profile->totals.has_live)
		set(&figures, STAT_FAILED, region->stats[AP_STAT_FAILED]);
	set(&figures, STAT_ENTERED, region->entered);
	return figures;
}

struct stat_figures stat_figures__of(const struct measure *measure, const struct profile *profile)
{
	struct stat_totals totals = stat_totals__of(measure, profile);
	struct stat_figures figures = { 0 };

	for (int i = 0; i < AP_FUNCTIONS; i++)
		if (stat_totals__shows(measure, profile, i))
			set(&figures, i, profile->totals.functions[i].counts.calls);
	set_totals(&figures, &totals);
	if (profile->totals.has_live)
		set_live(&figures, &profile->totals.live);
	set(&figures, STAT_INTERNAL, totals.internal);
	set(&figures, STAT_PROCESSES, profile->totals.processes);
	set(&figures, STAT_ELAPSED_SECONDS, profile->totals.run.elapsed_seconds * 1e9);
	if (!profile->totals.run.runs) {
		set(&figures, STAT_USER_SECONDS, profile->totals.run.user_seconds * 1e9);
		set(&figures, STAT_SYSTEM_SECONDS, profile->totals.run.system_seconds * 1e9);
	}
	return figures;
}

/* The name of each figure in JSON, and its name in text. */
static const char *const names[STAT_FIGURES][2] = {
	[STAT_ALLOCATIONS] = { "allocations", "allocations" },
	[STAT_REALLOCATIONS] = { "reallocations", "reallocations" },
	[STAT_DEALLOCATIONS] = { "deallocations", "deallocations" },
	[STAT_TOTAL_ALLOCATIONS] = { "total_allocations", "total allocations" },
	[STAT_REMAINING_ALLOCATIONS] = { "remaining_allocations", "remaining allocations" },
	[STAT_TOTAL_ALLOCATED_BYTES] = { "total_allocated_bytes", "bytes requested" },
	[STAT_LIVE_BYTES] = { "live_bytes", "bytes live at the end" },
	[STAT_PEAK_BYTES] = { "peak_bytes", "bytes live at the peak" },
	[STAT_TEMPORARY] = { "temporary", "temporary allocations" },
	[STAT_FAILED] = { "failed", "failed requests" },
	[STAT_ENTERED] = { "entered", "times entered" },
	[STAT_INTERNAL] = { "internal", "internal hits" },
	[STAT_PROCESSES] = { "processes", "processes" },
	[STAT_ELAPSED_SECONDS] = { "elapsed_seconds", "seconds elapsed" },
	[STAT_USER_SECONDS] = { "user_seconds", "seconds user" },
	[STAT_SYSTEM_SECONDS] = { "system_seconds", "seconds sys" },
};

static const char *name_of(const struct measure *measure, int figure, int form)
{
	if (figure < AP_FUNCTIONS)
		return definition_names__function(&measure->definitions.names, figure);
	return figure < STAT_FIGURES ? names[figure][form] : "unknown";
}

const char *stat_figure__key(const struct measure *measure, int figure)
{
	return name_of(measure, figure, 0);
}

const char *stat_figure__words(const struct measure *measure, int figure, bool has_live)
{
	if (figure == STAT_TOTAL_ALLOCATED_BYTES && has_live)
		return "bytes allocated";
	return name_of(measure, figure, 1);
}

bool stat_figure__is_time(int figure)
{
	return figure >= STAT_ELAPSED_SECONDS;
}
