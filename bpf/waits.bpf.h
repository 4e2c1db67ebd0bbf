/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Hits that wait: for what user space is making, an unwind table or room for records, and for other threads to have
 * mapped their memory. BPF programs cannot sleep, so they spin, with bpf_loop(); where the kernel is preemptible
 * others run meanwhile. abi.h has the bounds.
 */
#ifndef ALLOCPROF_WAITS_BPF_H
#define ALLOCPROF_WAITS_BPF_H

#include "abi.h"
#include "kernel.h"

struct ap_waits waits;

/* Looks by bpf_loop() that take longer than any wait may. */
#define WAIT_LOOKS (1 << 22)

/* When the wait begins, to be given to wait__end(); 0: the hit may not wait. */
static __always_inline __u64 wait__begin(void)
{
	if (*(volatile __s64 *)&waits.left_ns <= 0)
		return 0;
	if (__sync_fetch_and_add(&waits.n_waiting, 1) < waits.most)
		return bpf_ktime_get_ns();
	__sync_fetch_and_add(&waits.n_waiting, -1);
	return 0;
}

static __always_inline void wait__end(__u64 start_ns)
{
	__u64 waited_ns = bpf_ktime_get_ns() - start_ns;

	__sync_fetch_and_add(&waits.left_ns, -waited_ns);
	__sync_fetch_and_add(&waits.total_ns, waited_ns);
	__sync_fetch_and_add(&waits.count, 1);
	__sync_fetch_and_add(&waits.n_waiting, -1);
}

/* Calls @look, which is bpf_loop()'s, with @context until it returns 1. *@until_ns, a part of @context, becomes the
 * time at which it has to, @most_ns from now. False where the hit may not wait. */
static __always_inline bool wait__for(void *look, void *context, __u64 *until_ns, __u64 most_ns)
{
	__u64 start_ns = wait__begin();

	if (!start_ns)
		return false;
	*until_ns = start_ns + most_ns;
	bpf_loop(WAIT_LOOKS, look, context, 0);
	wait__end(start_ns);
	return true;
}

#endif
