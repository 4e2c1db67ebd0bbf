/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Calls of AP_NESTING_OUTERMOST sources, beneath which no other allocator call counts. A thread has
 * a note here from the entry of such a function to its return.
 */
#ifndef ALLOCPROF_NEST_BPF_H
#define ALLOCPROF_NEST_BPF_H

#include "arch.bpf.h"
#include "maps.bpf.h"
#include "trampoline.bpf.h"

struct nest {
	__u64 sp; /* at the entry, where it points to the return address */
	__u64 return_address;
	__u32 site;
	__u32 pad; /* 0 */
};

/* By thread; preallocated like tail_calls. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u64);
	__type(value, struct nest);
} nests SEC(".maps");

/* Whether @sp is on the thread's alternate signal stack (sigaltstack(2)). */
static __always_inline bool sp__is_on_signal_stack(__u64 sp)
{
	const struct task_struct *task = bpf_get_current_task_btf();

	return sp - task->sas_ss_sp < task->sas_ss_size;
}

/*
 * Returns 1 if the hit is beneath the call that its thread has a note of. Since a longjmp leaves
 * notes behind, the stack is read: while the call is under way, its return address, or a return
 * probe's trampoline, is still there. A function that the call tail-called has the same SP. If that
 * function @ends the call, as malloc does, it returns in its place, and the note is deleted.
 * Global, so that the verifier checks it once.
 */
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
	bpf_probe_read_user(&now, sizeof(now), (void *)arch__return_slot(nest->sp));
	return now && (now == nest->return_address || now == trampoline__address());
}

/* Notes the call. */
__noinline int nest__enter(__u64 sp, __u64 return_address, __u32 site)
{
	__u64 thread = bpf_get_current_pid_tgid();
	struct nest nest = { .sp = sp, .return_address = return_address, .site = site };

	if (bpf_map_update_elem(&nests, &thread, &nest, BPF_ANY))
		stat__add(AP_STAT_NOT_NESTED);
	return 0;
}

/* A function returns; @sp is SP after the return. */
static __always_inline void nest__leave(__u64 sp)
{
	__u64 thread = bpf_get_current_pid_tgid();
	struct nest *nest = bpf_map_lookup_elem(&nests, &thread);

	if (nest && arch__caller_sp(nest->sp) <= sp &&
	    sp__is_on_signal_stack(nest->sp) == sp__is_on_signal_stack(sp))
		bpf_map_delete_elem(&nests, &thread);
}

#endif
