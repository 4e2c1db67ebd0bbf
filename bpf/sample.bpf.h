/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which calls are sampled when bytes are, and how many calls each sample stands for
 * (docs/sampling.md).
 */
#ifndef ALLOCPROF_SAMPLE_BPF_H
#define ALLOCPROF_SAMPLE_BPF_H

#include "maps.bpf.h"

/* 1 - 2^-@fraction, both in 1/2^32; @fraction is less than 1. By Taylor's series. */
static __always_inline __u64 sample__one_less_power(__u64 fraction)
{
	/* ln(2)^n / n!, from n = 6 down to 1. */
	__u64 sum = 661577;

	sum = 5726720 - (sum * fraction >> 32);
	sum = 41309550 - (sum * fraction >> 32);
	sum = 238388332 - (sum * fraction >> 32);
	sum = 1031764991 - (sum * fraction >> 32);
	sum = 2977044472ULL - (sum * fraction >> 32);
	return sum * fraction >> 32;
}

/*
 * The probability that at least one byte of the call is chosen, in 1/2^64; malloc(0) counts as one
 * byte. 0: certain. Exact to 1/10,000, which suffices, since the weight is computed from the same
 * number.
 */
static __always_inline __u64 sample__chance(__u64 size_bytes)
{
	__u64 bytes = size_bytes ?: 1, halvings, left;

	if (bytes >= config.sample_certain_bytes)
		return 0;
	/* log2 of 1 / (probability that no byte is chosen), in 1/2^32. */
	halvings = bytes * config.sample_halvings >> AP_SAMPLE_HALVINGS_SHIFT;
	if (halvings < 1 << 16)
		return bytes * config.sample_rate;
	/* Shifted by 31 bits and one more, since the power is 2^32 for a whole number of
	 * halvings. */
	left = (1ULL << 32) - sample__one_less_power(halvings & 0xffffffff);
	return -(left << 31 >> (halvings >> 32 & 63) << 1);
}

/*
 * The weight of a call with probability @chance that @draw (less than @chance) has chosen: 2^64 /
 * @chance, rounded down or up. It is rounded up for as many draws as make the sum over all 2^64
 * draws 2^64, so the mean is exact for every @chance.
 */
static __always_inline __u32 sample__weight(__u64 chance, __u64 draw)
{
	/* 2^64 = quotient * chance + remainder */
	__u64 quotient = -chance / chance + 1, remainder = -chance % chance;

	return quotient + (draw < remainder);
}

/* The number of calls that this one stands for; 0: it is not sampled. */
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

/* The weight, or the constant 1 without sampling, which the compiler folds. */
static __always_inline __u64 sample__times(__u32 weight)
{
	return config.sample ? weight : 1;
}

/* Saturates at AP_MAX_SUM. */
static __always_inline void sum__add(__u64 *sum, __u64 more)
{
	__u64 before = __sync_fetch_and_add(sum, more);

	if (before + more < before || before + more > AP_MAX_SUM)
		*(volatile __u64 *)sum = AP_MAX_SUM;
}

/* Adds a sampled call or block, which stands for @weight of @size_bytes each. */
static __always_inline void estimate__add(struct ap_estimate *estimate, __u32 weight,
					  __u64 size_bytes)
{
	__u64 others = weight - 1;

	__sync_fetch_and_add(&estimate->samples, 1);
	if (!others)
		return;
	/* Calls with a weight of 2 or more are smaller than config.sample_certain_bytes, so no
	 * product overflows. */
	sum__add(&estimate->variance, others * weight);
	sum__add(&estimate->bytes_variance,
		 (others * size_bytes >> config.sample_unit_shift) *
			 ((__u64)weight * size_bytes >> config.sample_unit_shift));
}

#endif
