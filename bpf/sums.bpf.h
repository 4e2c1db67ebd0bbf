/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ALLOCPROF_SUMS_BPF_H
#define ALLOCPROF_SUMS_BPF_H

#include "kernel.h"
#include "record_abi.h"

/* Saturates at AP_MAX_SUM. */
static __always_inline void sum__add(__u64 *sum, __u64 more)
{
	__u64 before = __sync_fetch_and_add(sum, more);

	if (before + more < before || before + more > AP_MAX_SUM)
		*(volatile __u64 *)sum = AP_MAX_SUM;
}

/* Returns the bytes that a request for @size_bytes adds to sums. */
static __always_inline __u64 bytes_in_sums(__u64 size_bytes)
{
	return size_bytes < AP_IMPOSSIBLE_BYTES ? size_bytes : 0;
}

#endif
