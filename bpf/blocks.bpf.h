/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Tables of live blocks, and statistics of ended blocks (docs/live.md). */
#ifndef ALLOCPROF_BLOCKS_BPF_H
#define ALLOCPROF_BLOCKS_BPF_H

#include "arch.bpf.h"
#include "maps.bpf.h"
#include "process.bpf.h"
#include "records.bpf.h"
#include "sample.bpf.h"

struct live_table {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(key_size, sizeof(struct ap_block_key));
	__uint(value_size, sizeof(struct ap_block));
};

/* Each table is larger than the one before; user space adds the next one before the last is
 * full. */
struct live_tables_map {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, AP_LIVE_TABLES);
	__type(key, __u32);
	__array(values, struct live_table);
};

extern struct live_tables_map live_tables SEC(".maps");

/* Keyed by bpf_get_current_pid_tgid(). */
struct threads_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u64);
	__type(value, struct ap_thread);
};

extern struct threads_map threads SEC(".maps");

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

/* log2 of the epochs' length; grows when there are AP_MAX_EPOCHS epochs. */
static __always_inline __u32 epoch__shift(__u64 elapsed_ns)
{
	__u32 shift = LOAD(live.epoch_shift);

	if ((elapsed_ns >> (shift & 63)) < AP_MAX_EPOCHS)
		return shift & 63;
	/* After a pause it may have to double several times. */
	shift = significant_bits(elapsed_ns / AP_MAX_EPOCHS);
	live.epoch_shift = shift;
	return shift & 63;
}

static __always_inline void lifetime__send(const struct ap_lifetime_key *key,
					   const struct ap_block *block)
{
	struct ap_lifetime_record *record = bpf_ringbuf_reserve(&ring, sizeof(*record), 0);

	if (!record) {
		stat__add_many(AP_STAT_LIFETIMES_LOST, sample__times(block->weight));
		return;
	}
	record->type = AP_RECORD_LIFETIME;
	record->weight = block->weight;
	record->key = *key;
	record->size_bytes = block->size_bytes;
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
}

/* Lifetimes inserted since user space swapped the maps; user space resets it. */
extern __u64 lifetimes_inserted;

/* Counts @block by the epochs of its allocation and of its end at @now. */
static __noinline void lifetime__count(const struct ap_block *block, __u64 now)
{
	__u64 born_ns = block->birth_ns - live.start_ns, died_ns = now - live.start_ns;
	__u64 n = sample__times(block->weight), size_bytes = n * block->size_bytes;
	__u32 shift = epoch__shift(died_ns), zero = 0;
	struct ap_lifetime_key key = {
		.record = block->record,
		.shift = shift,
		.born = born_ns >> shift,
		.died = died_ns >> shift,
	};
	struct ap_lifetime *lifetime, fresh;
	void *current;

	current = bpf_map_lookup_elem(&lifetimes, &zero);
	if (!current)
		return;
	lifetime = bpf_map_lookup_elem(current, &key);
	if (!lifetime) {
		fresh.blocks = n;
		fresh.size_bytes = size_bytes;
		if (!bpf_map_update_elem(current, &key, &fresh, BPF_NOEXIST)) {
			if (__sync_fetch_and_add(&lifetimes_inserted, 1) + 1 == config.drain_at)
				ring__wake(AP_RECORD_DRAIN);
			return;
		}
		lifetime = bpf_map_lookup_elem(current, &key);
		if (!lifetime) {
			lifetime__send(&key, block);
			return;
		}
	}
	__sync_fetch_and_add(&lifetime->blocks, n);
	__sync_fetch_and_add(&lifetime->size_bytes, size_bytes);
}

/* Counts a new block, which is in the tables already. */
static __noinline void block__begin(struct process *process, const struct ap_block *block)
{
	struct ap_blocks *record = record__get(block->record);
	__u64 n = sample__times(block->weight), size_bytes = n * block->size_bytes, mark;
	__s64 now;

	if (!record)
		return;
	record__touch(record);
	__sync_fetch_and_add(&record->allocations, n);
	__sync_fetch_and_add(&record->size_bytes, size_bytes);
	if (config.sample)
		estimate__add(&record->of_allocations, block->weight, block->size_bytes);
	if (config.live_stacks)
		record__add_to_histogram(record, AP_SIZE_TAG, block->size_bytes, n);
	stat__add_many(AP_STAT_ALLOCATIONS, n);
	stat__add_many(AP_STAT_ALLOCATED_BYTES, size_bytes);
	__sync_fetch_and_add(&process->live_blocks, n);
	__sync_fetch_and_add(&process->live_bytes, size_bytes);
	__sync_fetch_and_add(&live.blocks, n);
	now = __sync_fetch_and_add(&live.size_bytes, size_bytes) + size_bytes;
	if (now < 0)
		return;
	mark = LOAD(live.max_bytes);
	if ((__u64)now > mark)
		__sync_val_compare_and_swap(&live.max_bytes, mark, now);
	/* A new peak generation per growth by 1/128 bounds the error of the peak by stack. */
	mark = LOAD(live.mark_bytes);
	if ((__u64)now > mark + (mark >> 7) &&
	    __sync_val_compare_and_swap(&live.mark_bytes, mark, now) == mark)
		__sync_fetch_and_add(&live.generation, 1);
}

enum block_end {
	BLOCK_FREED,
	BLOCK_MOVED,  /* realloc returned another block for it */
	BLOCK_UNSEEN, /* its address was allocated again without a free in between */
};

/* Counts the end of a block that is out of the tables; @now is not used for BLOCK_UNSEEN. */
static __noinline void block__end(struct process *process, const struct ap_block *block, __u64 now,
				  enum block_end how)
{
	__u64 n = sample__times(block->weight), size_bytes = n * block->size_bytes;
	__u64 id = bpf_get_current_pid_tgid();
	struct ap_blocks *record = record__get(block->record);
	struct ap_thread *thread;

	if (!record)
		return;
	record__touch(record);
	__sync_fetch_and_add(&record->frees, n);
	__sync_fetch_and_add(&record->freed_bytes, size_bytes);
	if (config.sample)
		estimate__add(&record->of_frees, block->weight, block->size_bytes);
	stat__add_many(AP_STAT_FREES, n);
	stat__add_many(AP_STAT_FREED_BYTES, size_bytes);
	if (how != BLOCK_MOVED) {
		stat__add_many(AP_STAT_DEALLOCATIONS, n);
		stat__add_many(AP_STAT_DEALLOCATED_BYTES, size_bytes);
	}
	__sync_fetch_and_add(&process->live_blocks, -n);
	__sync_fetch_and_add(&process->live_bytes, -size_bytes);
	__sync_fetch_and_add(&live.blocks, -n);
	__sync_fetch_and_add(&live.size_bytes, -size_bytes);
	if (how == BLOCK_UNSEEN)
		return;
	thread = bpf_map_lookup_elem(&threads, &id);
	if (thread && thread->number == block->thread && thread->sequence == block->sequence) {
		__sync_fetch_and_add(&record->temporary, n);
		__sync_fetch_and_add(&record->temporary_bytes, size_bytes);
		if (config.sample)
			estimate__add(&record->of_temporary, block->weight, block->size_bytes);
		stat__add_many(AP_STAT_TEMPORARY, n);
		stat__add_many(AP_STAT_TEMPORARY_BYTES, size_bytes);
	}
	if (!config.live_stacks)
		return;
	record__add_to_histogram(record, AP_LIFETIME_TAG, now - block->birth_ns, n);
	lifetime__count(block, now);
}

/* Removes the block at @key from the tables; false if there is none. */
static __noinline bool blocks__take(const struct ap_block_key *key, struct ap_block *out)
{
	__u32 n = ARCH_LOAD_ACQUIRE(live.n_tables), taken = 1;

	for (__u32 i = 1; i <= AP_LIVE_TABLES; i++) {
		__u32 at = n - i;
		struct ap_block *block;
		void *table;

		if (at >= AP_LIVE_TABLES)
			return false;
		table = bpf_map_lookup_elem(&live_tables, &at);
		if (!table)
			return false;
		block = bpf_map_lookup_elem(table, key);
		if (!block)
			continue;
		*out = *block;
		if (bpf_map_delete_elem(table, key))
			continue;
		__sync_fetch_and_add(&live.entries, -1);
		/* Without the barrier clang 19 merges this with the loop's exit condition, in a
		 * register that may hold a pointer. */
		barrier_var(taken);
		return taken;
	}
	return false;
}

static __noinline bool blocks__has(const struct ap_block_key *key)
{
	__u32 n = ARCH_LOAD_ACQUIRE(live.n_tables);

	for (__u32 i = 1; i <= AP_LIVE_TABLES; i++) {
		__u32 at = n - i;
		void *table;

		if (at >= AP_LIVE_TABLES)
			return false;
		table = bpf_map_lookup_elem(&live_tables, &at);
		if (!table)
			return false;
		if (bpf_map_lookup_elem(table, key))
			return true;
	}
	return false;
}

/* Puts the block into the newest table with room. Returns 0, -EEXIST (17), or the last table's
 * error. */
static __noinline int blocks__put(const struct ap_block_key *key, const struct ap_block *block)
{
	__u32 n = ARCH_LOAD_ACQUIRE(live.n_tables);
	int err = -7; /* E2BIG */

	for (__u32 i = 1; i <= AP_LIVE_TABLES; i++) {
		__u32 at = n - i;
		void *table;

		if (at >= AP_LIVE_TABLES)
			break;
		table = bpf_map_lookup_elem(&live_tables, &at);
		if (!table)
			break;
		err = bpf_map_update_elem(table, key, block, BPF_NOEXIST);
		if (err == -17)
			return err;
		if (err)
			continue;
		if (__sync_fetch_and_add(&live.entries, 1) + 1 == LOAD(live.grow_at))
			ring__wake(AP_RECORD_GROW);
		return 0;
	}
	return err;
}

/* The allocator returned the block at @key: a block that is still in the tables there has ended
 * unseen. False if the new block cannot be followed. */
static __noinline bool blocks__add(struct process *process, const struct ap_block_key *key,
				   const struct ap_block *block)
{
	struct ap_block stale;
	int err;

	/* With one table, blocks__put() finds it by -EEXIST. */
	if (LOAD(live.n_tables) > 1 && blocks__take(key, &stale)) {
		stat__add_many(AP_STAT_UNMATCHED, sample__times(stale.weight));
		block__end(process, &stale, 0, BLOCK_UNSEEN);
	}
	err = blocks__put(key, block);
	if (err == -17 && blocks__take(key, &stale)) {
		stat__add_many(AP_STAT_UNMATCHED, sample__times(stale.weight));
		block__end(process, &stale, 0, BLOCK_UNSEEN);
		err = blocks__put(key, block);
	}
	if (!err)
		return true;
	stat__add_many(AP_STAT_UNTRACKED +
			       (err == -12 ? AP_UNTRACKED_NO_MEMORY : AP_UNTRACKED_LIVE_FULL),
		       sample__times(block->weight));
	return false;
}

#endif
