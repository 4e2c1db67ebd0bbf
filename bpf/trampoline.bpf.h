/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Finds original return addresses: a return probe replaces the return address on the stack by the
 * address of a trampoline. The original is in the kernel's list of the thread's return probes, of
 * allocprof and of other tracers.
 */
#ifndef ALLOCPROF_TRAMPOLINE_BPF_H
#define ALLOCPROF_TRAMPOLINE_BPF_H

#include "abi.h"
#include "kernel.h"

/* Returns the address of the trampoline in this process, which is the first slot of the XOL area;
 * 0 if it has none yet. Global, so that the verifier checks it once. */
__u64 trampoline__address(void);

/* Returns the original return address at stack address @slot, or 0. Global for the same reason. */
__u64 trampoline__real(__u64 slot);

/* The stack of a dump, whose last page may exceed config.stack_dump. */
struct stack_copy {
	char bytes[AP_MAX_STACK_DUMP + 4096];
};

/* Restores the original return addresses in @copy, which has the @n bytes of user stack from @sp
 * on. Returns 0. Global for the same reason. */
int trampoline__restore(struct stack_copy *copy, __u64 sp, __u32 n);

#endif
