/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Chooses which calls of a thread are counted, and counts calls and blocks, by the rules of the
 * programs of bpf/. */
#ifndef ALLOCPROF_INSIDE_COUNTING_H
#define ALLOCPROF_INSIDE_COUNTING_H

#include "process.h"
#include "regions.h"
#include "sample_abi.h"

/* Splitmix64: its state takes each of the 2^64 values once. */
static inline __u64 sample__random(struct thread *thread)
{
	__u64 z = thread->random += 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z ^ z >> 31;
}

static __attribute__((noinline, cold, unused)) __u32 sample__weigh(const struct ap_config *sampling,
								   __u64 size_bytes, __u64 draw)
{
	__u64 chance = ap_sample__chance(sampling, size_bytes);

	return draw < chance ? ap_sample__weight(chance, draw) : 0;
}

/* Returns the number of calls that this call stands for; 0: it is not sampled. */
static inline __u32 sample__draw(struct thread *thread, __u64 size_bytes)
{
	const struct ap_config *sampling = &process.header->settings.sampling;
	__u64 draw;

	if (unlikely((size_bytes ?: 1) >= sampling->sample_certain_bytes))
		return 1;
	draw = sample__random(thread);
	if (likely(ap_sample__is_beyond(sampling, size_bytes, draw)))
		return 0;
	return sample__weigh(sampling, size_bytes, draw);
}

/* Adds to a sum, which saturates at AP_MAX_SUM. A sum has one writer. */
static inline void sum__add(__u64 *sum, __u64 more)
{
	__u64 after = *sum + more;

	*sum = after < more || after > AP_MAX_SUM ? AP_MAX_SUM : after;
}

static inline void estimate__add(struct ap_estimate *estimate, __u32 weight, __u64 size_bytes)
{
	__u32 shift = process.header->settings.sampling.sample_unit_shift & 63;
	__u64 others = weight - 1;

	counter__add(&estimate->samples, 1);
	if (!others)
		return;
	sum__add(&estimate->variance, others * weight);
	sum__add(&estimate->bytes_variance,
		 (others * size_bytes >> shift) * ((__u64)weight * size_bytes >> shift));
}

static inline void stat__add(struct thread *thread, enum ap_stat which, __u64 n)
{
	counter__add(&thread->shared->stats[which], n);
}

/* Counts an event also for the thread's open regions, which its stand-ins do not know. */
static inline void stat__add_in_regions(struct thread *thread, enum ap_stat which, __u64 n)
{
	struct inside_region_counts *counts = regions__counts(thread->owner);

	if (unlikely(counts))
		counter__add(&counts->stats[which], n);
}

/* Returns whether the block, which ends now, has been allocated by the last allocation of @thread. */
static inline bool thread__ends_temporary(const struct thread *thread, const struct ap_block *block)
{
	const struct thread *owner = thread->owner;

	return owner->number == block->thread && owner->sequence == block->sequence;
}

static inline int significant_bits(__u64 value)
{
	return value ? 64 - __builtin_clzll(value) : 0;
}

#define AP_CALLER			    struct thread *
#define AP_ADD(counter, n)		    counter__add(counter, n)
#define AP_ADD_BYTES(sum, size_bytes)	    counter__add_bytes(sum, size_bytes)
#define AP_ADD_STAT(thread, which, n)	    stat__add(thread, which, n)
#define AP_HAS_REGIONS(thread)		    unlikely((thread)->owner->regions)
#define AP_ADD_IN_REGIONS(thread, which, n) stat__add_in_regions(thread, which, n)
#define AP_IS_SAMPLED			    process.samples
#define AP_ADD_ESTIMATE(estimate, weight, size_bytes)                                              \
	do {                                                                                       \
		if (unlikely(process.samples))                                                     \
			estimate__add(estimate, weight, size_bytes);                               \
	} while (0)
#define AP_SIGNIFICANT_BITS(value) significant_bits(value)
#include "count_rules_abi.h"

#endif
