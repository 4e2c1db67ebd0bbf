// SPDX-License-Identifier: GPL-3.0-or-later
/* Converts the sums of sampled calls, and keeps the estimates of a profile. */
#include "sampling.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "array.h"
#include "profile.h"
#include "profile_internal.h"

struct ap_count sampling__count_one(__u32 weight, __u64 size_bytes, __u32 unit_shift)
{
	__u64 others = weight ? weight - 1 : 0;

	return (struct ap_count){
		.calls = weight,
		.size_bytes = weight * size_bytes,
		.estimate = {
			.samples = 1,
			.variance = others * weight,
			/* Calls that are certainly sampled may have any size, so the products
			 * below are computed only for others. */
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

static const char *const names[PROFILE_SAMPLED] = {
	[PROFILE_SAMPLED_CALLS] = "calls",
	[PROFILE_SAMPLED_ALLOCATIONS] = "allocations",
	[PROFILE_SAMPLED_LIVE] = "live",
	[PROFILE_SAMPLED_TEMPORARY] = "temporary",
};

__u64 profile__sample_bytes(const struct profile *profile)
{
	return profile__meta_number(profile, "sample_bytes");
}

bool profile__is_weighted(const struct profile *profile)
{
	return profile__meta_number(profile, "weighted");
}

/* Bytes are chosen independently, so none of n is chosen with probability exp(-n / period), which
 * is 5 % where n is three periods. */
__u64 profile__unseen_bytes(const struct profile *profile)
{
	__u64 period = profile__sample_bytes(profile);

	/* With a period of 1 only what a probe told of was left out: samples of the program's. */
	if (!profile__ledger(profile, "not_sampled") || period == 1)
		return 0;
	return period < PROFILE_MAX / 3 ? 3 * period : PROFILE_MAX;
}

int profile__get_samples(struct profile *profile, __u32 count, struct profile_samples **samples)
{
	struct profile_samples fresh = { .count = count };
	struct profile_index *index = profile->index;
	int err;

	if (!count || count > profile->n_counts)
		return -EINVAL;
	err = array__reserve_zeroed(&index->samples_of, &index->samples_of_room, count,
				    sizeof(*index->samples_of));
	if (err)
		return err;
	if (!index->samples_of[count - 1]) {
		err = profile_index__reserve(&profile->samples, &profile->index->samples_room,
					     profile->n_samples, sizeof(fresh));
		if (err)
			return err;
		profile->samples[profile->n_samples++] = fresh;
		index->samples_of[count - 1] = profile->n_samples;
	}
	*samples = &profile->samples[index->samples_of[count - 1] - 1];
	return 0;
}

const struct profile_samples *profile__count_samples(const struct profile *profile,
						     const struct profile_count *count)
{
	const struct profile_index *index = profile->index;
	__u32 at = count->id <= index->samples_of_room ? index->samples_of[count->id - 1] : 0;

	return at ? &profile->samples[at - 1] : NULL;
}

void profile_estimate__add(struct profile_estimate *to, const struct profile_estimate *more)
{
	to->samples = profile__add_up(to->samples, more->samples);
	to->variance += more->variance;
	to->bytes_variance += more->bytes_variance;
}

void profile_estimate__subtract(struct profile_estimate *from, const struct profile_estimate *less)
{
	from->samples -= less->samples < from->samples ? less->samples : from->samples;
	from->variance -= less->variance < from->variance ? less->variance : from->variance;
	from->bytes_variance -= less->bytes_variance < from->bytes_variance ? less->bytes_variance
									    : from->bytes_variance;
}

const char *profile__sampled_name(enum profile_sampled what)
{
	return names[what];
}

int profile__sampled_by_name(const char *name)
{
	for (int i = 0; i < PROFILE_SAMPLED; i++) {
		if (!strcmp(names[i], name))
			return i;
	}
	return -ENOENT;
}
