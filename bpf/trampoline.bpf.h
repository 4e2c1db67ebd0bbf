/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A return probe replaces the return address on the stack by the address of a trampoline. The
 * original is in the kernel's list of the thread's return probes, of allocprof and of other
 * tracers.
 */
#ifndef ALLOCPROF_TRAMPOLINE_BPF_H
#define ALLOCPROF_TRAMPOLINE_BPF_H

#include "kernel.h"

/* Maximum number of the thread's probed calls to search; the kernel allows 64. */
#define TRAMPOLINE_MAX_CALLS 64

/* Address of the trampoline in this process, the first slot of the XOL area. 0 if it has none
 * yet. Global, so that the verifier checks it once. */
__noinline __u64 trampoline__address(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct xol_area *area = task->mm->uprobes_state.xol_area;

	return area ? area->vaddr : 0;
}

/* The original return address at stack address @slot, or 0. Global, so that the verifier checks it
 * once. */
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
