/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Settings, ring buffer and counters that all programs share, and significant_bits() for histograms. */
#ifndef ALLOCPROF_MAPS_BPF_H
#define ALLOCPROF_MAPS_BPF_H

#include "kernel.h"
#include "record_abi.h"

extern const volatile struct ap_config config;

/* Ring buffer of all records to user space; user space sets its size before load. */
struct ring_map {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 16 << 20);
};

extern struct ring_map ring SEC(".maps");

/* Waits for a limited time until user space has read most of the ring buffer. Returns 0. */
int ring__await(void);

/* Returns the number of significant bits of @value. */
int significant_bits(__u64 value);

DECLARE_MAP(stats, PERCPU_ARRAY, AP_STATS, 0, __u32, __u64);

static __always_inline void stat__add_many(__u32 which, __u64 n)
{
	__u64 *value = bpf_map_lookup_elem(&stats, &which);

	if (value)
		__sync_fetch_and_add(value, n);
}

/* Atomic although the counter is per CPU: uprobe programs are preemptible, and a plain ++ would
 * lose counts. */
static __always_inline void stat__add(__u32 which)
{
	__u64 *value = bpf_map_lookup_elem(&stats, &which);

	if (value)
		__sync_fetch_and_add(value, 1);
}

#endif
