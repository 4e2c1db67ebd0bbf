// SPDX-License-Identifier: GPL-3.0-or-later
/* What threads have counted by region, and which regions and sets there are: from the shared memory. */
#include "preload_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* All counters: of both structs nothing else is a member. */
static void add_words(__u64 *sum, const __u64 *words, size_t bytes)
{
	for (size_t i = 0; i < bytes / sizeof(*sum); i++)
		sum[i] = reader__add(sum[i], words[i]);
}

int preload_results__add_regions(struct preload_results *results, struct reader *reader,
				 const struct inside_thread *thread)
{
	struct inside_thread_regions regions;
	struct inside_region_counts counts;

	if (!thread->regions || !reader__get(reader, thread->regions, &regions, sizeof(regions)))
		return 0;
	if (!results->regions)
		results->regions = calloc(1, sizeof(*results->regions));
	if (!results->regions)
		return -ENOMEM;
	add_words(results->regions->begins, regions.begins, sizeof(regions.begins));
	for (int set = 1; set < AP_MAX_REGION_SETS; set++)
		if (regions.sets[set] &&
		    reader__get(reader, regions.sets[set], &counts, sizeof(counts)))
			add_words((__u64 *)&results->regions->sets[set], (const __u64 *)&counts,
				  sizeof(counts));
	return 0;
}

int preload_results__copy_regions(struct preload_results *results)
{
	struct preload_regions *copy;

	if (!results->regions)
		return 0;
	copy = malloc(sizeof(*copy));
	if (copy)
		*copy = *results->regions;
	results->regions = copy;
	return copy ? 0 : -ENOMEM;
}

int preload__read_regions(const struct preload *preload, struct inside_regions *out)
{
	struct reader reader = { 0 };
	int err = reader__begin(&reader, preload);

	if (err)
		return err;
	*out = reader.header.regions;
	for (int i = 0; i < AP_MAX_REGIONS; i++) {
		out->list[i].name[AP_REGION_NAME_BYTES] = 0;
		if (out->list[i].state != INSIDE_READY)
			out->list[i].name[0] = 0;
	}
	return 0;
}
