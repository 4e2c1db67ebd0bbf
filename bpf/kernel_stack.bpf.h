/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Since Linux 6.13 functions of a BPF program that need 64 bytes of stack or more have it in memory that the program
 * has once per processor. The kernel believes that no program of this type is preempted by itself. One at a uprobe is,
 * where the kernel is preemptible: two threads then write to the same stack, hits are lost or walks go wrong, and
 * pointers among what is overwritten have made the kernel fault.
 */
#ifndef ALLOCPROF_KERNEL_STACK_BPF_H
#define ALLOCPROF_KERNEL_STACK_BPF_H

#include "kernel.h"

/*
 * Each program at a uprobe begins with it. A program that contains a tail call has its stack on the thread's kernel
 * stack, as in older kernels: the verifier looks for tail calls before it removes code that is never executed, such as this.
 */
static __always_inline void kernel_stack__use(void *ctx)
{
	__u64 never = 0;

	barrier_var(never);
	if (never)
		bpf_tail_call(ctx, NULL, 0);
}

#endif
