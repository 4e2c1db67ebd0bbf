/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Decides which calls are sampled when sampling by bytes, and how many calls each sample stands
 * for (docs/sampling.md). Also has sums that saturate.
 */
#ifndef ALLOCPROF_SAMPLE_BPF_H
#define ALLOCPROF_SAMPLE_BPF_H

#include "kernel.h"
#include "maps.bpf.h"
#include "record_abi.h"
#include "sample_abi.h"

/* Adds to a sum, which saturates at AP_MAX_SUM. */
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

static __always_inline __u64 sample__chance(__u64 size_bytes)
{
	return ap_sample__chance(&config, size_bytes);
}

static __always_inline __u32 sample__weight(__u64 chance, __u64 draw)
{
	return ap_sample__weight(chance, draw);
}

/* Returns the number of calls that this one stands for; 0: it is not sampled. */
static __always_inline __u32 sample__draw(__u64 size_bytes)
{
	__u64 chance = sample__chance(size_bytes), draw;

	if (!chance)
		return 1;
	draw = bpf_get_prandom_u32();
	if (draw > chance >> 32)
		return 0;
	draw = draw << 32 | bpf_get_prandom_u32();
	return draw < chance ? sample__weight(chance, draw) : 0;
}

static __always_inline __u32 sample__told(__u64 bytes, __u64 size_bytes, __u32 draw)
{
	return ap_sample__told(bytes, size_bytes, draw);
}

/* Returns the weight or, without sampling, the constant 1, which the compiler folds. */
static __always_inline __u64 sample__times(__u32 weight)
{
	return config.sample ? weight : 1;
}

/* Adds a sampled call or block, which stands for @weight of @size_bytes each. */
static __always_inline void estimate__add(struct ap_estimate *estimate, __u32 weight,
					  __u64 size_bytes)
{
	__u64 others = weight - 1;

	__sync_fetch_and_add(&estimate->samples, 1);
	if (!others)
		return;
	/* Calls with a weight of 2 or more are smaller than config.sample_certain_bytes, or stand for
	 * AP_SAMPLE_MAX_TOLD bytes at the most, so no product overflows. */
	sum__add(&estimate->variance, others * weight);
	sum__add(&estimate->bytes_variance,
		 (others * size_bytes >> config.sample_unit_shift) *
			 ((__u64)weight * size_bytes >> config.sample_unit_shift));
}

#endif
