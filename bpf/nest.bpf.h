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
struct nests_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u64);
	__type(value, struct nest);
};

extern struct nests_map nests SEC(".maps");

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
 */
int nest__holds(__u64 sp, __u64 return_address, __u32 site, __u32 ends);

/* Notes the call. */
int nest__enter(__u64 sp, __u64 return_address, __u32 site);

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
