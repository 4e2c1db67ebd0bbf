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

/*
 * Ends an image by exit or exec. Live blocks stay counted while other processes use its mm. Returns
 * the number of the address space if it has no users any more, else 0.
 */
static __noinline __u32 live__end_image(struct process *process)
{
	struct process *owner;
	__u32 space = process->space, owner_tgid = process->owner;

	if (owner_tgid) {
		owner = bpf_map_lookup_elem(&processes, &owner_tgid);
		if (owner && owner->space == space) {
			__sync_fetch_and_add(&owner->live_bytes, process->live_bytes);
			__sync_fetch_and_add(&owner->live_blocks, process->live_blocks);
			__sync_fetch_and_add(&owner->users, -1);
		}
		space = 0;
	} else if (process->users) {
		space = 0;
	} else {
		live.left_bytes = live.size_bytes;
		live.left_blocks = live.blocks;
		__sync_fetch_and_add(&live.size_bytes, -process->live_bytes);
		__sync_fetch_and_add(&live.blocks, -process->live_blocks);
	}
	process->live_bytes = 0;
	process->live_blocks = 0;
	process->owner = 0;
	process->users = 0;
	return space;
}

/* Sets up the child of @parent, with an address space of its own or, with CLONE_VM, the
 * parent's. */
static __always_inline void live__fork(struct process *child, struct process *parent,
				       __u32 parent_tgid, bool shares)
{
	if (!shares) {
		child->space = live__new_space();
		child->inherits = 1;
		return;
	}
	child->space = parent->space;
	child->inherits = parent->inherits;
	child->owner = parent_tgid;
	if (parent->owner) {
		child->owner = parent->owner;
		parent = bpf_map_lookup_elem(&processes, &child->owner);
	}
	if (parent)
		__sync_fetch_and_add(&parent->users, 1);
}

#endif
