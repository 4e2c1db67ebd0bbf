// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The program at the marks of regions (docs/regions.md). */
#include "arch.bpf.h"
#include "gate.bpf.h"
#include "kernel.h"
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

struct set_search {
	__u64 mask;
	__u32 number;
};

static long look_at_set(__u32 index, struct set_search *search)
{
	__u32 number = index + 1;

	if (number >= AP_MAX_REGION_SETS ||
	    !ap_region_mask__is(&regions.masks[number], search->mask))
		return 0;
	search->number = number;
	return 1;
}

/* Returns the number of the set @mask, and assigns one on first use. */
__noinline int set__number(__u64 mask)
{
	struct set_search search = { .mask = mask, .number = AP_NO_REGION_SET };

	if (!mask)
		return 0;
	bpf_loop(AP_MAX_REGION_SETS - 1, look_at_set, &search, 0);
	return search.number;
}

/* Zero, but unknown to the verifier, which would otherwise check a loop for each value of a
 * counter. */
static __always_inline __u32 some_zero(void)
{
	return LOAD(regions.zero);
}

__noinline int region_thread__update(struct ap_region_thread *thread)
{
	if (!thread)
		return 0;
	thread->set = set__number(ap_region_thread__settle(thread));
	return 0;
}

__noinline int region_thread__sweep(struct ap_region_thread *thread,
				    const struct ap_region_sweep *sweep)
{
	if (!thread || !sweep)
		return 0;
	return ap_region_thread__sweep(thread, sweep, some_zero());
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
	struct ap_region_sweep sweep = ap_region_sweep__at_begin(sp, ip, region);
	__u64 *begins = bpf_map_lookup_elem(&region_begins, &region);

	if (begins)
		__sync_fetch_and_add(begins, 1);
	if (!thread) {
		stat__add(AP_STAT_REGION_GAP + AP_REGION_GAP_THREADS);
		return 0;
	}
	sweep.alternate = is_alternate_stack(sp);
	region_thread__sweep(thread, &sweep);
	if (!ap_region_thread__open(thread, &sweep, mark))
		stat__add(AP_STAT_REGION_GAP + AP_REGION_GAP_DEPTH);
	region_thread__update(thread);
	return 0;
}

__noinline int region_thread__find(const struct ap_region_thread *thread, __u64 sp, __u32 region,
				   __u32 mark)
{
	return thread ? ap_region_thread__find(thread, sp, region, mark, some_zero()) : 0;
}

__noinline int region_thread__remove(struct ap_region_thread *thread,
				     const struct ap_region_sweep *sweep, __u32 at)
{
	if (thread && sweep)
		ap_region_thread__remove(thread, sweep, at, some_zero());
	return 0;
}

static __noinline int regions__end(__u64 sp, __u32 region, __u32 mark)
{
	__u64 id = bpf_get_current_pid_tgid();
	struct ap_region_thread *thread = bpf_map_lookup_elem(&region_threads, &id);
	struct ap_region_sweep sweep = ap_region_sweep__at_end(sp);

	if (!thread)
		return 0;
	sweep.alternate = is_alternate_stack(sp);
	region_thread__sweep(thread, &sweep);
	region_thread__remove(thread, &sweep, region_thread__find(thread, sp, region, mark));
	region_thread__update(thread);
	return 0;
}

/* The program at the marks. */
SEC("uprobe")
int region_event(struct pt_regs *ctx)
{
	__u64 cookie = bpf_get_attach_cookie(ctx);
	__u32 mark = cookie / AP_MAX_REGIONS, region = cookie % AP_MAX_REGIONS;

	kernel_stack__use(ctx);
	if (!LOAD(gate.running) || !process__current())
		return 0;
	if (ap_region_mark__begins(mark))
		regions__begin(arch__sp(ctx), arch__ip(ctx), region, mark);
	else if (mark != AP_REGION_READ)
		regions__end(arch__sp(ctx), region, mark);
	return 0;
}
