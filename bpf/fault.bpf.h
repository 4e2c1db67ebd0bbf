/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Lets programs handle page faults. A page of the stack may be absent: swapped out, being moved,
 * or marked by NUMA balancing. The programs at the probes of functions are sleepable where the
 * kernel allows it, and read such a page in. All else that they do is in an RCU read-side critical
 * section, as if they were not sleepable: when user space replaces a map inside a map, the kernel
 * waits for such sections alone.
 */
#ifndef ALLOCPROF_FAULT_BPF_H
#define ALLOCPROF_FAULT_BPF_H

#include "kernel.h"
#include "maps.bpf.h"
#include "wait_abi.h"

/* Functions of Linux 6.2. The linker of bpftool 7.1 cannot declare them, so user space puts their ids into the
 * instructions. */
static void (*const bpf_rcu_read_lock)(void) = (void *)AP_CALL_RCU_READ_LOCK;
static void (*const bpf_rcu_read_unlock)(void) = (void *)AP_CALL_RCU_READ_UNLOCK;

/* Begins the section in which the program may not fault. */
static __always_inline void faults__hold_off(void)
{
	if (config.may_fault)
		bpf_rcu_read_lock();
}

static __always_inline void faults__allow(void)
{
	if (config.may_fault)
		bpf_rcu_read_unlock();
}

/* Returns 1 if only the kernel decides how long a page fault at @address takes: not for a page of
 * a file, since the file system may be served by a user, and not where a user's program handles
 * page faults. Detaching the probes waits for the fault. */
int fault__is_bounded(__u64 address);

/* Reads a word of user memory. With @faults, which only programs in the section "sleepable" may
 * set, reads an absent page in if it can. Returns 0 or a negative errno. */
static __always_inline long word__read(__u64 *value, __u64 address, bool faults)
{
	long err = bpf_probe_read_user(value, sizeof(*value), (void *)address);

	if (!err || !faults || !config.may_fault || !fault__is_bounded(address))
		return err;
	faults__allow();
	err = bpf_copy_from_user(value, sizeof(*value), (void *)address);
	faults__hold_off();
	return err;
}

#endif
