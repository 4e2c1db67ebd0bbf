/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Counters of calls by site. */
#ifndef ALLOCPROF_COUNTING_BPF_H
#define ALLOCPROF_COUNTING_BPF_H

#include "hit.bpf.h"
#include "maps.bpf.h"
#include "regions.bpf.h"

struct site_counts_map {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, AP_MAX_SITES);
	__type(key, __u32);
	__type(value, struct ap_site_counts);
};

extern struct site_counts_map site_counts SEC(".maps");

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
	ap_site_counts__add(of_site, hit->function, hit->size_bytes, hit->pointer, hit->overflows);
	/* With live its record counts it. */
	if (!config.live)
		hit__note_impossible(hit);
}

#endif
