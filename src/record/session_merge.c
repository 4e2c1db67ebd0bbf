// SPDX-License-Identifier: GPL-3.0-or-later
/* Adds up what the engines of a session have measured. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "session_internal.h"

static void add_numbers(__u64 *into, const __u64 *from, size_t n)
{
	for (size_t i = 0; i < n; i++)
		into[i] = into[i] > AP_MAX_SUM - from[i] ? AP_MAX_SUM : into[i] + from[i];
}

static void merge_function(struct session_function *into, const struct session_function *from)
{
	into->probed |= from->probed;
	site_counts__add(&into->counts, &from->counts);
	if (from->n_aliases > into->n_aliases) {
		into->aliases = from->aliases;
		into->n_aliases = from->n_aliases;
	}
}

/* Peaks are of different processes: their sum is the most that may have been live at one time. */
static void merge_live(struct session_live *into, const struct session_live *from)
{
	for (int i = 0; i < AP_FUNCTIONS; i++)
		add_numbers(&into->functions[i].calls, &from->functions[i].calls,
			    offsetof(struct ap_blocks, generation) / sizeof(__u64));
	/* Some are sums of differences, which may be less than 0. */
	for (int i = 0; i < AP_STATS; i++)
		into->stats[i] += from->stats[i];
	into->unfinished += from->unfinished;
	into->untracked += from->untracked;
	into->discarded += from->discarded;
	into->discarded_bytes += from->discarded_bytes;
	into->blocks += from->blocks;
	into->size_bytes += from->size_bytes;
	into->peak_bytes += from->peak_bytes;
	if (from->epoch_ns > into->epoch_ns)
		into->epoch_ns = from->epoch_ns;
	into->memory.block_bytes += from->memory.block_bytes;
	into->memory.record_bytes += from->memory.record_bytes;
	into->memory.entries += from->memory.entries;
	into->memory.max_blocks += from->memory.max_blocks;
	into->memory.records += from->memory.records;
	into->memory.max_records += from->memory.max_records;
}

static void merge_window(struct session_window *into, const struct session_window *from)
{
	into->asked_for |= from->asked_for;
	into->opened |= from->opened;
	into->undecided += from->undecided;
	if (into->opened)
		into->why = NULL;
	else if (!into->why)
		into->why = from->why;
}

/* The counters of the region of this name; NULL if there is no memory. */
static struct region *find_region(struct session_lists *lists, const char *name)
{
	size_t at = 0;

	while (at < lists->n_regions && strcmp(lists->regions[at].name, name) < 0)
		at++;
	if (at < lists->n_regions && !strcmp(lists->regions[at].name, name))
		return &lists->regions[at];
	if (array__reserve(&lists->regions, &lists->regions_room, lists->n_regions + 1,
			   sizeof(*lists->regions)))
		return NULL;
	memmove(&lists->regions[at + 1], &lists->regions[at],
		(lists->n_regions - at) * sizeof(*lists->regions));
	lists->n_regions++;
	lists->regions[at] = (struct region){ .name = name };
	return &lists->regions[at];
}

static int merge_regions(struct session_regions *into, const struct session_regions *from,
			 struct session_lists *lists)
{
	for (size_t i = 0; i < from->n; i++) {
		const struct region *region = &from->list[i];
		struct region *sum = find_region(lists, region->name);

		if (!sum)
			return -ENOMEM;
		sum->entered += region->entered;
		for (int j = 0; j < AP_FUNCTIONS; j++)
			site_counts__add(&sum->counts[j], &region->counts[j]);
		for (int j = 0; j < AP_STATS; j++)
			sum->stats[j] += region->stats[j];
	}
	return 0;
}

int session_results__merge(struct session_results *into, const struct session_results *from,
			   struct session_lists *lists)
{
	int err = merge_regions(&into->regions, &from->regions, lists);
	if (err)
		return err;
	into->regions.list = lists->regions;
	into->regions.n = lists->n_regions;
	for (int i = 0; i < AP_FUNCTIONS; i++)
		merge_function(&into->functions[i], &from->functions[i]);
	for (int i = 0; i < AP_LOST_REASONS; i++)
		into->lost[i] += from->lost[i];
	for (int gap = 0; gap < GAP_NUMBERS; gap++)
		into->gaps[gap] += from->gaps[gap];
	into->events += from->events;
	into->not_sampled += from->not_sampled;
	into->attributed += from->attributed;
	into->lost_total += from->lost_total;
	into->processes += from->processes;
	into->processes_unprobed += from->processes_unprobed;
	into->relabelled += from->relabelled;
	into->processes_left += from->processes_left;
	into->impossible += from->impossible;
	into->waits += from->waits;
	into->own_bytes += from->own_bytes;
	into->waits_ns += from->waits_ns;
	into->common_names += from->common_names;
	if (from->second_engine) {
		into->second_engine = from->second_engine;
		into->second_programs = from->second_programs;
		into->n_second_programs = from->n_second_programs;
	}
	if (!into->own_heaps)
		into->own_heaps = from->own_heaps;
	if (from->has_live && into->has_live)
		merge_live(&into->live, &from->live);
	else if (from->has_live)
		into->live = from->live;
	into->has_live |= from->has_live;
	if (from->events_log.is_logged)
		into->events_log = from->events_log;
	merge_window(&into->window, &from->window);
	into->complete &= from->complete;
	return 0;
}

void session_lists__release(struct session_lists *lists)
{
	free(lists->regions);
	*lists = (struct session_lists){ 0 };
}
