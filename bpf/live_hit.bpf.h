/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* With --live: finds the record of a hit. */
#ifndef ALLOCPROF_LIVE_HIT_BPF_H
#define ALLOCPROF_LIVE_HIT_BPF_H

#include "arch.bpf.h"
#include "blocks.bpf.h"
#include "hit.bpf.h"
#include "recording.bpf.h"
#include "sample.bpf.h"
#include "scratch.bpf.h"

/* Returns the slot for @key in the scratch's cache, whether or not it holds @key. */
static __always_inline struct cached_record *cached_record__find(struct scratch *scratch,
								 const struct ap_count_key *key)
{
	__u32 at = key->stack;

	barrier_var(at);
	return &scratch->records[at & (SCRATCH_RECORDS - 1)];
}

static __always_inline bool cached_record__holds(const struct cached_record *cached,
						 const struct ap_count_key *key)
{
	const __u64 *known = (const __u64 *)&cached->key, *asked = (const __u64 *)key;

	return known[0] == asked[0] && known[1] == asked[1] && known[2] == asked[2] &&
	       known[3] == asked[3];
}

/* Returns the index of the record that counts the hit, or AP_NO_RECORD if the call is lost. */
static __noinline __u32 find_record(struct pt_regs *ctx, struct scratch *scratch,
				    const struct hit *hit, const struct process *process)
{
	struct ap_count_key key = { .process = process->id, .function = hit->function };
	struct cached_record *cached;
	__u32 index;

	thread_name__read(key.thread);
	if (end__needs_user_space(scratch->record.end) && LOAD(live.n_dumps) < config.max_dumped) {
		key.function |= AP_FUNCTION_DUMPED;
		if (stack__dump(ctx, &key, scratch->record.end, hit))
			goto new_record;
		key.function = hit->function;
	}
	key.stack = scratch->record.stack;
	cached = cached_record__find(scratch, &key);
	if (cached_record__holds(cached, &key))
		return cached->index;
	if (!index__find(&key, &index)) {
		cached->key = key;
		cached->index = index;
		return index;
	}
	if (!stack__send(scratch)) {
		lose(AP_LOST_RING_FULL);
		return AP_NO_RECORD;
	}
new_record:
	index = record__add(&key);
	if (index == AP_NO_RECORD)
		lose(AP_LOST_COUNTS_FULL);
	return index;
}

/* Counts the call in its record. */
static __always_inline void record__count(__u32 index, const struct hit *hit)
{
	struct ap_blocks *record = record__get(index);
	__u64 n = sample__times(hit->weight);

	if (!record)
		return;
	__sync_fetch_and_add(&record->calls, n);
	sum__add(&record->asked_bytes, n * bytes_in_sums(hit->size_bytes));
	hit__note_impossible(hit);
	if (config.sample)
		estimate__add(&record->of_calls, hit->weight, hit->size_bytes);
}

#endif
