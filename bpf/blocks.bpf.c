// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Blocks begin and end: the tables of live ones, and the statistics of both (docs/live.md). */
#include <asm-generic/errno-base.h>

#include "arch.bpf.h"
#include "blocks.bpf.h"
#include "maps.bpf.h"
#include "process.bpf.h"
#include "records.bpf.h"
#include "sample.bpf.h"

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

__noinline int block__begin(struct process *process, const struct ap_block *block)
{
	struct ap_blocks *record;
	__u64 n, size_bytes, mark;
	__s64 now;

	if (!process || !block)
		return 0;
	record = record__get(block->record);
	if (!record)
		return 0;
	n = sample__times(block->weight);
	size_bytes = n * block->size_bytes;
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
		return 0;
	/* Another CPU may store its own first. */
	for (int i = 0; i < 8 && (__u64)now > (mark = LOAD(live.max_bytes)); i++)
		if (__sync_val_compare_and_swap(&live.max_bytes, mark, now) == mark)
			break;
	/* A new peak generation per growth by 1/128 bounds the error of the peak by stack. */
	mark = LOAD(live.mark_bytes);
	if ((__u64)now > mark + (mark >> 7) &&
	    __sync_val_compare_and_swap(&live.mark_bytes, mark, now) == mark)
		__sync_fetch_and_add(&live.generation, 1);
	return 0;
}

__noinline int block__end(struct process *process, const struct ap_block *block, __u64 address,
			  __u64 now, __u32 how)
{
	__u64 n, size_bytes;
	__u32 kind = how == BLOCK_FREED	  ? AP_EVENT_FREE
		     : how == BLOCK_MOVED ? AP_EVENT_MOVED
					  : AP_EVENT_UNSEEN;
	__u64 id = bpf_get_current_pid_tgid();
	struct ap_blocks *record;
	struct ap_thread *thread;

	if (!process || !block)
		return 0;
	record = record__get(block->record);
	if (!record)
		return 0;
	n = sample__times(block->weight);
	size_bytes = n * block->size_bytes;
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
	if (how == BLOCK_UNSEEN) {
		if (event_config.enabled)
			event__block(block, address, now, process->id, kind);
		return 0;
	}
	thread = bpf_map_lookup_elem(&threads, &id);
	if (thread && thread->number == block->thread && thread->sequence == block->sequence) {
		kind |= EVENT_TEMPORARY;
		__sync_fetch_and_add(&record->temporary, n);
		__sync_fetch_and_add(&record->temporary_bytes, size_bytes);
		if (config.sample)
			estimate__add(&record->of_temporary, block->weight, block->size_bytes);
		stat__add_many(AP_STAT_TEMPORARY, n);
		stat__add_many(AP_STAT_TEMPORARY_BYTES, size_bytes);
	}
	if (!config.live_stacks)
		return 0;
	if (event_config.enabled)
		event__block(block, address, now, process->id, kind);
	record__add_to_histogram(record, AP_LIFETIME_TAG, now - block->birth_ns, n);
	lifetime__count(block, now);
	return 0;
}

/* Linux 6.1 takes keys and values of maps from the function's own stack only. */

__noinline int blocks__take(const struct ap_block_key *key, struct ap_block *out)
{
	__u32 n = ARCH_LOAD_ACQUIRE(live.n_tables), taken = 1;
	struct ap_block_key own;

	if (!key || !out)
		return 0;
	own = *key;
	for (__u32 i = 1; i <= AP_LIVE_TABLES; i++) {
		__u32 at = n - i;
		struct ap_block *block;
		void *table;

		if (at >= AP_LIVE_TABLES)
			return 0;
		table = bpf_map_lookup_elem(&live_tables, &at);
		if (!table)
			continue;
		block = bpf_map_lookup_elem(table, &own);
		if (!block)
			continue;
		*out = *block;
		if (bpf_map_delete_elem(table, &own))
			continue;
		__sync_fetch_and_add(&live.entries, -1);
		/* Without the barrier clang 19 merges this with the loop's exit condition, in a
		 * register that may hold a pointer. */
		barrier_var(taken);
		return taken;
	}
	return 0;
}

__noinline int blocks__has(const struct ap_block_key *key)
{
	__u32 n = ARCH_LOAD_ACQUIRE(live.n_tables);
	struct ap_block_key own;

	if (!key)
		return 0;
	own = *key;
	for (__u32 i = 1; i <= AP_LIVE_TABLES; i++) {
		__u32 at = n - i;
		void *table;

		if (at >= AP_LIVE_TABLES)
			return 0;
		table = bpf_map_lookup_elem(&live_tables, &at);
		if (!table)
			continue;
		if (bpf_map_lookup_elem(table, &own))
			return 1;
	}
	return 0;
}

__noinline int blocks__put(const struct ap_block_key *key, const struct ap_block *block)
{
	__u32 n = ARCH_LOAD_ACQUIRE(live.n_tables);
	int err = -E2BIG;
	struct ap_block_key own;
	struct ap_block copy;

	if (!key || !block)
		return err;
	own = *key;
	copy = *block;
	for (__u32 i = 1; i <= AP_LIVE_TABLES; i++) {
		__u32 at = n - i;
		void *table;

		if (at >= AP_LIVE_TABLES)
			break;
		table = bpf_map_lookup_elem(&live_tables, &at);
		if (!table)
			continue;
		err = bpf_map_update_elem(table, &own, &copy, BPF_NOEXIST);
		if (err == -EEXIST)
			return err;
		if (err)
			continue;
		if (__sync_fetch_and_add(&live.entries, 1) + 1 == LOAD(live.grow_at))
			ring__wake(AP_RECORD_GROW);
		return 0;
	}
	return err;
}
