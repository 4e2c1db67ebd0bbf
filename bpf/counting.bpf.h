/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Counters of calls by site. */
#ifndef ALLOCPROF_COUNTING_BPF_H
#define ALLOCPROF_COUNTING_BPF_H

#include "hit.bpf.h"
#include "maps.bpf.h"
#include "sums.bpf.h"

struct site_counts_map {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, AP_MAX_SITES);
	__type(key, __u32);
	__type(value, struct ap_site_counts);
};

extern struct site_counts_map site_counts SEC(".maps");

static __always_inline void counts__add(struct ap_site_counts *sum, const struct hit *hit)
{
	__sync_fetch_and_add(&sum->calls, 1);
	if (AP_FREEING >> hit->function & 1) {
		if (!hit->pointer)
			__sync_fetch_and_add(&sum->null, 1);
		return;
	}
	sum__add(&sum->size_bytes, bytes_in_sums(hit->size_bytes));
	if (AP_REALLOCATING >> hit->function & 1) {
		if (!hit->pointer) {
			__sync_fetch_and_add(&sum->fresh, 1);
			sum__add(&sum->fresh_size_bytes, bytes_in_sums(hit->size_bytes));
		} else if (!hit->size_bytes && !hit->overflows) {
			__sync_fetch_and_add(&sum->released, 1);
		}
	}
}

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
	/* With live its record counts it. */
	if (!config.live)
		hit__note_impossible(hit);
}

#endif
