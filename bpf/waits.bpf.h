/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Lets hits wait: for unwind tables or records from user space, for room in the ring buffer, or
 * for other threads to finish mapping memory. Programs cannot sleep there, so they spin in
 * bpf_loop(). wait_abi.h has the limits.
 */
#ifndef ALLOCPROF_WAITS_BPF_H
#define ALLOCPROF_WAITS_BPF_H

#include "abi.h"
#include "kernel.h"

extern struct ap_waits waits;

/* Number of iterations of bpf_loop() that takes longer than any wait may. */
#define WAIT_LOOKS (1 << 22)

/* Returns the start of the wait, for wait__end(); 0: the hit may not wait. */
static __always_inline __u64 wait__begin(void)
{
	if (LOAD(waits.left_ns) <= 0)
		return 0;
	if (__sync_fetch_and_add(&waits.n_waiting, 1) < waits.most)
		return bpf_ktime_get_ns();
	__sync_fetch_and_add(&waits.n_waiting, -1);
	return 0;
}

/* Returns how long the hit waited, at least 1 ns. A hit that was away for longer than @most_ns did
 * not wait for user space: the machine stood still, or another task ran. */
static __always_inline __u64 wait__end(__u64 start_ns, __u64 most_ns)
{
	__u64 waited_ns = bpf_ktime_get_ns() - start_ns;

	__sync_fetch_and_add(&waits.total_ns, waited_ns);
	__sync_fetch_and_add(&waits.count, 1);
	__sync_fetch_and_add(&waits.n_waiting, -1);
	if (waited_ns > most_ns)
		waited_ns = most_ns;
	__sync_fetch_and_add(&waits.left_ns, -waited_ns);
	return waited_ns ?: 1;
}

/* Calls @look, a callback of bpf_loop(), with @context until it returns 1. Sets *@until_ns, which
 * is part of @context, to @most_ns from now; @look must return 1 then. Returns how long it waited, as
 * wait__end() does, or 0 if the hit may not wait. */
static __always_inline __u64 wait__for(void *look, void *context, __u64 *until_ns, __u64 most_ns)
{
	__u64 start_ns = wait__begin();

	if (!start_ns)
		return 0;
	*until_ns = start_ns + most_ns;
	bpf_loop(WAIT_LOOKS, look, context, 0);
	return wait__end(start_ns, most_ns);
}

#endif
