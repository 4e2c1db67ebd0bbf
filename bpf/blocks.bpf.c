// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Counts the begin and end of blocks: keeps the tables of live ones, and the statistics of both
 * (docs/live.md). */
#include <asm-generic/errno-base.h>

#include "arch.bpf.h"
#include "blocks.bpf.h"
#include "maps.bpf.h"
#include "process.bpf.h"
#include "sample.bpf.h"
#include "waits.bpf.h"

static long records__look(__u32 index, __u64 *until_ns)
{
	return !records__are_few() || bpf_ktime_get_ns() >= *until_ns;
}

__noinline int records__await(void)
{
	__u64 until_ns;

	ring__wake(AP_RECORD_GROW);
	wait__for(records__look, &until_ns, &until_ns, AP_WAIT_NS);
	return 0;
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
	__u64 n = sample__times(block->weight), size_bytes = n * block->size_bytes;
	struct ap_lifetime_key key =
		ap_lifetime_key__of(block, live.start_ns, now, &live.epoch_shift);
	struct ap_lifetime *lifetime, fresh;
	__u32 zero = 0;
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
	ap_blocks__begin(record, 0, block, n, size_bytes);
	if (config.live_stacks)
		record__add_to_histogram(record, AP_SIZE_TAG, block->size_bytes, n);
	__sync_fetch_and_add(&process->live_blocks, n);
	__sync_fetch_and_add(&process->live_bytes, size_bytes);
	__sync_fetch_and_add(&live.blocks, n);
	now = __sync_fetch_and_add(&live.size_bytes, size_bytes) + size_bytes;
	if (now < 0)
		return 0;
	/* Another CPU may store its own maximum first. */
	for (int i = 0; i < 8 && (__u64)now > (mark = LOAD(live.max_bytes)); i++)
		if (__sync_val_compare_and_swap(&live.max_bytes, mark, now) == mark)
			break;
	mark = LOAD(live.mark_bytes);
	if (ap_peak__is_over(now, mark) &&
	    __sync_val_compare_and_swap(&live.mark_bytes, mark, now) == mark)
		__sync_fetch_and_add(&live.generation, 1);
	return 0;
}

__noinline int block__end(struct process *process, const struct ap_block *block, __u64 address,
			  __u64 now, __u32 how)
{
	__u64 n, size_bytes;
	__u32 kind = how == AP_BLOCK_FREED   ? AP_EVENT_FREE
		     : how == AP_BLOCK_MOVED ? AP_EVENT_MOVED
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
	ap_blocks__end(record, 0, block, n, size_bytes, how);
	__sync_fetch_and_add(&process->live_blocks, -n);
	__sync_fetch_and_add(&process->live_bytes, -size_bytes);
	__sync_fetch_and_add(&live.blocks, -n);
	__sync_fetch_and_add(&live.size_bytes, -size_bytes);
	if (how == AP_BLOCK_UNSEEN) {
		if (event_config.enabled)
			event__block(block, address, now, process->id, kind);
		return 0;
	}
	thread = bpf_map_lookup_elem(&threads, &id);
	ap_blocks__end_by(record, block, thread ? thread->number : 0, n, how);
	if (thread && thread->number == block->thread && thread->sequence == block->sequence) {
		kind |= EVENT_TEMPORARY;
		ap_blocks__end_temporary(record, 0, block, n, size_bytes);
	}
	if (!config.live_stacks)
		return 0;
	if (event_config.enabled)
		event__block(block, address, now, process->id, kind);
	record__add_to_histogram(record, AP_LIFETIME_TAG, now - block->birth_ns, n);
	lifetime__count(block, now);
	return 0;
}

__noinline int block__grow(const struct ap_block *old, const struct ap_block *now)
{
	struct ap_blocks *record;
	__u64 n;

	if (!old || !now || !ap_block__has_grown(old, now))
		return 0;
	record = record__get(old->record);
	if (!record)
		return 0;
	n = sample__times(old->weight);
	ap_blocks__grow(record, n, n * old->size_bytes);
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
		/* Without the barrier clang 19 merges @taken with the loop's exit condition, in a
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
