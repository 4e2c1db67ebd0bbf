// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "tables.h"

#include <stddef.h>

struct tables tables;

const struct unwind_slice *tables__slice(const struct unwind_table *table, __u64 file_offset)
{
	const struct unwind_slice *found = NULL;
	__u32 low = table->first_slice, n = table->n_slices;

	if (low > UNWIND_MAX_SLICES || n > UNWIND_MAX_SLICES - low)
		return NULL;
	while (n) {
		const struct unwind_slice *middle = &tables.slices[low + n / 2];

		if (middle->file_offset <= file_offset) {
			found = middle;
			low += n / 2 + 1;
			n -= n / 2 + 1;
		} else {
			n /= 2;
		}
	}
	return found && file_offset - found->file_offset < found->size ? found : NULL;
}

static const struct unwind_chunk *chunk_of(__u32 index)
{
	const struct unwind_chunk *chunk;

	if (index >= UNWIND_MAX_CHUNKS)
		return NULL;
	chunk = __atomic_load_n(&tables.chunks[index], __ATOMIC_ACQUIRE);
	return chunk ? chunk : tables__map_chunk(index);
}

const struct unwind_rule *slice__rule(const struct unwind_slice *slice, __u32 offset)
{
	const struct unwind_chunk *chunk = chunk_of(slice->chunk);
	__u32 rule;

	if (!chunk)
		return NULL;
	rule = unwind_slice__rule_index(slice, chunk, offset);
	return rule < UNWIND_MAX_RULES_LOADED ? &tables.rules[rule] : NULL;
}

bool tables__is_within(__u32 module, __u64 file_offset)
{
	const struct ap_within *within;

	if (!tables.within || module >= UNWIND_MAX_MODULES)
		return false;
	within = &tables.within[module];
	for (__u32 i = 0; i < within->n && i < AP_MAX_WITHIN_RANGES; i++)
		if (file_offset - within->ranges[i].start < within->ranges[i].size)
			return true;
	return false;
}
