/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Hashes of the stacks whose frames user space has, in sets. A full set evicts a hash, and CPUs may
 * overwrite each other's: an evicted stack is sent again.
 */
#ifndef ALLOCPROF_SENT_BPF_H
#define ALLOCPROF_SENT_BPF_H

#include "maps.bpf.h"

#define SENT_WAYS 8

struct sent_set {
	__u64 stacks[SENT_WAYS]; /* 0: free */
};

struct stacks_sent_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 32768);
	__type(key, __u32);
	__type(value, struct sent_set);
};

extern struct stacks_sent_map stacks_sent SEC(".maps");

static __always_inline struct sent_set *sent__set(__u64 stack)
{
	__u32 at = stack & config.sent_mask;

	return bpf_map_lookup_elem(&stacks_sent, &at);
}

static __always_inline bool sent__has(const struct sent_set *set, __u64 stack)
{
	for (int i = 0; i < SENT_WAYS; i++)
		if (set->stacks[i] == stack)
			return true;
	return false;
}

static __always_inline void sent__add(struct sent_set *set, __u64 stack)
{
	for (int i = 0; i < SENT_WAYS; i++) {
		if (!set->stacks[i]) {
			set->stacks[i] = stack;
			return;
		}
	}
	set->stacks[stack >> 48 & (SENT_WAYS - 1)] = stack;
}

#endif
