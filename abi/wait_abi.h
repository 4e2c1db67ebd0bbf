/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Limits and counters of the waits of hits: for user space, for other threads, and for pages. */
#ifndef ALLOCPROF_WAIT_ABI_H
#define ALLOCPROF_WAIT_ABI_H

#include <linux/types.h>

/*
 * A hit spins in the BPF program for up to AP_WAIT_NS while user space compiles the unwind table
 * that it needs: the target gets slower, but no stack is truncated or sent as a snapshot. With
 * --live a hit that needs a new record waits as long when few are ready. A hit waits for up to
 * AP_LONG_WAIT_NS where its event would be lost otherwise: bpf_find_vma() fails with -EBUSY since
 * another thread maps memory, or the stack is new and the ring buffer is full. If bpf_find_vma()
 * fails so before a page is read in, AP_WAIT_NS is the limit. These waits are limited since
 * programs at tracepoints may run with preemption disabled. All waits share a budget of
 * AP_WAITS_BUDGET_NS, which user space refills while it makes progress, so that a stopped or
 * starved recorder delays the target no longer. Reading and compiling the largest libraries from a
 * slow disk takes some seconds.
 *
 * A recorder that gets little of the processor makes progress, but its tables come too late. From
 * one exec to the next a process waits for tables for AP_WAITS_BUDGET_NS in all. Each
 * AP_VAIN_WAITS_NS that it has waited in vain halves its next waits for tables, AP_MAX_WAIT_SHIFT
 * times at most, as long as there is plenty of room to send stacks for user space to unwind. A
 * wait for a table that comes in time makes up for as much time that was waited in vain.
 */
#define AP_WAIT_NS	   10000000
#define AP_LONG_WAIT_NS	   100000000
#define AP_WAITS_BUDGET_NS 5000000000
#define AP_VAIN_WAITS_NS   50000000
#define AP_MAX_WAIT_SHIFT  6

struct ap_waits {
	__s64 left_ns;	 /* what remains of the budget; user space refills it */
	__u32 n_waiting; /* hits waiting now */
	/* Largest allowed n_waiting, since each hit that waits holds a scratch slot; 0: no hit may
	 * wait. */
	__u32 most;
	__u32 module;	  /* module whose table was awaited last */
	__u32 n_faulting; /* hits waiting for a page now */
	/* Largest allowed n_faulting, since each hit that waits holds a scratch slot. */
	__u32 most_faulting;
	__u32 pad;	/* 0 */
	__u64 count;	/* number of waits so far */
	__u64 total_ns; /* total time of these waits */
};

/* These numbers stand for the ids of kernel functions in call instructions, until user space
 * replaces them (kernel_types.h). */
#define AP_CALL_RCU_READ_LOCK	0x61700001
#define AP_CALL_RCU_READ_UNLOCK 0x61700002

#endif
