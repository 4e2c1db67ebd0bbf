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
	__u32 word, n, row, rule;
	__u16 pc_lo = offset;

	if (!chunk)
		return NULL;
	word = chunk->words[(slice->first_block + (offset >> UNWIND_BLOCK_SHIFT)) &
			    (UNWIND_CHUNK_WORDS - 1)];
	n = word >> UNWIND_BLOCK_COUNT_SHIFT;
	row = slice->first_row + (word & UNWIND_BLOCK_ROW_MASK);
	/* The first row of the block beyond the offset; the result is the row before it. */
	for (int i = 0; i < UNWIND_SEARCH_STEPS && n; i++) {
		__u32 half = n / 2;

		word = chunk->words[(row + half) & (UNWIND_CHUNK_WORDS - 1)];
		if ((__u16)word <= pc_lo) {
			row += half + 1;
			n -= half + 1;
		} else {
			n = half;
		}
	}
	rule = slice->first_rule + (chunk->words[(row - 1) & (UNWIND_CHUNK_WORDS - 1)] >> 16);
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
