/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A return probe puts the address of a trampoline where the return address was. What was there is
 * found with the kernel's own list of the thread's return probes, whoever set them.
 */
#ifndef ALLOCPROF_TRAMPOLINE_BPF_H
#define ALLOCPROF_TRAMPOLINE_BPF_H

#include "kernel.h"

/* Calls of one thread with return probes that are looked through; the kernel has 64 at the most. */
#define TRAMPOLINE_MAX_CALLS 64

/* Where the trampoline is in this process: the first of the slots that probes share. 0 where it has
 * none yet. */
static __always_inline __u64 trampoline__address(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct xol_area *area = task->mm->uprobes_state.xol_area;

	return area ? area->vaddr : 0;
}

/* The return address that was at @slot of the stack before a probe took its place, or 0. Not static, so that
 * the verifier goes through it once. */
__noinline __u64 trampoline__real(__u64 slot)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct return_instance *instance = task->utask->return_instances;

	for (int i = 0; i < TRAMPOLINE_MAX_CALLS && instance; i++) {
		if (instance->stack == slot)
			return instance->orig_ret_vaddr;
		instance = instance->next;
	}
	return 0;
}

#endif
