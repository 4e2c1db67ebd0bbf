// SPDX-License-Identifier: GPL-3.0-or-later
/* Finds the regions that the command's files mark (docs/regions.md), and collects what was counted
 * in them. */
#include "preload_engine_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "cleanup.h"
#include "error.h"
#include "file.h"
#include "profile.h"
#include "region_marks.h"

/* Returns the index of the region, which is added if it is new, or -ENOMEM. */
static int index_of(struct engine_regions *regions, const char *name)
{
	struct region *region;

	for (size_t i = 0; i < regions->n; i++)
		if (!strcmp(regions->list[i].name, name))
			return i;
	if (array__reserve_zeroed(&regions->list, &regions->room, regions->n + 1,
				  sizeof(*regions->list)))
		return -ENOMEM;
	region = &regions->list[regions->n];
	region->name = strdup(name);
	return region->name ? (int)regions->n++ : -ENOMEM;
}

/* Notes the names of regions. Those beyond AP_MAX_REGIONS are not counted, so it need not be said
 * that they were not entered. */
static int note_names(struct engine_regions *regions, const struct region_marks *marks)
{
	for (size_t i = 0; i < marks->n && regions->n < AP_MAX_REGIONS; i++) {
		int index = region_mark__is_named(marks->list[i].kind)
				    ? index_of(regions, marks->list[i].name)
				    : 0;

		if (index < 0)
			return index;
	}
	return 0;
}

int preload_engine__note_regions(struct preload_engine *engine, int fd, const char *path)
{
	struct region_marks marks;
	struct error error = { 0 };
	int err;

	if (!engine->options.regions)
		return 0;
	err = region_marks__parse(engine->parser, fd, path, &marks, &error);
	if (err == -ECHILD)
		return profile__add_gap(engine->profile,
					&(struct profile_gap){ .kind = GAP_REGION_UNREAD,
							       .object = path,
							       .detail = error.text });
	if (err)
		return err == -ENOMEM ? err : 0;
	err = note_names(&engine->regions, &marks);
	if (!err && (marks.n || marks.n_unnamed) && !marks.has_calls && engine->command_refusal < 0)
		err = profile__add_gap(
			engine->profile,
			&(struct profile_gap){ .kind = GAP_REGION_MARKS_OLD, .object = path });
	region_marks__release(&marks);
	return err;
}

int preload_engine__note_expected_regions(struct preload_engine *engine)
{
	const char *const *path = engine->options.expected;
	int err = 0;

	for (; path && *path && !err; path++) {
		_cleanup_(close_fd) int fd = regular_file__open(*path);

		if (fd >= 0)
			err = preload_engine__note_regions(engine, fd, *path);
	}
	return err;
}

/* Adds counters; neither they nor the sums exceed AP_MAX_SUM. */
static void add_words(__u64 *sum, const __u64 *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		sum[i] = sum[i] > AP_MAX_SUM - words[i] ? AP_MAX_SUM : sum[i] + words[i];
}

/* Adds the counters of a set to each of its regions, once for each name: in damaged memory two
 * numbers may have the same name. */
static void add_set(struct engine_regions *regions, const int *indexes, __u64 mask,
		    const struct inside_region_counts *counts)
{
	for (int i = 0; i < AP_MAX_REGIONS; i++) {
		struct region *region;
		bool is_first = indexes[i] >= 0 && mask >> i & 1;

		for (int j = 0; j < i && is_first; j++)
			is_first = !(mask >> j & 1) || indexes[j] != indexes[i];
		if (!is_first)
			continue;
		region = &regions->list[indexes[i]];
		for (int j = 0; j < AP_FUNCTIONS; j++)
			site_counts__add(&region->counts[j], &counts->functions[j]);
		for (int j = 0; j < AP_MAX_DEFINITIONS; j++)
			add_words(&region->counts[definition__function(j, 0)].calls,
				  &counts->counted[j], 1);
		add_words(region->stats, counts->stats, AP_STATS);
	}
}

int preload_engine__collect_regions(struct preload_engine *engine)
{
	const struct preload_regions *counted = engine->counted.regions;
	struct engine_regions *regions = &engine->regions;
	_cleanup_(free_ptr) struct inside_regions *shared = malloc(sizeof(*shared));
	int indexes[AP_MAX_REGIONS], err;
	__u64 unprintable = 0;

	if (!shared)
		return -ENOMEM;
	err = preload__read_regions(engine->preload, shared);
	for (int i = 0; i < AP_MAX_REGIONS && counted && !err; i++) {
		const char *name = shared->list[i].name;

		indexes[i] = -1;
		if (!counted->begins[i])
			continue;
		if (!region_name__is_good(name)) {
			unprintable += counted->begins[i];
			continue;
		}
		indexes[i] = index_of(regions, name);
		if (indexes[i] < 0)
			return -ENOMEM;
		add_words(&regions->list[indexes[i]].entered, &counted->begins[i], 1);
	}
	for (int set = 1; set < AP_MAX_REGION_SETS && counted && !err; set++)
		add_set(regions, indexes, shared->masks[set], &counted->sets[set]);
	regions->n_unnumbered = shared->unnumbered;
	regions->n_unnamed = shared->unnamed + unprintable;
	return err;
}

int preload_engine__add_regions(const struct preload_engine *engine, __u64 gaps[GAP_NUMBERS])
{
	const struct engine_regions *regions = &engine->regions;
	int err = 0;

	if (!engine->options.regions)
		return 0;
	for (size_t i = 0; i < regions->n && !err; i++)
		err = profile__add_region(engine->profile, &regions->list[i]);
	gaps[GAP_REGION_UNNUMBERED] = regions->n_unnumbered;
	gaps[GAP_REGION_UNNAMED] = regions->n_unnamed;
	for (int i = 0; i < AP_REGION_GAPS; i++)
		gaps[GAP_REGION_DEPTH + i] = engine->counted.stats[AP_STAT_REGION_GAP + i];
	return err;
}

void engine_regions__release(struct engine_regions *regions)
{
	for (size_t i = 0; i < regions->n; i++)
		free((char *)regions->list[i].name);
	free(regions->list);
}
