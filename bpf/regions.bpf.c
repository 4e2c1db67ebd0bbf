// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The program at the marks of regions (docs/regions.md). */
#include "arch.bpf.h"
#include "gate.bpf.h"
#include "process.bpf.h"
#include "regions.bpf.h"

struct ap_regions regions;

/* Number of begins of each region. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, AP_MAX_REGIONS);
	__type(key, __u32);
	__type(value, __u64);
} region_begins SEC(".maps");

/* Initial value of a thread's entry, which is too large for the BPF stack. */
struct ap_region_thread fresh_region_thread;

/* Functions that are not static are verified separately, so that the paths of one loop do not
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
