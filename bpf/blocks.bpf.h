/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* With --live: records by stack and function, tables of live blocks, and statistics of ended
 * blocks (docs/live.md). */
#ifndef ALLOCPROF_BLOCKS_BPF_H
#define ALLOCPROF_BLOCKS_BPF_H

#include <asm-generic/errno-base.h>

#include "arch.bpf.h"
#include "events.bpf.h"
#include "maps.bpf.h"
#include "process.bpf.h"
#include "regions.bpf.h"
#include "sample.bpf.h"

extern struct ap_live live;

/* User space sets the value's size before load: without sampling a record has no estimates. */
struct record_chunk {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, AP_CHUNK);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct ap_blocks));
};

/* User space adds chunks before they are needed. */
DECLARE_MAPS(records, 4096, struct record_chunk);

struct histogram_chunk {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, AP_HISTOGRAM_CHUNK);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct ap_histograms));
};

/* User space adds these chunks, too, before they are needed. */
DECLARE_MAPS(histograms, 4096, struct histogram_chunk);

/* Indexes that user space returned. */
struct free_map {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, AP_FREE_INDEXES);
	__uint(value_size, sizeof(__u32));
};

extern struct free_map free_records SEC(".maps"), free_histograms SEC(".maps");

struct index_table {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(key_size, sizeof(struct ap_count_key));
	__uint(value_size, sizeof(__u32));
};

/* Maps a key to its record's index. User space adds the next table before the last is full. */
DECLARE_MAPS(index_tables, AP_INDEX_TABLES, struct index_table);

static __always_inline void ring__wake(__u32 type)
{
	struct {
		__u32 type;
		__u32 pad;
	} record = { .type = type };

	bpf_ringbuf_output(&ring, &record, sizeof(record), BPF_RB_FORCE_WAKEUP);
}

static __always_inline struct ap_blocks *record__get(__u32 index)
{
	__u32 chunk = index >> AP_CHUNK_BITS, at = index & (AP_CHUNK - 1);
	void *array = bpf_map_lookup_elem(&records, &chunk);

	return array ? bpf_map_lookup_elem(array, &at) : NULL;
}

/* The last ready records are reserved for hits that have waited, which gives user space time to add
 * more. */
#define RECORDS_RESERVED 1024

static __always_inline bool records__are_few(void)
{
	return LOAD(live.records.n_free) <= 0 &&
	       LOAD(live.records.n) + RECORDS_RESERVED >= LOAD(live.records.ready) &&
	       LOAD(live.records.ready) < LOAD(live.records.max);
}

/* Waits for a limited time until user space has added records. Returns 0. */
int records__await(void);

/* Allocates an index of @pool; AP_NO_RECORD if none is ready. Wakes user space once per @wake_every
 * new indexes. */
static __always_inline __u32 pool__claim(struct ap_pool *pool, void *free_indexes, __u32 wake_every)
{
	__u32 index = AP_NO_RECORD;

	if (LOAD(pool->n_free) > 0 && !bpf_map_pop_elem(free_indexes, &index)) {
		__sync_fetch_and_add(&pool->n_free, -1);
		return index;
	}
	if (LOAD(pool->n) >= LOAD(pool->ready))
		return AP_NO_RECORD;
	index = __sync_fetch_and_add(&pool->n, 1);
	if ((index & (wake_every - 1)) == wake_every / 2)
		ring__wake(AP_RECORD_GROW);
	return index < ARCH_LOAD_ACQUIRE(pool->ready) ? index : AP_NO_RECORD;
}

/* Searches all tables for @key: 0 and its record's index, or -1. */
static __noinline int index__find(const struct ap_count_key *key, __u32 *index)
{
	__u32 n = ARCH_LOAD_ACQUIRE(live.n_index_tables);

	for (__u32 i = 1; i <= AP_INDEX_TABLES; i++) {
		__u32 at = n - i, *known;
		void *table;

		if (at >= AP_INDEX_TABLES)
			return -1;
		table = bpf_map_lookup_elem(&index_tables, &at);
		if (!table)
			return -1;
		known = bpf_map_lookup_elem(table, key);
		if (known) {
			*index = *known;
			return 0;
		}
	}
	return -1;
}

/* Puts @key's index into the newest table with room. Returns 0, -EEXIST (17), or the last table's
 * error. Another CPU may put the same key into another table meanwhile; user space adds up records
 * of equal keys. */
static __noinline int index__put(const struct ap_count_key *key, __u32 index)
{
	__u32 n = ARCH_LOAD_ACQUIRE(live.n_index_tables);
	int err = -E2BIG;

	for (__u32 i = 1; i <= AP_INDEX_TABLES; i++) {
		__u32 at = n - i;
		void *table;

		if (at >= AP_INDEX_TABLES)
			break;
		table = bpf_map_lookup_elem(&index_tables, &at);
		if (!table)
			break;
		err = bpf_map_update_elem(table, key, &index, BPF_NOEXIST);
		if (!err || err == -EEXIST)
			return err;
	}
	return err;
}

/* Adds a record for @key, which had none at the last look-up; AP_NO_RECORD if there is no room. */
static __always_inline __u32 record__add(const struct ap_count_key *key)
{
	__u32 index, known;

	if (records__are_few())
		records__await();
	index = pool__claim(&live.records, &free_records, AP_CHUNK);
	if (index == AP_NO_RECORD)
		return index;
	/* The event must be sent before other threads can use the index. */
	if (event_config.enabled)
		event__key(index, key);
	if (!index__put(key, index))
		return index;
	/* Another CPU was first, or the tables are full: return the index. */
	if (!bpf_map_push_elem(&free_records, &index, 0))
		__sync_fetch_and_add(&live.records.n_free, 1);
	return index__find(key, &known) ? AP_NO_RECORD : known;
}

/* Called before a record changes: notes what was live when the peak generation began. */
static __always_inline void record__touch(struct ap_blocks *record)
{
	__u64 generation = LOAD(live.generation), before = LOAD(record->generation);

	if (before == generation ||
	    __sync_val_compare_and_swap(&record->generation, before, generation) != before)
		return;
	ap_blocks__note_peak(record);
}

/* The further histogram buckets of a record; NULL if there is no room. */
static __always_inline struct ap_histograms *record__histograms(struct ap_blocks *record)
{
	__u32 number = LOAD(record->histograms), index, chunk, at, before;
	void *array;

	if (!number) {
		index = pool__claim(&live.histograms, &free_histograms, AP_HISTOGRAM_CHUNK);
		if (index == AP_NO_RECORD)
			return NULL;
		number = index + 1;
		before = __sync_val_compare_and_swap(&record->histograms, 0, number);
		if (before) {
			if (!bpf_map_push_elem(&free_histograms, &index, 0))
				__sync_fetch_and_add(&live.histograms.n_free, 1);
			number = before;
		}
	}
	chunk = (number - 1) >> AP_HISTOGRAM_CHUNK_BITS;
	at = (number - 1) & (AP_HISTOGRAM_CHUNK - 1);
	array = bpf_map_lookup_elem(&histograms, &chunk);
	return array ? bpf_map_lookup_elem(array, &at) : NULL;
}

/* Counts @n blocks of @value in the histogram whose first tag is @first_tag. */
static __noinline __maybe_unused void
record__add_to_histogram(struct ap_blocks *record, __u32 first_tag, __u64 value, __u64 n)
{
	__u32 tag = first_tag + significant_bits(value), at = tag - 1;
	struct ap_histograms *wide;
	__u64 tags = LOAD(record->tags), before;

	for (int i = 0; i < AP_SLOTS; i++) {
		__u32 shift = 8 * i;

		if (!(tags >> shift & 0xff)) {
			before = __sync_val_compare_and_swap(&record->tags, tags,
							     tags | (__u64)tag << shift);
			tags = before == tags ? tags | (__u64)tag << shift : before;
		}
		if ((tags >> shift & 0xff) == tag) {
			__sync_fetch_and_add(&record->slots[i], n);
			return;
		}
	}
	wide = record__histograms(record);
	if (!wide || at >= 2 * AP_BUCKETS) {
		stat__add_many(AP_STAT_HISTOGRAMS_LOST, n);
		return;
	}
	__sync_fetch_and_add(&wide->buckets[at], n);
}

struct live_table {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(key_size, sizeof(struct ap_block_key));
	__uint(value_size, sizeof(struct ap_block));
};

/* Each table is larger than the one before; user space adds the next one before the last is
 * full. */
DECLARE_MAPS(live_tables, AP_LIVE_TABLES, struct live_table);

/* Keyed by bpf_get_current_pid_tgid(). */
DECLARE_MAP(threads, HASH, 65536, BPF_F_NO_PREALLOC, __u64, struct ap_thread);

/* Initial value of a thread's entry, which is too large for the BPF stack. */
extern struct ap_thread fresh_thread;

/* The map that programs count lifetimes into; one entry, so that libbpf's template map is small. */
struct lifetimes_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(struct ap_lifetime_key));
	__uint(value_size, sizeof(struct ap_lifetime));
};

struct lifetimes_maps {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, __u32);
	__array(values, struct lifetimes_map);
};

extern struct lifetimes_maps lifetimes SEC(".maps");

/* Lifetimes inserted since user space swapped the maps; user space resets it. */
extern __u64 lifetimes_inserted;

/*
 * These functions are global, so that the verifier checks each once, and not for all states in
 * which the programs call it. They return 0 or 1 unless their comments say otherwise.
 */

/* Counts a new block, which is in the tables already. */
int block__begin(struct process *process, const struct ap_block *block);

/* Counts the end of a block at @address that is out of the tables; @how: enum ap_block_end. */
int block__end(struct process *process, const struct ap_block *block, __u64 address, __u64 now,
	       __u32 how);

/* Counts @old, for which realloc has returned @now, if it has grown. */
int block__grow(const struct ap_block *old, const struct ap_block *now);

/* Removes the block at @key from the tables; 0 if there is none. */
int blocks__take(const struct ap_block_key *key, struct ap_block *out);

int blocks__has(const struct ap_block_key *key);

/* Puts the block into the newest table with room. Returns 0, -EEXIST (17), or the last table's
 * error. */
int blocks__put(const struct ap_block_key *key, const struct ap_block *block);

#endif
