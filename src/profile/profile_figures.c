// SPDX-License-Identifier: GPL-3.0-or-later
/* Figures of a profile that say the same in two ways: damage to a file mostly changes only one of them. */
#include <stdlib.h>

#include "cleanup.h"
#include "gaps.h"
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
	if (n > blocks->allocations || blocks->size_bytes >= PROFILE_MAX)
		return n <= blocks->allocations;
	return (double)blocks->size_bytes >= least &&
	       (n < blocks->allocations || (double)blocks->size_bytes <= greatest);
}

/* Sums that reached PROFILE_MAX say nothing. */
static bool is_part(__u64 part, __u64 whole)
{
	return part <= whole || part >= PROFILE_MAX;
}

/* A call that has returned has failed, or has one block at the most. Lifetimes of blocks whose end was not seen are in no
 * histogram, as those for which there was no room. */
static bool counts_add_up(const struct profile_count *count, const struct profile_blocks *blocks)
{
	double unused[2];
	__u64 lifetimes;

	sum_sizes(blocks->lifetimes, &lifetimes, &unused[0], &unused[1]);
	return is_part(profile__add_up(blocks->allocations, blocks->failed), count->calls) &&
	       is_part(blocks->peak, blocks->allocations) &&
	       is_part(blocks->peak_bytes, blocks->size_bytes) && is_part(lifetimes, blocks->frees);
}

/* Blocks of a count by epochs. */
struct of_epochs {
	__u64 blocks, size_bytes, live, live_bytes;
};

/* Adds up all lifetimes: those of each count by its id - 1, and their blocks. */
static __u64 sum_lifetimes(const struct profile *profile, struct of_epochs *sums)
{
	struct profile_lifetime lifetime;
	__u64 blocks = 0;
	__u32 at = 0;

	while (profile__next_lifetime(profile, &at, &lifetime)) {
		struct of_epochs *sum = &sums[lifetime.count - 1];

		blocks = profile__add_up(blocks, lifetime.blocks);
		sum->blocks = profile__add_up(sum->blocks, lifetime.blocks);
		sum->size_bytes = profile__add_up(sum->size_bytes, lifetime.size_bytes);
		if (lifetime.died != PROFILE_LIVE)
			continue;
		sum->live = profile__add_up(sum->live, lifetime.blocks);
		sum->live_bytes = profile__add_up(sum->live_bytes, lifetime.size_bytes);
	}
	return blocks;
}

static bool epochs_add_up(const struct of_epochs *sum, const struct profile_blocks *blocks)
{
	return is_part(sum->blocks, blocks->allocations) &&
	       is_part(sum->size_bytes, blocks->size_bytes) &&
	       is_part(sum->live, profile_blocks__live(blocks)) &&
	       is_part(sum->live_bytes, profile_blocks__live_bytes(blocks));
}

/* Whether the epochs say of no count that it has more blocks, nor of all together that there are none. Some of them may
 * have been lost. */
static bool lifetimes_add_up(const struct profile *profile, __u64 allocations)
{
	_cleanup_(free_ptr) struct of_epochs *sums = calloc(profile->n_counts + 1, sizeof(*sums));
	struct profile_blocks blocks;
	__u64 of_epochs;

	/* Nothing is known of the file then, and nothing is wrong with it. */
	if (!sums)
		return true;
	of_epochs = sum_lifetimes(profile, sums);
	for (size_t i = 0; i < profile->n_counts; i++)
		if (profile__count_blocks(profile, &profile->counts[i], &blocks) &&
		    !epochs_add_up(&sums[i], &blocks))
			return false;
	return of_epochs <= allocations && (of_epochs || !allocations);
}

bool profile__blocks_add_up(const struct profile *profile)
{
	struct profile_blocks blocks;
	__u64 allocations = 0;

	if (profile->index->is_without_stacks)
		return profile->index->blocks_add_up;
	/* Estimates are rounded, and what was read while the target ran is of several moments. */
	if (profile__sample_bytes(profile) || profile__gap(profile, GAP_TORN))
		return true;
	for (size_t i = 0; i < profile->n_counts; i++) {
		const struct profile_count *count = &profile->counts[i];

		if (!profile__count_blocks(profile, count, &blocks))
			continue;
		if (!sizes_add_up(&blocks) || !counts_add_up(count, &blocks))
			return false;
		allocations = profile__add_up(allocations, blocks.allocations);
	}
	/* Those of blocks that are in no count are none of these figures. */
	return !profile__has_blocks(profile) || !profile__meta(profile, "epoch_ns") ||
	       lifetimes_add_up(profile, allocations);
}
