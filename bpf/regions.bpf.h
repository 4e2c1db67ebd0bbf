/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Regions that a program marks (include/allocprof.h, docs/regions.md): which regions a thread has
 * open, and counters by set of open regions. A region's statistics are the sums over the sets that
 * contain it. The second half binds the rules of count_rules_abi.h to the maps of the programs.
 */
#ifndef ALLOCPROF_REGIONS_BPF_H
#define ALLOCPROF_REGIONS_BPF_H

#include "hit.bpf.h"
#include "maps.bpf.h"
#include "open_regions_abi.h"
#include "sample.bpf.h"

extern struct ap_regions regions;

_Static_assert(AP_MAX_REGION_SETS <= 256, "struct hit has a byte for it");

/* Keyed by thread. */
DECLARE_MAP(region_threads, HASH, 65536, BPF_F_NO_PREALLOC, __u64, struct ap_region_thread);

/* Indexed by set. It has few large entries, since the kernel allocates them one by one at the
 * start. */
DECLARE_MAP(region_counts, PERCPU_ARRAY, AP_MAX_REGION_SETS, 0, __u32, struct ap_region_counts);

static __always_inline bool regions__are_active(void)
{
	return config.regions && LOAD(regions.active);
}

/* Returns whether the thread is on its alternate signal stack, which may be above all frames of
 * the thread, and below those that the handler interrupted. */
static __always_inline bool is_alternate_stack(__u64 sp)
{
	struct task_struct *task = bpf_get_current_task_btf();

	return task->sas_ss_size && sp - task->sas_ss_sp <= task->sas_ss_size;
}

/* Removes open regions that were left without a mark; returns 1 if there were any. */
int region_thread__sweep(struct ap_region_thread *thread, const struct ap_region_sweep *sweep);

/* Recomputes floor and set after a change of the open regions. */
int region_thread__update(struct ap_region_thread *thread);

static __noinline int region_set__add(__u32 set, __u32 which, __u64 n)
{
	struct ap_region_counts *of_set = bpf_map_lookup_elem(&region_counts, &set);

	if (of_set && which < AP_STATS)
		__sync_fetch_and_add(&of_set->stats[which], n);
	return 0;
}

/* The rules of counting are shared with src/inside. Here AP_CALLER is the number of the caller's
 * set of open regions. */
#define AP_CALLER			 __u32
#define AP_ADD(counter, n)		 __sync_fetch_and_add(counter, n)
#define AP_ADD_BYTES(sum, size_bytes)	 sum__add(sum, bytes_in_sums(size_bytes))
#define AP_ADD_STAT(set, which, n)	 stat__add_many(which, n)
#define AP_HAS_REGIONS(set)		 (config.regions && (set))
#define AP_ADD_IN_REGIONS(set, which, n) region_set__add(set, which, n)
#define AP_IS_SAMPLED			 config.sample
#define AP_ADD_ESTIMATE(estimate, weight, size_bytes)                                              \
	do {                                                                                       \
		if (config.sample)                                                                 \
			estimate__add(estimate, weight, size_bytes);                               \
	} while (0)
#define AP_SIGNIFICANT_BITS(value) significant_bits(value)
#include "count_rules_abi.h"

/* Returns the set of regions that are open at a call with @sp. */
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
		ap_site_counts__add(&of_set->functions[function], function, hit->size_bytes,
				    hit->pointer, hit->overflows);
	return 0;
}

/* Counts a call of the measured window in its set of open regions; sets @hit->regions. Regions have
 * no estimates, so a call that stands for others is not one of theirs. */
static __always_inline void regions__count(struct hit *hit)
{
	if (regions__are_active() && !hit->internal && !hit->weighed)
		regions__count_hit(hit);
}

#endif
