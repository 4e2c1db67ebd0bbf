/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sampling by bytes: what the programs are set to, and what they say of the error (docs/sampling.md). */
#ifndef ALLOCPROF_SAMPLING_H
#define ALLOCPROF_SAMPLING_H

#include <linux/types.h>

#include "abi.h"

struct profile_estimate;

/* Bytes of which one is chosen, at the most. */
#define SAMPLING_MAX_BYTES (1ULL << 30)

/* Fills the settings of @config that make the programs choose one byte of @bytes, 1 to
 * SAMPLING_MAX_BYTES; 1 chooses every call. */
void sampling__configure(__u64 bytes, struct ap_config *config);

/* What one sampled call or block counts as, that stands for @weight of @size_bytes. */
struct ap_count sampling__count_one(__u32 weight, __u64 size_bytes, __u32 unit_shift);

/* The programs' sums in the profile's units. */
struct profile_estimate sampling__estimate(const struct ap_estimate *sums, __u32 unit_shift);

#endif
