/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * With --live: follows calls from entry to return. A block begins when the allocator returns it,
 * and ends when the function that frees it is entered (docs/live.md).
 */
#ifndef ALLOCPROF_CALLS_BPF_H
#define ALLOCPROF_CALLS_BPF_H

#include <asm-generic/errno-base.h>

#include "arch.bpf.h"
#include "blocks.bpf.h"
#include "events.bpf.h"
#include "gate.bpf.h"
#include "hit.bpf.h"
#include "regions.bpf.h"

static __always_inline struct ap_thread *thread__get(__u64 id)
{
	struct ap_thread *thread = bpf_map_lookup_elem(&threads, &id);

	if (thread)
		return thread;
	if (bpf_map_update_elem(&threads, &id, &fresh_thread, BPF_NOEXIST))
		return NULL;
	thread = bpf_map_lookup_elem(&threads, &id);
	if (thread)
		thread->number = __sync_fetch_and_add(&live.n_threads, 1) + 1;
	return thread;
}

static __always_inline bool reallocates(__u8 function)
{
	return AP_REALLOCATING >> function & 1;
}

/* Puts a realloc's old block back into the tables. */
static __noinline void pending__restore(struct ap_pending *pending)
{
	struct ap_block_key key = { .address = pending->pointer,
				    .space = pending->space,
				    .blocks = pending->blocks };

	if (!pending->has_old)
		return;
	pending->has_old = 0;
	if (blocks__put(&key, &pending->old))
		stat__add_many(AP_STAT_DROPPED, sample__times(pending->old.weight));
}

/* Drops the thread's innermost call, which will not return. */
static __always_inline void thread__abandon(struct ap_thread *thread)
{
	struct ap_pending *pending;

	thread->n_pending--;
	pending = &thread->pending[thread->n_pending & (AP_MAX_PENDING - 1)];
	if (pending->record != AP_NO_RECORD) {
		stat__add_many(AP_STAT_UNFINISHED, sample__times(pending->weight));
		if (event_config.enabled)
			event__call(AP_EVENT_UNFINISHED, pending->record, 0, pending->size_bytes,
				    sample__times(pending->weight));
	}
	pending__restore(pending);
}

/*
 * Drops calls that a longjmp left: those not above @sp. The alternate signal stack may be at any
 * address, so stacks are not compared: calls on the thread's own stack are under way while a
 * handler runs on the signal stack; calls on the signal stack are over when no handler runs.
 */
static __always_inline void thread__abandon_left(struct ap_thread *thread, __u64 sp)
{
	bool in_handler = sp__is_on_signal_stack(sp);

	for (int i = 0; i < AP_MAX_PENDING; i++) {
		bool of_handler;
		__u64 pending_sp;

		if (!thread->n_pending)
			break;
		pending_sp = thread->pending[(thread->n_pending - 1) & (AP_MAX_PENDING - 1)].sp;
		of_handler = sp__is_on_signal_stack(pending_sp);
		if (in_handler == of_handler ? pending_sp > sp : in_handler)
			break;
		thread__abandon(thread);
	}
}

/* Counts a free of a block that is not in the tables. With sampling the block may be one that was
 * not sampled. */
static __always_inline void count_untracked_free(const struct process *process, __u32 function,
						 __u64 pointer)
{
	if (config.sample)
		return;
	stat__add(ap_stat__of_unknown_free(function, process->inherits));
	if (event_config.enabled)
		event__call(AP_EVENT_NOOP, AP_NO_RECORD, pointer, 0, 1);
}

static __noinline void count_untracked(__u32 record, const struct hit *hit,
				       enum ap_untracked reason)
{
	if (record == AP_NO_RECORD)
		return;
	stat__add_many(AP_STAT_UNTRACKED + reason, sample__times(hit->weight));
	if (event_config.enabled)
		event__call(AP_EVENT_UNTRACKED, record, 0, hit->size_bytes,
			    sample__times(hit->weight));
}

/*
 * Pushes the call onto the thread's stack of calls until it returns, and takes a realloc's old
 * block out of the tables. Returns false if the call's return need not be seen.
 */
static __noinline __maybe_unused bool call__enter(struct process *process, const struct hit *hit,
						  __u64 out, __u32 record)
{
	struct ap_thread *thread = thread__get(bpf_get_current_pid_tgid());
	struct ap_block_key key = { .address = hit->pointer,
				    .space = process->space,
				    .blocks = hit->blocks };
	struct ap_pending *pending;
	__u32 at;

	if (!thread) {
		count_untracked(record, hit, AP_UNTRACKED_THREADS_FULL);
		return false;
	}
	thread__abandon_left(thread, hit->sp);
	at = thread->n_pending;
	if (at >= AP_MAX_PENDING) {
		count_untracked(record, hit, AP_UNTRACKED_NESTED);
		return false;
	}
	/* clang knows that @at is less than AP_MAX_PENDING; the verifier of Linux 6.1 only sees a
	 * mask. */
	barrier_var(at);
	pending = &thread->pending[at & (AP_MAX_PENDING - 1)];
	pending->sp = hit->sp;
	pending->size_bytes = hit->size_bytes;
	pending->pointer = hit->function == AP_POSIX_MEMALIGN ? out : hit->pointer;
	pending->entry_ns = 0;
	pending->record = record;
	pending->weight = hit->weight;
	pending->space = process->space;
	pending->function = hit->function;
	pending->moves = reallocates(hit->function) && hit->pointer;
	pending->overflows = hit->overflows;
	pending->regions = hit->regions;
	pending->result = hit->result;
	pending->blocks = hit->blocks;
	/* A call that was lost has no record either, but is not outside. */
	pending->outside = record == AP_NO_RECORD && (config.within || !gate__is_open(process));
	pending->has_old = 0;
	if (reallocates(hit->function) && hit->pointer && !hit->overflows &&
	    blocks__take(&key, &pending->old)) {
		pending->has_old = 1;
		pending->entry_ns = bpf_ktime_get_ns();
	}
	thread->n_pending++;
	return true;
}

/*
 * For a call that was not sampled or is outside of the window: returns whether it may end a
 * followed block, so that its return must be seen.
 */
static __noinline __maybe_unused bool call__may_end(struct process *process, const struct hit *hit)
{
	struct ap_block_key key = { .address = hit->pointer,
				    .space = process->space,
				    .blocks = hit->blocks };
	bool moves = reallocates(hit->function) && hit->pointer && !hit->overflows;
	__u64 id = bpf_get_current_pid_tgid();
	struct ap_thread *thread;

	if (hit->blocks == AP_ONLY_COUNTED)
		return false;
	if (moves && blocks__has(&key))
		return true;
	thread = bpf_map_lookup_elem(&threads, &id);
	if (!thread)
		return false;
	/* If all returns are probed, this call's return must not match a call that a longjmp
	 * left. */
	thread__abandon_left(thread, hit->sp);
	/* The thread's earlier blocks are no longer temporary. The call is assumed to succeed. */
	if (!moves || hit->size_bytes)
		thread->sequence++;
	return false;
}

static __always_inline void call__fail(struct ap_pending *pending)
{
	struct ap_blocks *record = record__get(pending->record);

	if (record) {
		ap_blocks__fail(record, pending->regions, sample__times(pending->weight));
		if (event_config.enabled)
			event__call(AP_EVENT_FAILED, pending->record, 0, pending->size_bytes,
				    sample__times(pending->weight));
	}
	pending__restore(pending);
}

/* Counts the end of the old block of a realloc that succeeded. */
static __noinline void call__end_old(struct process *process, struct ap_pending *pending,
				     enum ap_block_end how)
{
	__u64 old = 0;

	if (pending->has_old) {
		old = pending->old.size_bytes;
		block__end(process, &pending->old, pending->pointer, pending->entry_ns, how);
		ap_regions__end_block(pending->regions, old, how);
	} else if (!pending->outside) {
		count_untracked_free(process, pending->function, pending->pointer);
	}
	if (how == AP_BLOCK_MOVED)
		ap_move__count(pending->regions, sample__times(pending->weight), old,
			       pending->size_bytes);
}

/* Adds the block at @key, which the allocator has returned: a block that is still in the tables
 * there has ended unseen. Returns false if the new block cannot be followed. */
static __noinline bool blocks__add(struct process *process, const struct ap_block_key *key,
				   const struct ap_block *block)
{
	struct ap_block stale = {};
	int err;

	/* If there is only one table, blocks__put() finds the old block by -EEXIST. */
	if (LOAD(live.n_tables) > 1 && blocks__take(key, &stale)) {
		stat__add_many(AP_STAT_UNMATCHED, sample__times(stale.weight));
		block__end(process, &stale, key->address, block->birth_ns, AP_BLOCK_UNSEEN);
	}
	err = blocks__put(key, block);
	if (err == -EEXIST && blocks__take(key, &stale)) {
		stat__add_many(AP_STAT_UNMATCHED, sample__times(stale.weight));
		block__end(process, &stale, key->address, block->birth_ns, AP_BLOCK_UNSEEN);
		err = blocks__put(key, block);
	}
	if (!err)
		return true;
	stat__add_many(AP_STAT_UNTRACKED +
			       (err == -ENOMEM ? AP_UNTRACKED_NO_MEMORY : AP_UNTRACKED_LIVE_FULL),
		       sample__times(block->weight));
	return false;
}

static __noinline void call__return(struct process *process, struct ap_thread *thread,
				    struct ap_pending *pending, __u64 result)
{
	/* @moves is not computed here: Linux 6.1's verifier lost track of the combined value of
	 * two branches. */
	bool moves = pending->moves, added = false;
	struct ap_block_key key = { .space = pending->space, .blocks = pending->blocks };
	struct ap_block block = {
		.size_bytes = pending->size_bytes,
		.record = pending->record,
		.weight = pending->weight,
	};

	if (pending->function == AP_POSIX_MEMALIGN) {
		if ((__u32)result) {
			call__fail(pending);
			return;
		}
		result = word_at(pending->pointer);
	}
	if (pending->result == AP_RESULT_AT_POINTER)
		result = word_at(pending->pointer);
	if (pending->result == AP_RESULT_SIZE_IN_PLACE)
		result = result >= pending->size_bytes ? pending->pointer : 0;
	if (!result && moves && !pending->size_bytes && !pending->overflows) {
		if (pending->record != AP_NO_RECORD) {
			stat__add_many(AP_STAT_RELEASED, sample__times(pending->weight));
			if (event_config.enabled)
				event__call(AP_EVENT_RELEASED, pending->record, 0, 0,
					    sample__times(pending->weight));
		}
		call__end_old(process, pending, AP_BLOCK_FREED);
		return;
	}
	if (!result) {
		if (pending->result == AP_RESULT_FREES && moves) {
			call__end_old(process, pending, AP_BLOCK_FREED);
			pending->has_old = 0;
		}
		call__fail(pending);
		return;
	}
	block.thread = thread->number;
	block.sequence = thread->sequence + 1;
	if (pending->record != AP_NO_RECORD) {
		key.address = result;
		block.birth_ns = bpf_ktime_get_ns();
		if (event_config.enabled)
			block.id = pending->has_old ? pending->old.id
						    : __sync_fetch_and_add(&last_block_id, 1) + 1;
		added = blocks__add(process, &key, &block);
		if (!added && event_config.enabled)
			event__call(AP_EVENT_UNTRACKED, pending->record, result,
				    pending->size_bytes, sample__times(pending->weight));
	}
	if (moves)
		call__end_old(process, pending, added ? AP_BLOCK_MOVED : AP_BLOCK_FREED);
	thread->sequence++;
	if (!added)
		return;
	if (pending->has_old)
		block__grow(&pending->old, &block);
	block__begin(process, &block);
	if (event_config.enabled)
		event__block(&block, result, block.birth_ns, process->id, AP_EVENT_ALLOC);
	ap_regions__begin_block(pending->regions, block.size_bytes);
}

/* Called when a function returns. @sp is SP after the return. */
static __always_inline void call__leave(struct pt_regs *regs, __u64 sp)
{
	__u64 id = bpf_get_current_pid_tgid(), result = arch__result(regs);
	struct ap_thread *thread = bpf_map_lookup_elem(&threads, &id);
	struct ap_pending *pending = NULL;
	struct process *process;

	if (!thread || LOAD(live.stopped))
		return;
	for (int i = 0; i < AP_MAX_PENDING; i++) {
		__u64 caller_sp;

		if (!thread->n_pending)
			return;
		pending = &thread->pending[(thread->n_pending - 1) & (AP_MAX_PENDING - 1)];
		caller_sp = arch__caller_sp(pending->sp);
		if (caller_sp == sp)
			break;
		/* An outer call is pending: this return is of a call without an entry. */
		if (caller_sp > sp)
			return;
		thread__abandon(thread);
		pending = NULL;
	}
	process = process__current();
	if (!pending || !process)
		return;
	call__return(process, thread, pending, result);
	thread->n_pending--;
}

/* Called when a free function is entered. Returns false if no followed block ends. */
static __always_inline bool call__free(struct process *process, __u64 pointer, __u32 blocks,
				       __u32 region_set)
{
	struct ap_block_key key = { .address = pointer, .space = process->space, .blocks = blocks };
	struct ap_block block = {};

	if (!pointer || !blocks__take(&key, &block))
		return false;
	block__end(process, &block, pointer, bpf_ktime_get_ns(), AP_BLOCK_FREED);
	ap_regions__end_block(region_set, block.size_bytes, AP_BLOCK_FREED);
	return true;
}

static __always_inline void count_noop_free(const struct process *process, __u32 function,
					    __u64 pointer)
{
	if (pointer) {
		count_untracked_free(process, function, pointer);
		return;
	}
	stat__add(AP_STAT_FREES_NULL);
	if (event_config.enabled)
		event__call(AP_EVENT_NOOP, AP_NO_RECORD, 0, 0, 1);
}

#endif
