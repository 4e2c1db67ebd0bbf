/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Regions that a program marks (include/allocprof.h, docs/regions.md): which regions a thread has
 * open, and counters by set of open regions. A region's statistics are the sums over the sets that
 * contain it.
 */
#ifndef ALLOCPROF_REGIONS_BPF_H
#define ALLOCPROF_REGIONS_BPF_H

#include "counting.bpf.h"
#include "hit.bpf.h"
#include "maps.bpf.h"
#include "open_regions_abi.h"
#include "region_counts_abi.h"

extern struct ap_regions regions;

_Static_assert(AP_MAX_REGION_SETS <= 256, "struct hit has a byte for it");

/* By thread. */
struct region_threads_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u64);
	__type(value, struct ap_region_thread);
};

extern struct region_threads_map region_threads SEC(".maps");

/* By set. Few large entries, since the kernel allocates them one by one at the start. */
struct region_counts_map {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, AP_MAX_REGION_SETS);
	__type(key, __u32);
	__type(value, struct ap_region_counts);
};

extern struct region_counts_map region_counts SEC(".maps");

static __always_inline bool regions__are_active(void)
{
	return config.regions && LOAD(regions.active);
}

/* The alternate signal stack may lie above all frames of the thread, and below what the handler
 * interrupted. */
static __always_inline bool is_alternate_stack(__u64 sp)
{
	struct task_struct *task = bpf_get_current_task_btf();

	return task->sas_ss_size && sp - task->sas_ss_sp <= task->sas_ss_size;
}

/* Removes open regions that were left without a mark; returns 1 if there were any. */
int region_thread__sweep(struct ap_region_thread *thread, const struct ap_region_sweep *sweep);

/* Recomputes floor and set after a change of the open regions. */
int region_thread__update(struct ap_region_thread *thread);

/* The set of regions that are open at a call with @sp. */
static __noinline __u32 regions__set(__u64 sp)
{
	__u64 id = bpf_get_current_pid_tgid();
	struct ap_region_thread *thread = bpf_map_lookup_elem(&region_threads, &id);
	struct ap_region_sweep sweep = ap_region_sweep__at_call(sp);

	if (!thread || !thread->n)
		return 0;
	if (sp >= thread->floor) {
		sweep.alternate = is_alternate_stack(sp);
		if (region_thread__sweep(thread, &sweep))
			region_thread__update(thread);
	}
	return thread->set;
}

static __always_inline void regions__end_thread(__u64 id)
{
	if (regions__are_active())
		bpf_map_delete_elem(&region_threads, &id);
}

static __noinline int regions__count_hit(struct hit *hit)
{
	struct ap_region_counts *of_set;
	__u32 set, function = hit->function;

	set = regions__set(hit->sp);
	if (!set)
		return 0;
	if (set == AP_NO_REGION_SET) {
		stat__add(AP_STAT_REGION_GAP + AP_REGION_GAP_SETS);
		return 0;
	}
	hit->regions = set;
	of_set = bpf_map_lookup_elem(&region_counts, &set);
	if (of_set && function < AP_FUNCTIONS)
		counts__add(&of_set->functions[function], hit);
	return 0;
}

/* Counts a call of the measured window in its set of open regions; sets @hit->regions. */
static __always_inline void regions__count(struct hit *hit)
{
	if (regions__are_active() && !hit->internal)
		regions__count_hit(hit);
}

static __noinline int region_set__add(__u32 set, __u32 which, __u64 n)
{
	struct ap_region_counts *of_set = bpf_map_lookup_elem(&region_counts, &set);

	if (of_set && which < AP_STATS)
		__sync_fetch_and_add(&of_set->stats[which], n);
	return 0;
}

/* With live: adds to a statistic of the call's set of regions. */
static __always_inline void regions__add(__u32 set, enum ap_stat which, __u64 n)
{
	if (config.regions && set)
		region_set__add(set, which, n);
}

/* Counts the end of a block by a call in @set. */
static __always_inline void regions__add_end(__u32 set, __u64 size_bytes, bool is_deallocation)
{
	if (!config.regions || !set)
		return;
	region_set__add(set, AP_STAT_FREED_BYTES, size_bytes);
	if (!is_deallocation)
		return;
	region_set__add(set, AP_STAT_DEALLOCATIONS, 1);
	region_set__add(set, AP_STAT_DEALLOCATED_BYTES, size_bytes);
}

#endif
