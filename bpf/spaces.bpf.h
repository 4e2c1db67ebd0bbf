/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* With live: address spaces, from fork or exec to the exit of the last process that uses them. */
#ifndef ALLOCPROF_SPACES_BPF_H
#define ALLOCPROF_SPACES_BPF_H

#include "calls.bpf.h"
#include "process.bpf.h"
#include "records.bpf.h"

/* The thread ends, or its process calls exec. */
static __noinline void live__end_thread(__u64 id)
{
	struct ap_thread *thread = bpf_map_lookup_elem(&threads, &id);

	if (!thread)
		return;
	for (int i = 0; i < AP_MAX_PENDING && thread->n_pending && !LOAD(live.stopped); i++)
		thread__abandon(thread);
	if (!LOAD(live.stopped))
		bpf_map_delete_elem(&threads, &id);
}

static __always_inline __u32 live__new_space(void)
{
	return __sync_fetch_and_add(&live.last_space, 1) + 1;
}

/* An address space that several processes use, or used: by clone(CLONE_VM), and by vfork until the exec. */
struct shared_space {
	__s64 live_bytes, live_blocks; /* of the processes that have ended or executed a program */
	__u32 users;		       /* processes, of which the last one removes the entry */
	__u32 is_left;		       /* 1: the process that it was made for has exited */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, __u32);
	__type(value, struct shared_space);
} shared_spaces SEC(".maps");

/* Sent where the last process that used @space has executed a program, and the one that it was made for has exited before. */
static __always_inline void space__report(__u32 space)
{
	struct ap_space_record *record = bpf_ringbuf_reserve(&ring, sizeof(*record), 0);

	if (!record) {
		stat__add(AP_STAT_PROCESSES_UNNOTICED);
		return;
	}
	record->type = AP_RECORD_SPACE;
	record->space = space;
	record->time_ns = bpf_ktime_get_ns();
	record->generation = LOAD(live.generation);
	bpf_ringbuf_submit(record, BPF_RB_FORCE_WAKEUP);
}

/* Adds what @process leaves to what other users of its address space have left. Returns whether there are no others. */
static __always_inline bool shared_space__leave(struct process *process, bool exits, bool *is_left)
{
	__u32 space = process->space;
	struct shared_space *shared = bpf_map_lookup_elem(&shared_spaces, &space);

	if (!shared)
		return true;
	if (exits && !process->shares)
		shared->is_left = 1;
	__sync_fetch_and_add(&shared->live_bytes, process->live_bytes);
	__sync_fetch_and_add(&shared->live_blocks, process->live_blocks);
	if (__sync_fetch_and_add(&shared->users, -1) != 1)
		return false;
	process->live_bytes = shared->live_bytes;
	process->live_blocks = shared->live_blocks;
	*is_left = shared->is_left;
	bpf_map_delete_elem(&shared_spaces, &space);
	return true;
}

/* What is live now may be the peak, though it has not grown by the 1/128 that begins a generation. */
static __always_inline void live__note_peak(void)
{
	__u64 mark = LOAD(live.mark_bytes);
	__s64 now = LOAD(live.size_bytes);

	if (now > 0 && (__u64)now > mark &&
	    __sync_val_compare_and_swap(&live.mark_bytes, mark, now) == mark)
		__sync_fetch_and_add(&live.generation, 1);
}

/*
 * Ends an image by exit or exec. Live blocks stay counted while other processes use its mm. Returns
 * the number of the address space if this event has ended it, else 0.
 */
static __noinline __u32 live__end_image(struct process *process, bool exits)
{
	__u32 space = process->space;
	bool is_left = false;

	if (shared_space__leave(process, exits, &is_left)) {
		live.left_bytes = live.size_bytes;
		live.left_blocks = live.blocks;
		live__note_peak();
		__sync_fetch_and_add(&live.size_bytes, -process->live_bytes);
		__sync_fetch_and_add(&live.blocks, -process->live_blocks);
		if (is_left && !exits) {
			space__report(space);
			space = 0;
		}
	} else {
		space = 0;
	}
	process->live_bytes = 0;
	process->live_blocks = 0;
	process->shares = 0;
	return space;
}

/* Sets up the child of @parent, with an address space of its own or, with CLONE_VM, the parent's. False if the kernel has no
 * memory to note that it is shared. */
static __always_inline bool live__fork(struct process *child, const struct process *parent,
				       bool shares)
{
	const struct shared_space alone = { .users = 1 };
	__u32 space = parent->space;
	struct shared_space *shared;

	if (!shares) {
		child->space = live__new_space();
		child->inherits = 1;
		return true;
	}
	/* Another thread may do so, too. */
	bpf_map_update_elem(&shared_spaces, &space, &alone, BPF_NOEXIST);
	shared = bpf_map_lookup_elem(&shared_spaces, &space);
	if (!shared)
		return false;
	__sync_fetch_and_add(&shared->users, 1);
	child->space = space;
	child->inherits = parent->inherits;
	child->shares = 1;
	return true;
}

#endif
