/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sampling by bytes: configures the programs, and converts their estimates (docs/sampling.md). */
#ifndef ALLOCPROF_SAMPLING_H
#define ALLOCPROF_SAMPLING_H

#include <linux/types.h>

#include "abi.h"

struct profile_estimate;

/* Maximum sampling period. */
#define SAMPLING_MAX_BYTES (1ULL << 30)

/* Sets up @config to sample one of @bytes bytes, 1 to SAMPLING_MAX_BYTES; with 1 every call is
 * sampled. */
void sampling__configure(__u64 bytes, struct ap_config *config);

/* Returns the count of one sampled call or block with @weight and @size_bytes. */
struct ap_count sampling__count_one(__u32 weight, __u64 size_bytes, __u32 unit_shift);

/* Converts the programs' sums to the profile's units. */
struct profile_estimate sampling__estimate(const struct ap_estimate *sums, __u32 unit_shift);

#endif
