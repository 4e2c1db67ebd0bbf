/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Looks up unwind rules in the tables that user space compiled (unwind_abi.h). */
#ifndef ALLOCPROF_TABLES_BPF_H
#define ALLOCPROF_TABLES_BPF_H

#include "unwind_abi.h"
#include "waits.bpf.h"

/* One value of 1 MiB, so that a search inside it is pointer arithmetic, without a map look-up per
 * step. */
struct chunk_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct unwind_chunk));
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, UNWIND_MAX_CHUNKS);
	__type(key, __u32);
	__array(values, struct chunk_map);
} unwind_chunks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, UNWIND_MAX_MODULES);
	__type(key, __u32);
	__type(value, struct unwind_table);
} unwind_tables SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, UNWIND_MAX_SLICES);
	__type(key, __u32);
	__type(value, struct unwind_slice);
} unwind_slices SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, UNWIND_MAX_RULES_LOADED);
	__type(key, __u32);
	__type(value, struct unwind_rule);
} unwind_rules SEC(".maps");

static __always_inline bool table__is_awaited(const struct unwind_table *table)
{
	return LOAD(table->state) == UNWIND_TABLE_AWAITED;
}

struct table_wait {
	const struct unwind_table *table;
	__u64 until_ns;
};

static long table__look(__u32 index, struct table_wait *wait)
{
	return !table__is_awaited(wait->table) || bpf_ktime_get_ns() >= wait->until_ns;
}

/* Waits for a limited time until @module's table is compiled; 1 if it is. Called where little of
 * the BPF stack is in use, since Linux 6.1 counts the callees' frames, too. */
__noinline int table__await(__u32 module)
{
	struct unwind_table *table = bpf_map_lookup_elem(&unwind_tables, &module);
	struct table_wait wait = { .table = table };

	if (!module || !table)
		return 0;
	waits.module = module;
	return wait__for(table__look, &wait, &wait.until_ns, AP_WAIT_NS) &&
	       !table__is_awaited(table);
}

/* Steps of the binary search for a slice of a table. */
#define SLICE_SEARCH_STEPS 14

/* The last slice of the table that begins at or before @file_offset, or NULL. */
static __noinline struct unwind_slice *slice__find(const struct unwind_table *table,
						   __u64 file_offset)
{
	struct unwind_slice *found = NULL;
	__u32 low = table->first_slice, n = table->n_slices;

	for (int i = 0; i < SLICE_SEARCH_STEPS; i++) {
		__u32 middle = low + n / 2;
		struct unwind_slice *slice;

		if (!n)
			break;
		slice = bpf_map_lookup_elem(&unwind_slices, &middle);
		if (!slice)
			break;
		if (slice->file_offset <= file_offset) {
			found = slice;
			low = middle + 1;
			n -= n / 2 + 1;
		} else {
			n /= 2;
		}
	}
	return found;
}

/* The rule at @offset inside @slice; NULL only if the tables are corrupt. */
static __always_inline struct unwind_rule *slice__rule(const struct unwind_slice *slice,
						       __u32 offset)
{
	struct unwind_chunk *chunk;
	__u32 zero = 0, chunk_index = slice->chunk, block, row, n, word, rule;
	__u16 pc_lo = offset;
	void *inner;

	inner = bpf_map_lookup_elem(&unwind_chunks, &chunk_index);
	if (!inner)
		return NULL;
	chunk = bpf_map_lookup_elem(inner, &zero);
	if (!chunk)
		return NULL;
	block = slice->first_block + (offset >> UNWIND_BLOCK_SHIFT);
	word = chunk->words[block & (UNWIND_CHUNK_WORDS - 1)];
	n = word >> UNWIND_BLOCK_COUNT_SHIFT;
	row = slice->first_row + (word & UNWIND_BLOCK_ROW_MASK);
	/* Finds the first row of the block beyond the offset; the result is the row before it. */
	for (int i = 0; i < UNWIND_SEARCH_STEPS; i++) {
		__u32 half = n / 2;

		if (!n)
			break;
		word = chunk->words[(row + half) & (UNWIND_CHUNK_WORDS - 1)];
		if ((__u16)word <= pc_lo) {
			row += half + 1;
			n -= half + 1;
		} else {
			n = half;
		}
	}
	word = chunk->words[(row - 1) & (UNWIND_CHUNK_WORDS - 1)];
	rule = slice->first_rule + (word >> 16);
	return bpf_map_lookup_elem(&unwind_rules, &rule);
}

#endif
