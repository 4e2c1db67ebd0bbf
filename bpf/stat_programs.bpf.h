/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The program of stat without --live, and counters by site. */
#ifndef ALLOCPROF_STAT_PROGRAMS_BPF_H
#define ALLOCPROF_STAT_PROGRAMS_BPF_H

#include "hit.bpf.h"
#include "process.bpf.h"
#include "regions.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, AP_MAX_SITES);
	__type(key, __u32);
	__type(value, struct ap_site_counts);
} site_counts SEC(".maps");

static __always_inline void count_hit(const struct hit *hit)
{
	struct ap_site_counts *of_site;

	of_site = bpf_map_lookup_elem(&site_counts, &hit->site);
	if (!of_site)
		return;
	if (hit->internal) {
		__sync_fetch_and_add(&of_site->internal, 1);
		return;
	}
	counts__add(of_site, hit);
}

SEC("uprobe")
int count_call(struct pt_regs *ctx)
{
	struct process *process = process__hit();
	struct hit hit;

	if (!process)
		return 0;
	hit__enter(&hit, ctx);
	hit.return_address = hit__return_address(&hit);
	if (hit__read(&hit, ctx) && hit__is_measured(&hit, process)) {
		count_hit(&hit);
		regions__count(&hit);
	}
	return 0;
}

#endif
