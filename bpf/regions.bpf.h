/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Regions that a program marks (include/allocprof.h, docs/regions.md): which regions a thread has
 * open, and counters by set of open regions. A region's statistics are the sums over the sets that
 * contain it.
 */
#ifndef ALLOCPROF_REGIONS_BPF_H
#define ALLOCPROF_REGIONS_BPF_H

#include "arch.bpf.h"
#include "gate.bpf.h"
#include "hit.bpf.h"
#include "maps.bpf.h"
#include "process.bpf.h"

struct ap_regions regions;

_Static_assert(AP_MAX_REGION_SETS <= 256, "struct hit has a byte for it");

/* By thread. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u64);
	__type(value, struct ap_region_thread);
} region_threads SEC(".maps");

/* Initial value of a thread's entry, which is too large for the BPF stack. */
struct ap_region_thread fresh_region_thread;

/* Number of begins of each region. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, AP_MAX_REGIONS);
	__type(key, __u32);
	__type(value, __u64);
} region_begins SEC(".maps");

/* By set and function. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, AP_MAX_REGION_SETS *AP_FUNCTIONS);
	__type(key, __u32);
	__type(value, struct ap_site_counts);
} region_counts SEC(".maps");

/* With live, by set and enum ap_stat: results of calls, and freed blocks. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, AP_MAX_REGION_SETS *AP_STATS);
	__type(key, __u32);
	__type(value, __u64);
} region_stats SEC(".maps");

static __always_inline bool regions__are_active(void)
{
	return config.regions && LOAD(regions.active);
}

/* Functions that are not static here are verified separately, so that the paths of one loop do not
 * multiply with those of the next. */

/* The number of a set; assigns a new one on first use. */
__noinline int set__number(__u64 mask)
{
	if (!mask)
		return 0;
	for (int i = 1; i < AP_MAX_REGION_SETS; i++) {
		__u64 there = LOAD(regions.masks[i]);

		if (!there)
			there = __sync_val_compare_and_swap(&regions.masks[i], 0, mask);
		if (!there || there == mask)
			return i;
	}
	return (int)AP_NO_REGION_SET;
}

/* Zero, but unknown to the verifier, which would otherwise check a loop for each value of a
 * counter. */
static __always_inline __u32 some_zero(void)
{
	return LOAD(regions.zero);
}

/* The alternate signal stack may lie above all frames of the thread, and below what the handler
 * interrupted. */
static __always_inline bool is_alternate_stack(__u64 sp)
{
	struct task_struct *task = bpf_get_current_task_btf();

	return task->sas_ss_size && sp - task->sas_ss_sp <= task->sas_ss_size;
}

/* Where a thread is, to find out which of its open regions are over. */
struct sweep {
	__u64 floor;  /* frames below it have returned */
	__u64 sp, ip; /* of a begin mark */
	__u32 region; /* region that begins, or AP_MAX_REGIONS */
	__u32 alternate;
};

static __always_inline bool open__is_gone(const struct ap_open_region *open,
					  const struct sweep *sweep)
{
	if (open->alternate != sweep->alternate)
		return open->alternate && open->scoped;
	if (open->scoped && open->sp < sweep->floor)
		return true;
	/* The region begins again in the same frame and place, or in a frame that has returned: it
	 * was left. Recursion has another frame or, inlined, another place. */
	return open->region == sweep->region &&
	       (open->sp < sweep->sp || (open->sp == sweep->sp && open->ip == sweep->ip));
}

/* Recomputes floor and set after a change of the open regions. */
__noinline int region_thread__update(struct ap_region_thread *thread)
{
	__u64 mask = 0, floor = ~0ULL;

	if (!thread)
		return 0;
	for (int i = 0; i < AP_MAX_OPEN_REGIONS; i++) {
		const struct ap_open_region *open = &thread->open[i];

		if (i >= thread->n)
			break;
		mask |= 1ULL << (open->region & (AP_MAX_REGIONS - 1));
		if (open->scoped && open->sp < floor)
			floor = open->sp;
	}
	thread->floor = floor;
	thread->set = set__number(mask);
	return 0;
}

/* Removes open regions that were left without a mark; returns 1 if there were any. */
__noinline int region_thread__sweep(struct ap_region_thread *thread, const struct sweep *sweep)
{
	__u32 kept = some_zero();

	if (!thread || !sweep)
		return 0;
	for (int i = 0; i < AP_MAX_OPEN_REGIONS; i++) {
		if (i >= thread->n)
			break;
		if (open__is_gone(&thread->open[i], sweep))
			continue;
		thread->open[kept & (AP_MAX_OPEN_REGIONS - 1)] = thread->open[i];
		kept++;
	}
	if (kept == thread->n)
		return 0;
	thread->n = kept;
	return 1;
}

/* The set of regions that are open at a call with @sp. */
static __noinline __u32 regions__set(__u64 sp)
{
	__u64 id = bpf_get_current_pid_tgid();
	struct ap_region_thread *thread = bpf_map_lookup_elem(&region_threads, &id);
	struct sweep sweep = { .floor = sp + 1, .region = AP_MAX_REGIONS };

	if (!thread || !thread->n)
		return 0;
	/* The call's own frame lies below the frames of all open regions. */
	if (sp >= thread->floor) {
		sweep.alternate = is_alternate_stack(sp);
		if (region_thread__sweep(thread, &sweep))
			region_thread__update(thread);
	}
	return thread->set;
}

static __always_inline struct ap_region_thread *region_thread__get(void)
{
	__u64 id = bpf_get_current_pid_tgid();
	struct ap_region_thread *thread = bpf_map_lookup_elem(&region_threads, &id);

	if (thread)
		return thread;
	bpf_map_update_elem(&region_threads, &id, &fresh_region_thread, BPF_NOEXIST);
	return bpf_map_lookup_elem(&region_threads, &id);
}

static __noinline int regions__begin(__u64 sp, __u64 ip, __u32 region, __u32 mark)
{
	struct ap_region_thread *thread = region_thread__get();
	struct sweep sweep = { .floor = sp, .sp = sp, .ip = ip, .region = region };
	__u64 *begins = bpf_map_lookup_elem(&region_begins, &region);
	struct ap_open_region *open;

	if (begins)
		__sync_fetch_and_add(begins, 1);
	if (!thread) {
		stat__add(AP_STAT_REGION_GAP + AP_REGION_GAP_THREADS);
		return 0;
	}
	sweep.alternate = is_alternate_stack(sp);
	region_thread__sweep(thread, &sweep);
	if (thread->n < AP_MAX_OPEN_REGIONS) {
		open = &thread->open[thread->n & (AP_MAX_OPEN_REGIONS - 1)];
		open->sp = sp;
		open->ip = ip;
		open->region = region;
		open->scoped = mark == AP_REGION_ENTER;
		open->alternate = sweep.alternate;
		open->pad = 0;
		thread->n++;
	} else {
		stat__add(AP_STAT_REGION_GAP + AP_REGION_GAP_DEPTH);
	}
	region_thread__update(thread);
	return 0;
}

/* Index of the open region that the mark ends: the last one whose frame still exists, or else the
 * last one. */
__noinline int region_thread__find(const struct ap_region_thread *thread, __u64 sp, __u32 region,
				   __u32 mark)
{
	__u32 zero = some_zero(), found = zero + AP_MAX_OPEN_REGIONS;
	bool is_there = false;

	if (!thread)
		return 0;
	for (int i = 0; i < AP_MAX_OPEN_REGIONS; i++) {
		const struct ap_open_region *open = &thread->open[i];

		if (i >= thread->n)
			break;
		if (mark == AP_REGION_LEAVE ? !open->scoped : open->region != region)
			continue;
		if (is_there && open->sp < sp)
			continue;
		found = zero + i;
		is_there = open->sp >= sp;
	}
	return found;
}

/* Removes the region at @at, and those begun inside of it by frames that have returned. */
__noinline int region_thread__remove(struct ap_region_thread *thread, const struct sweep *sweep,
				     __u32 at)
{
	__u32 kept = some_zero();

	if (!thread || !sweep)
		return 0;
	for (int i = 0; i < AP_MAX_OPEN_REGIONS; i++) {
		const struct ap_open_region *open = &thread->open[i];

		if (i >= thread->n)
			break;
		if (i == at ||
		    (i > at && open->sp < sweep->floor && open->alternate == sweep->alternate))
			continue;
		thread->open[kept & (AP_MAX_OPEN_REGIONS - 1)] = *open;
		kept++;
	}
	thread->n = kept;
	return 0;
}

static __noinline int regions__end(__u64 sp, __u32 region, __u32 mark)
{
	__u64 id = bpf_get_current_pid_tgid();
	struct ap_region_thread *thread = bpf_map_lookup_elem(&region_threads, &id);
	struct sweep sweep = { .floor = sp, .region = AP_MAX_REGIONS };

	if (!thread)
		return 0;
	sweep.alternate = is_alternate_stack(sp);
	region_thread__sweep(thread, &sweep);
	region_thread__remove(thread, &sweep, region_thread__find(thread, sp, region, mark));
	region_thread__update(thread);
	return 0;
}

/* At the marks. */
SEC("uprobe")
int region_event(struct pt_regs *ctx)
{
	__u64 cookie = bpf_get_attach_cookie(ctx);
	__u32 mark = cookie / AP_MAX_REGIONS, region = cookie % AP_MAX_REGIONS;

	if (!LOAD(gate.running) || !process__current())
		return 0;
	if (mark == AP_REGION_BEGIN || mark == AP_REGION_ENTER)
		regions__begin(arch__sp(ctx), arch__ip(ctx), region, mark);
	else
		regions__end(arch__sp(ctx), region, mark);
	return 0;
}

/* Declared in process.bpf.h. A forked process continues with its copy of the frames. */
static __noinline int regions__fork(__u64 parent, __u64 child)
{
	const struct ap_region_thread *thread = bpf_map_lookup_elem(&region_threads, &parent);

	if (thread && thread->n && bpf_map_update_elem(&region_threads, &child, thread, BPF_ANY))
		stat__add(AP_STAT_REGION_GAP + AP_REGION_GAP_THREADS);
	return 0;
}

static __always_inline void regions__end_thread(__u64 id)
{
	if (regions__are_active())
		bpf_map_delete_elem(&region_threads, &id);
}

static __always_inline void counts__add(struct ap_site_counts *counts, const struct hit *hit)
{
	__sync_fetch_and_add(&counts->calls, 1);
	if (AP_FREEING >> hit->function & 1) {
		if (!hit->pointer)
			__sync_fetch_and_add(&counts->null, 1);
		return;
	}
	__sync_fetch_and_add(&counts->size_bytes, hit->size_bytes);
	if (AP_REALLOCATING >> hit->function & 1) {
		if (!hit->pointer) {
			__sync_fetch_and_add(&counts->fresh, 1);
			__sync_fetch_and_add(&counts->fresh_size_bytes, hit->size_bytes);
		} else if (!hit->size_bytes && !hit->overflows) {
			__sync_fetch_and_add(&counts->released, 1);
		}
	}
}

static __noinline int regions__count_hit(struct hit *hit)
{
	struct ap_site_counts *counts;
	__u32 set, at;

	set = regions__set(hit->sp);
	if (!set)
		return 0;
	if (set == AP_NO_REGION_SET) {
		stat__add(AP_STAT_REGION_GAP + AP_REGION_GAP_SETS);
		return 0;
	}
	hit->regions = set;
	at = set * AP_FUNCTIONS + hit->function;
	counts = bpf_map_lookup_elem(&region_counts, &at);
	if (counts)
		counts__add(counts, hit);
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
	__u32 at = set * AP_STATS + which;
	__u64 *value = bpf_map_lookup_elem(&region_stats, &at);

	if (value)
		__sync_fetch_and_add(value, n);
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
