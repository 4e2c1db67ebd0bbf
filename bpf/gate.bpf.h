/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The measured window (docs/windows.md). Hits outside of it are not counted, but still tracked,
 * since they decide which later hits are internal, and free blocks.
 */
#ifndef ALLOCPROF_GATE_BPF_H
#define ALLOCPROF_GATE_BPF_H

#include "maps.bpf.h"
#include "process.bpf.h"

struct ap_gate gate;

/* By module: code of the functions of --within. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, struct ap_within);
} within_ranges SEC(".maps");

static __always_inline bool gate__is_open(const struct process *process)
{
	return LOAD(gate.open) && !LOAD(process->closed);
}

/* Whether @module has code of a function of --within. */
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

/* At the entries of the window's start and stop functions and of those of --within. The probe may
 * hit more than once per call, since setting a flag twice is harmless. */
SEC("uprobe")
int gate_event(struct pt_regs *ctx)
{
	struct process *process = process__current();

	if (!process)
		return 0;
	switch (bpf_get_attach_cookie(ctx)) {
	case AP_GATE_START:
		process->closed = 0;
		gate.started = 1;
		break;
	case AP_GATE_STOP:
		process->closed = 1;
		break;
	case AP_GATE_ENTER:
		/* Each hit reads this cache line. */
		if (!LOAD(gate.entered) && gate__is_open(process))
			gate.entered = 1;
		break;
	}
	return 0;
}

#endif
