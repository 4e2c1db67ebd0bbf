/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The measured window (docs/windows.md). Hits outside of it are not counted, but still tracked,
 * since they decide which later hits are internal, and free blocks.
 */
#ifndef ALLOCPROF_GATE_BPF_H
#define ALLOCPROF_GATE_BPF_H

#include "maps.bpf.h"
#include "process.bpf.h"

extern struct ap_gate gate;

/* Code of the functions of --within, by module. */
DECLARE_MAP(within_ranges, HASH, 1024, 0, __u32, struct ap_within);

static __always_inline bool gate__is_open(const struct process *process)
{
	return LOAD(gate.open) && !LOAD(process->closed);
}

/* Returns whether @module has code of a function of --within. */
static __always_inline bool within__has(__u32 module)
{
	return config.within && bpf_map_lookup_elem(&within_ranges, &module);
}

static __always_inline bool within__holds(__u32 module, __u64 offset)
{
	const struct ap_within *within = bpf_map_lookup_elem(&within_ranges, &module);

	if (!within)
		return false;
	for (int i = 0; i < AP_MAX_WITHIN_RANGES; i++) {
		if (i >= within->n)
			break;
		if (offset - within->ranges[i].start < within->ranges[i].size)
			return true;
	}
	return false;
}

#endif
