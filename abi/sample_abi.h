/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sampling: the probability that a call is chosen, and how many calls it stands for
 * (docs/sampling.md). */
#ifndef ALLOCPROF_SAMPLE_ABI_H
#define ALLOCPROF_SAMPLE_ABI_H

#include "abi.h"

/* Returns 1 - 2^-@fraction by Taylor's series. Both are in units of 1/2^32, and @fraction is less
 * than 1. */
static inline __attribute__((always_inline)) __u64 ap_sample__one_less_power(__u64 fraction)
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

/* After this many halvings the probability that no byte is chosen counts as 0. */
#define AP_SAMPLE_CERTAIN_HALVINGS 40

/* At most one of so many bytes is sampled. */
#define AP_MAX_SAMPLE_BYTES (1ULL << 30)

/* Sets up the fields for sampling so that one of @bytes bytes is sampled, from 1, with which every
 * call is, to AP_MAX_SAMPLE_BYTES. It computes without floating point, since the library of
 * src/inside may not use those registers. */
static inline void ap_sample__configure(__u64 bytes, struct ap_config *sampling)
{
	__u64 chance = 0xffffffffffffffffULL / bytes, power = chance, sum = 0;

	sampling->sample = 1;
	sampling->sample_unit_shift = 0;
	/* The unit is so fine that truncation changes a sum by less than 1 in 1000. */
	while (bytes >> sampling->sample_unit_shift > 4096)
		sampling->sample_unit_shift++;
	sampling->sample_certain_bytes = 1;
	if (bytes < 2)
		return;
	/* -ln(1 - chance) = chance + chance^2 / 2 + chance^3 / 3 + ..., in units of 1/2^64. */
	for (__u64 n = 1; power; n++) {
		sum += power / n;
		power = (unsigned __int128)power * chance >> 64;
	}
	/* Divided by ln(2): the fraction of log2(e) in units of 1/2^64. */
	sum += (unsigned __int128)sum * 0x71547652b82fe178ULL >> 64;
	sampling->sample_rate = chance;
	sampling->sample_halvings = (sum >> (32 - AP_SAMPLE_HALVINGS_SHIFT)) +
				    (sum >> (31 - AP_SAMPLE_HALVINGS_SHIFT) & 1);
	sampling->sample_certain_bytes =
		(((__u64)AP_SAMPLE_CERTAIN_HALVINGS << (32 + AP_SAMPLE_HALVINGS_SHIFT)) +
		 sampling->sample_halvings - 1) /
		sampling->sample_halvings;
}

/*
 * Returns the probability that at least one byte of the call is chosen, in units of 1/2^64;
 * malloc(0) counts as one byte. 0: it is certain. The result is exact to 1/10,000, which suffices,
 * since the weight is computed from the same number.
 */
static inline __attribute__((always_inline)) __u64
ap_sample__chance(const volatile struct ap_config *sampling, __u64 size_bytes)
{
	__u64 bytes = size_bytes ?: 1, halvings, left;

	if (bytes >= sampling->sample_certain_bytes)
		return 0;
	/* log2 of 1 / (probability that no byte is chosen), in units of 1/2^32. */
	halvings = bytes * sampling->sample_halvings >> AP_SAMPLE_HALVINGS_SHIFT;
	if (halvings < 1 << 16)
		return bytes * sampling->sample_rate;
	/* Shifted by 31 bits and then by one more, since the power is 2^32 for a whole number of
	 * halvings. */
	left = (1ULL << 32) - ap_sample__one_less_power(halvings & 0xffffffff);
	return -(left << 31 >> (halvings >> 32 & 63) << 1);
}

/*
 * Returns 1 if @draw certainly does not sample a call of @size_bytes, and 0 if it may. To be
 * called for sizes that are not always sampled. One multiplication decides: no call's chance
 * exceeds the sum of its bytes' chances by more than 1/1024.
 */
static inline __attribute__((always_inline)) int
ap_sample__is_beyond(const volatile struct ap_config *sampling, __u64 size_bytes, __u64 draw)
{
	__u64 most;

	return !__builtin_mul_overflow(size_bytes ?: 1, sampling->sample_rate, &most) &&
	       draw - (draw >> 10) > most;
}

/*
 * Returns the weight of a call with probability @chance that @draw, which is less than @chance,
 * has chosen: 2^64 / @chance, rounded down or up. It is rounded up for just as many draws as make
 * the sum over all draws 2^64, so the mean is exact for every @chance.
 */
static inline __attribute__((always_inline)) __u32 ap_sample__weight(__u64 chance, __u64 draw)
{
	/* 2^64 = quotient * chance + remainder */
	__u64 quotient = -chance / chance + 1, remainder = -chance % chance;

	return quotient + (draw < remainder);
}

/* A sample that a probe tells of stands for so many bytes at the most. */
#define AP_SAMPLE_MAX_TOLD (1ULL << 36)
/* Least ap_config.sample_unit_shift with such samples: the square of what one stands for, and of one
 * size more by rounding, fits in AP_MAX_SUM. */
#define AP_SAMPLE_TOLD_SHIFT 6

/* Makes the units of @sampling, which is set up, fit for such samples. */
static inline void ap_sample__admit_told(struct ap_config *sampling)
{
	if (sampling->sample_unit_shift < AP_SAMPLE_TOLD_SHIFT)
		sampling->sample_unit_shift = AP_SAMPLE_TOLD_SHIFT;
}

/*
 * Returns the weight of a call of @size_bytes of which a probe tells that it stands for @bytes:
 * @bytes / @size_bytes, rounded up as often as the fraction says, where each value of @draw is as
 * likely as others. So weights are whole numbers here, too, and whatever is counted by them is one;
 * the mean is exact to 2^-32, of calls and also of bytes, which are size times weight: a sample's
 * differ from @bytes by less than its size. The stated error has the rounding in it: with @bytes that
 * add up to the truth in the mean, weight * (weight - 1) is in the mean the variance of the weight,
 * rounded as it is, however the program samples (docs/sampling.md).
 */
static inline __attribute__((always_inline)) __u32 ap_sample__told(__u64 bytes, __u64 size_bytes,
								   __u32 draw)
{
	__u64 size = size_bytes ?: 1, quotient, rest;

	if (bytes > AP_SAMPLE_MAX_TOLD)
		bytes = AP_SAMPLE_MAX_TOLD;
	quotient = bytes / size;
	rest = bytes % size;
	/* The product below has 64 bits; of a size that is larger, 1 part in 2^16 does not count. */
	if (size >> 32) {
		size >>= 16;
		rest >>= 16;
	}
	quotient += (size * draw >> 32) < rest;
	return quotient < 0xffffffff ? quotient : 0xffffffff;
}

#endif
