/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Counts calls by site and by stack, decides which calls are recorded, and counts calls at probes
 * that are not at functions. */
#ifndef ALLOCPROF_RECORDING_BPF_H
#define ALLOCPROF_RECORDING_BPF_H

#include "arch.bpf.h"
#include "hit.bpf.h"
#include "maps.bpf.h"
#include "regions.bpf.h"
#include "sample.bpf.h"
#include "send.bpf.h"
#include "stack.bpf.h"
#include "within.bpf.h"

/* Counts a call that asks for more than any process can have. */
static __always_inline void hit__note_impossible(const struct hit *hit)
{
	/* An mremap that only moves a mapping has this flag set for another reason. */
	bool overflows = hit->overflows && hit->function != AP_MREMAP;

	if (ap_call__is_impossible(hit->function, hit->size_bytes, overflows))
		stat__add(AP_STAT_IMPOSSIBLE);
}

DECLARE_MAP(site_counts, PERCPU_ARRAY, AP_MAX_SITES, 0, __u32, struct ap_site_counts);

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
	/* With --live the call's record counts it. */
	if (!config.live)
		hit__note_impossible(hit);
}

static __always_inline void count__add(struct ap_count *count, const struct hit *hit)
{
	__u64 n = sample__times(hit->weight);

	__sync_fetch_and_add(&count->calls, n);
	sum__add(&count->size_bytes, n * bytes_in_sums(hit->size_bytes));
	if (config.sample)
		estimate__add(&count->estimate, hit->weight, hit->size_bytes);
}

/* Not inlined, so that its stack frame is not live during the walk. */
static __noinline __maybe_unused void count_stack(struct pt_regs *ctx, struct scratch *scratch,
						  const struct hit *hit, struct process *process)
{
	struct ap_count_key key = {
		.stack = scratch->record.stack,
		.process = process->id,
		.function = hit->function,
	};
	struct ap_count *count, fresh;
	__u32 zero = 0;
	void *current;

	thread_name__read(key.thread);
	hit__note_impossible(hit);
	if (end__needs_user_space(scratch->record.end)) {
		key.stack = 0;
		if (stack__dump(ctx, &key, scratch->record.end, hit))
			return;
		key.stack = scratch->record.stack;
	}
	current = bpf_map_lookup_elem(&counts, &zero);
	if (!current)
		return; /* never: the slot is filled at load and only ever replaced */
	count = bpf_map_lookup_elem(current, &key);
	if (count) {
		count__add(count, hit);
		return;
	}
	/* The frames are sent first: without them user space could not attribute the counter. */
	if (!stack__send(scratch)) {
		lose(AP_LOST_RING_FULL);
		return;
	}
	fresh = (struct ap_count){
		.calls = sample__times(hit->weight),
		.size_bytes = sample__times(hit->weight) * bytes_in_sums(hit->size_bytes),
	};
	if (config.sample)
		estimate__add(&fresh.estimate, hit->weight, hit->size_bytes);
	if (!bpf_map_update_elem(current, &key, &fresh, BPF_NOEXIST)) {
		count__note_insertion();
		return;
	}
	/* Another CPU has inserted the key first, or the map is full. */
	count = bpf_map_lookup_elem(current, &key);
	if (count) {
		count__add(count, hit);
	} else if (!count__send(&key, hit)) {
		lose(AP_LOST_COUNTS_FULL);
	}
}

/* Returns whether the hit is a call that is recorded. It is counted as an event only after its
 * walk, which may sleep: a cut relies on each event being attributed within moments. */
static __always_inline bool hit__is_event(const struct hit *hit)
{
	if (!hit->recorded)
		return false;
	if (hit->internal)
		stat__add(AP_STAT_INTERNAL);
	return !hit->internal;
}

/* Draws whether sampling chooses the call. */
static __always_inline bool hit__draw(struct hit *hit)
{
	if (!hit->weighed)
		hit->weight = hit->blocks == AP_ONLY_COUNTED ? 1 : sample__draw(hit->size_bytes);
	/* With --within the stack decides whether the call is an event. */
	if (!hit->weight && !config.within) {
		stat__add(AP_STAT_EVENTS);
		stat__add(AP_STAT_NOT_SAMPLED);
	}
	return hit->weight;
}

/* Reads the rest of the hit, whose return address is set. Returns whether it is a call that is
 * recorded and that sampling has chosen. */
static __always_inline bool hit__is_chosen(struct hit *hit, const struct ap_site *site,
					   struct pt_regs *ctx)
{
	hit__read(hit, site, ctx);
	return hit__is_event(hit) && hit__draw(hit);
}

/* Returns whether the hit is a call that is recorded; with sampling hit__is_chosen() has decided
 * that. */
static __always_inline bool hit__is_recorded(struct hit *hit, const struct ap_site *site,
					     struct pt_regs *ctx)
{
	if (config.sample)
		return true;
	hit__read(hit, site, ctx);
	return hit__is_event(hit);
}

/* Loses a call that found no scratch; whether --within would count it is unknown. */
static __always_inline void lose_unwalked(void)
{
	stat__add(AP_STAT_EVENTS);
	lose(AP_LOST_NO_SCRATCH);
}

/* Returns whether the walked call is counted now: it is not if the window was closed while the
 * walk slept. If its stack is incomplete, user space may have to find out whether it has a frame
 * of a --within function. Not inlined, so that its variables take no stack during a walk, for
 * which Linux 6.1 allows 512 bytes. */
static __noinline bool walked__counts(struct pt_regs *ctx, struct scratch *scratch,
				      const struct hit *hit, const struct process *process)
{
	enum verdict verdict = scratch__verdict(scratch);

	if (!gate__is_open(process))
		return false;
	if (!config.within) {
		stat__add(AP_STAT_EVENTS);
		return true;
	}
	if (verdict == VERDICT_INSIDE) {
		stat__add(AP_STAT_EVENTS);
		return true;
	}
	if (verdict == VERDICT_UNKNOWN && !send_undecided(ctx, scratch, hit, process))
		stat__add(AP_STAT_UNDECIDED);
	return false;
}

/*
 * Calls at sources other than functions: system calls that map memory, page faults, and USDT
 * probes. They are counted like calls, with the stack of the code at the system call, fault or
 * probe.
 */

/* Initialises @hit at @site as if the thread, which is in user space with @regs, called a function
 * that returns to @return_address. Returns false if the site is unknown. */
static __always_inline bool source__enter(struct hit *hit, __u32 index, const struct pt_regs *regs,
					  __u64 return_address)
{
	const struct ap_site *site = bpf_map_lookup_elem(&sites, &index);

	if (!site)
		return false;
	__builtin_memset(hit, 0, sizeof(*hit));
	hit->site = index;
	hit->function = site->function;
	hit->recorded = site->recorded;
	hit->blocks = site->blocks;
	hit->sp = arch__called_sp(arch__sp(regs));
	hit->fp = arch__fp(regs);
	hit->return_address = return_address;
	hit->in_caller = 1;
	hit->weight = 1;
	return true;
}

/* Returns whether the call, which has been read completely, is recorded and, with sampling,
 * chosen. */
static __always_inline bool source__is_chosen(struct hit *hit)
{
	return hit__is_event(hit) && (!config.sample || hit__draw(hit));
}

/* Counts the call by its stack. */
static __always_inline void source__record(struct pt_regs *regs, struct process *process,
					   struct hit *hit)
{
	__u64 thread = bpf_get_current_pid_tgid();
	struct scratch *scratch;

	process__refresh(process);
	if (!gate__is_open(process) || !source__is_chosen(hit))
		return;
	scratch = scratch__claim(thread);
	if (!scratch) {
		lose_unwalked();
		return;
	}
	scratch__enter(scratch, thread, process);
	stack__read(scratch, hit, false);
	stack__walk(scratch, process, hit, false);
	if (walked__counts(regs, scratch, hit, process))
		count_stack(regs, scratch, hit, process);
	scratch__release(scratch);
}

#endif
