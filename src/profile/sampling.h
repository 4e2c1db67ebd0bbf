/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sampling by bytes: converts the estimates of the programs (docs/sampling.md). */
#ifndef ALLOCPROF_SAMPLING_H
#define ALLOCPROF_SAMPLING_H

#include <linux/types.h>

#include "abi.h"

struct profile_estimate;

/* Returns the count of one sampled call or block with @weight and @size_bytes. */
struct ap_count sampling__count_one(__u32 weight, __u64 size_bytes, __u32 unit_shift);

/* Converts the programs' sums to the profile's units. */
struct profile_estimate sampling__estimate(const struct ap_estimate *sums, __u32 unit_shift);

#endif
