/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Remembers which stacks and code objects user space has been sent, and says when it is woken for more. */
#ifndef ALLOCPROF_SENT_BPF_H
#define ALLOCPROF_SENT_BPF_H

#include "maps.bpf.h"

/*
 * Hashes of the stacks whose frames user space has, and keys of the code objects whose names it has, in sets. A full set
 * evicts a hash, and CPUs may overwrite each other's hashes: what was evicted is sent again.
 */

#define SENT_WAYS 8

struct sent_set {
	__u64 hashes[SENT_WAYS]; /* of stacks, and keys of code objects; 0: free */
};

DECLARE_MAP(stacks_sent, ARRAY, 32768, 0, __u32, struct sent_set);

static __always_inline struct sent_set *sent__set(__u64 stack)
{
	__u32 at = stack & config.sent_mask;

	return bpf_map_lookup_elem(&stacks_sent, &at);
}

static __always_inline bool sent__has(const struct sent_set *set, __u64 stack)
{
	for (int i = 0; i < SENT_WAYS; i++)
		if (set->hashes[i] == stack)
			return true;
	return false;
}

static __always_inline void sent__add(struct sent_set *set, __u64 stack)
{
	for (int i = 0; i < SENT_WAYS; i++) {
		if (!set->hashes[i]) {
			set->hashes[i] = stack;
			return;
		}
	}
	set->hashes[stack >> 48 & (SENT_WAYS - 1)] = stack;
}

/* Returns flags that wake user space only when enough is unread: a wake-up costs more than a
 * record. */
static __always_inline __u64 ring__flags(void)
{
	return bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) >= config.wake_at_bytes
		       ? BPF_RB_FORCE_WAKEUP
		       : BPF_RB_NO_WAKEUP;
}

#endif
