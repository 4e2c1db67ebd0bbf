// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The maps, settings and functions that several objects use. This object is linked first: if a map
 * is declared in an object that is linked before the one that defines it, the linker of libbpf 1.1
 * and 1.5 loses the map's place ("map relo failed to find map").
 */
/* This file does not call all functions of the headers. */
#pragma clang diagnostic ignored "-Wunused-function"

#include "blocks.bpf.h"
#include "faults.bpf.h"
#include "gate.bpf.h"
#include "hit.bpf.h"
#include "maps.bpf.h"
#include "process.bpf.h"
#include "python.bpf.h"
#include "recording.bpf.h"
#include "regions.bpf.h"
#include "scratch.bpf.h"
#include "send.bpf.h"
#include "waits.bpf.h"
#include "walk.bpf.h"

DEFINE_MAP(ring);
DEFINE_MAP(stats);

DEFINE_MAP(sites);
DEFINE_MAP(internal_returns);

DEFINE_MAP(processes);

DEFINE_MAP(within_ranges);

DEFINE_MAP(pythons);

DEFINE_MAP(tail_calls);
DEFINE_MAP(jumps);

DEFINE_MAP(nests);

DEFINE_MAP(site_counts);

DEFINE_MAP(stacks_sent);

/* Programs count into one map while user space drains the other, so that no counter changes while
 * it is read and deleted. The maps have sizes in place of types, as in struct counts_map: Linux
 * 6.1 takes a map with types for another kind. They are not preallocated, which would take a third
 * of the start. If the kernel has no memory at once, the call is sent through the ring buffer. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__uint(key_size, sizeof(struct ap_count_key));
	__uint(value_size, sizeof(struct ap_count));
} counts_a SEC(".maps"), counts_b SEC(".maps");

/* User space puts the first map in: the linker would lose the initial value of a map of maps that
 * other objects use. */
struct counts_maps counts SEC(".maps");

DEFINE_MAP(unwind_chunks);
DEFINE_MAP(unwind_tables);
DEFINE_MAP(unwind_slices);
DEFINE_MAP(unwind_rules);

DEFINE_MAP(scratches);

DEFINE_MAP(records);
DEFINE_MAP(histograms);
DEFINE_MAP(index_tables);
struct free_map free_records SEC(".maps"), free_histograms SEC(".maps");

DEFINE_MAP(live_tables);
DEFINE_MAP(threads);

/* Programs count into one map while user space drains the other, as with the counts. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 131072);
	__uint(key_size, sizeof(struct ap_lifetime_key));
	__uint(value_size, sizeof(struct ap_lifetime));
} lifetimes_a SEC(".maps"), lifetimes_b SEC(".maps");

struct lifetimes_maps lifetimes SEC(".maps");

DEFINE_MAP(fault_threads);

DEFINE_MAP(region_threads);
DEFINE_MAP(region_counts);

/* Global, so that the verifier does not continue with each case in the caller. */
__noinline __u64 nth_of(__u64 first, __u64 second, __u64 third, __u64 fourth, __u32 n)
{
	switch (n) {
	case 1:
		return first;
	case 2:
		return second;
	case 3:
		return third;
	case 4:
		return fourth;
	}
	return 0;
}

/* How much of the frame of a noted call is searched for its return address. */
#define NEST_WORDS 256

/* State of the bpf_loop() over these words. */
struct nest_search {
	__u64 at, end, return_address, trampoline, mask;
	__u32 found;
};

static long look_at_saved(__u32 index, struct nest_search *search)
{
	__u64 word = 0;

	search->at -= sizeof(word);
	if (search->at < search->end)
		return 1;
	bpf_probe_read_user(&word, sizeof(word), (void *)search->at);
	word = arch__code_address(word, search->mask);
	search->found = word && (word == search->return_address || word == search->trampoline);
	return search->found;
}

/* Returns whether the noted function's frame, which is above @sp, has its return address. Where the
 * function saves it is not known; if so much of the stack does not have it, the frame is large. */
static __noinline __maybe_unused int nest__saved(const struct nest *nest, __u64 sp)
{
	struct nest_search search = {
		.at = nest->sp,
		.end = sp,
		.return_address = nest->return_address,
		.trampoline = trampoline__address(),
		.mask = arch__code_mask(),
	};

	bpf_loop(NEST_WORDS, look_at_saved, &search, 0);
	return search.found || search.at >= search.end + sizeof(__u64);
}

__noinline int nest__holds(__u64 sp, __u64 return_address, __u32 site, __u32 ends)
{
	__u64 thread = bpf_get_current_pid_tgid(), now = 0;
	struct nest *nest = bpf_map_lookup_elem(&nests, &thread);

	if (!nest || nest->sp < sp ||
	    sp__is_on_signal_stack(nest->sp) != sp__is_on_signal_stack(sp))
		return 0;
	if (nest->sp == sp) {
		if (nest->return_address != return_address || nest->site == site)
			return 0;
		if (ends)
			bpf_map_delete_elem(&nests, &thread);
		return 1;
	}
	if (ARCH_HAS_LINK)
		return nest__saved(nest, sp);
	if (bpf_probe_read_user(&now, sizeof(now), (void *)arch__return_slot(nest->sp))) {
		/* The note is deleted, so that this counts once, since the note may belong to a
		 * stack that is gone. */
		stat__add(AP_STAT_CALLS_UNREAD);
		bpf_map_delete_elem(&nests, &thread);
		return 0;
	}
	return now && (now == nest->return_address || now == trampoline__address());
}

__noinline int nest__enter(__u64 sp, __u64 return_address, __u32 site)
{
	__u64 thread = bpf_get_current_pid_tgid();
	struct nest nest = { .sp = sp, .return_address = return_address, .site = site };

	if (bpf_map_update_elem(&nests, &thread, &nest, BPF_ANY))
		stat__add(AP_STAT_NOT_NESTED);
	return 0;
}

/* Global, so that the verifier checks it once; mm__has_vdso_at() says what loads of pointers cost
 * the verifier. */
__noinline __u32 mm__seq(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct mm_struct___6_4 *mm_6_4 = (void *)task->mm;
	struct mm_struct___6_13 *mm_6_13 = (void *)mm_6_4;

	if (bpf_core_field_exists(mm_6_13->mm_lock_seq.sequence))
		return mm_6_13->mm_lock_seq.sequence;
	if (bpf_core_field_exists(mm_6_4->mm_lock_seq))
		return mm_6_4->mm_lock_seq;
	return 0;
}

__noinline int process__is_callers(void)
{
	return task__is_callers(bpf_get_current_task_btf());
}

static long ring__look(__u32 index, __u64 *until_ns)
{
	return bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) < config.wait_below_bytes ||
	       bpf_ktime_get_ns() >= *until_ns;
}

__noinline int ring__await(void)
{
	__u64 until_ns;

	if (config.wait_below_bytes)
		wait__for(ring__look, &until_ns, &until_ns, AP_LONG_WAIT_NS);
	return 0;
}

/* Global, so that the verifier does not continue with each path in the caller. */
__noinline int significant_bits(__u64 value)
{
	int n = 0;

	for (int step = 32; step; step >>= 1) {
		if (value >> step) {
			value >>= step;
			n += step;
		}
	}
	return n + (value != 0);
}

/* User space stores these before load; tests/twin has its own. */
#ifndef config
const volatile struct ap_config config = {};
#endif

char LICENSE[] SEC("license") = "Dual BSD/GPL";
