/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which calls are looked at when bytes are sampled, and how many each of them stands for
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
 * The chance that one of the bytes of a call is chosen, in 1/2^64: that of @size_bytes, or of one byte
 * where none was asked for. 0: certain. Good to a part in ten thousand, and need not be better: what a call
 * stands for is made from the very number.
 */
static __always_inline __u64 sample__chance(__u64 size_bytes)
{
	__u64 bytes = size_bytes ?: 1, halvings, left;

	if (bytes >= config.sample_certain_bytes)
		return 0;
	/* How often the chance of no byte being chosen is halved, in 1/2^32. */
	halvings = bytes * config.sample_halvings >> AP_SAMPLE_HALVINGS_SHIFT;
	if (halvings < 1 << 16)
		return bytes * config.sample_rate;
	/* By 31 bits and one more, since what is halved to nothing but whole times is 2^32. */
	left = (1ULL << 32) - sample__one_less_power(halvings & 0xffffffff);
	return -(left << 31 >> (halvings >> 32 & 63) << 1);
}

/*
 * What a call whose chance is @chance stands for when @draw, which is less than it, has chosen it: 2^64 / @chance,
 * rounded down or up. Up for as many of the draws as makes the mean exact, so the sum over all 2^64 draws is
 * 2^64, whatever the chance is.
 */
static __always_inline __u32 sample__weight(__u64 chance, __u64 draw)
{
	/* 2^64 = quotient * chance + remainder */
	__u64 quotient = -chance / chance + 1, remainder = -chance % chance;

	return quotient + (draw < remainder);
}

/* How many calls this one stands for; 0: it is passed by. */
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

/* What one of @weight counts as. A constant without sampling, so that it costs nothing then. */
static __always_inline __u64 sample__times(__u32 weight)
{
	return config.sample ? weight : 1;
}

/* Sums stop at AP_MAX_SUM. */
static __always_inline void sum__add(__u64 *sum, __u64 more)
{
	__u64 before = __sync_fetch_and_add(sum, more);

	if (before + more < before || before + more > AP_MAX_SUM)
		*(volatile __u64 *)sum = AP_MAX_SUM;
}

/* A sampled call or block, @weight of @size_bytes each, counts into @estimate. */
static __always_inline void estimate__add(struct ap_estimate *estimate, __u32 weight,
					  __u64 size_bytes)
{
	__u64 others = weight - 1;

	__sync_fetch_and_add(&estimate->samples, 1);
	if (!others)
		return;
	/* A weight of 2 or more has less than config.sample_certain_bytes: no product overflows. */
	sum__add(&estimate->variance, others * weight);
	sum__add(&estimate->bytes_variance,
		 (others * size_bytes >> config.sample_unit_shift) *
			 ((__u64)weight * size_bytes >> config.sample_unit_shift));
}

#endif
