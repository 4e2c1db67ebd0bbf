// SPDX-License-Identifier: GPL-3.0-or-later
/* Figures of a profile that say the same in two ways: damage to a file mostly changes only one of them. */
#include "profile.h"
#include "profile_internal.h"

/* Those of all buckets, and the least and the greatest sum of sizes that so many blocks have. */
static void sum_sizes(const __u64 buckets[PROFILE_BUCKETS], __u64 *blocks, double *least,
		      double *greatest)
{
	double size = 1;

	*blocks = buckets[0];
	*least = *greatest = 0;
	for (int i = 1; i < PROFILE_BUCKETS; i++, size *= 2) {
		*blocks = profile__add_up(*blocks, buckets[i]);
		*least += size * (double)buckets[i];
		*greatest += 2 * size * (double)buckets[i];
	}
}

/* Sums that reached PROFILE_MAX say nothing, nor do those of blocks whose sizes were lost. */
static bool sizes_add_up(const struct profile_blocks *blocks)
{
	double least, greatest;
	__u64 n;

	sum_sizes(blocks->sizes, &n, &least, &greatest);
	if (n != blocks->allocations || blocks->size_bytes >= PROFILE_MAX)
		return n <= blocks->allocations;
	return (double)blocks->size_bytes >= least && (double)blocks->size_bytes <= greatest;
}

bool profile__blocks_add_up(const struct profile *profile)
{
	__u64 allocations = 0, of_epochs = 0;
	struct profile_lifetime lifetime;
	struct profile_blocks blocks;
	__u32 at = 0;

	if (profile->index->is_without_stacks)
		return profile->index->blocks_add_up;
	/* Estimates are rounded. */
	if (profile__sample_bytes(profile))
		return true;
	for (size_t i = 0; i < profile->n_counts; i++) {
		if (!profile__count_blocks(profile, &profile->counts[i], &blocks))
			continue;
		if (!sizes_add_up(&blocks))
			return false;
		allocations = profile__add_up(allocations, blocks.allocations);
	}
	/* Those of blocks that are in no count are none of these figures. */
	if (!profile__has_blocks(profile) || !profile__meta(profile, "epoch_ns"))
		return true;
	while (profile__next_lifetime(profile, &at, &lifetime))
		of_epochs = profile__add_up(of_epochs, lifetime.blocks);
	return of_epochs <= allocations && (of_epochs || !allocations);
}
