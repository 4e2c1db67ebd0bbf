// SPDX-License-Identifier: GPL-3.0-or-later
#include "sampling.h"

#include <math.h>

#include "profile.h"

/* After so many halvings, the probability that no byte is chosen counts as 0. */
#define CERTAIN_HALVINGS 40

void sampling__configure(__u64 bytes, struct ap_config *config)
{
	double halvings;

	config->sample = 1;
	config->sample_unit_shift = 0;
	/* Fine enough that truncation changes a sum by less than 1 in 1000. */
	while (bytes >> config->sample_unit_shift > 4096)
		config->sample_unit_shift++;
	config->sample_certain_bytes = 1;
	if (bytes < 2)
		return;
	halvings = ldexp(-log1p(-1.0 / bytes) / M_LN2, 32 + AP_SAMPLE_HALVINGS_SHIFT);
	config->sample_rate = UINT64_MAX / bytes;
	config->sample_halvings = halvings;
	config->sample_certain_bytes =
		ceil(ldexp(CERTAIN_HALVINGS, 32 + AP_SAMPLE_HALVINGS_SHIFT) / halvings);
}

struct ap_count sampling__count_one(__u32 weight, __u64 size_bytes, __u32 unit_shift)
{
	__u64 others = weight ? weight - 1 : 0;

	return (struct ap_count){
		.calls = weight,
		.size_bytes = weight * size_bytes,
		.estimate = {
			.samples = 1,
			.variance = others * weight,
			/* Calls that are sampled with certainty may have any size. */
			.bytes_variance = others ? (others * size_bytes >> unit_shift) *
							   (weight * size_bytes >> unit_shift)
						 : 0,
		},
	};
}

struct profile_estimate sampling__estimate(const struct ap_estimate *sums, __u32 unit_shift)
{
	return (struct profile_estimate){
		.samples = sums->samples,
		.variance = sums->variance,
		.bytes_variance = ldexp(sums->bytes_variance, 2 * unit_shift),
	};
}
