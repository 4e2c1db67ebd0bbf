// SPDX-License-Identifier: GPL-3.0-or-later
#include "cost.h"

#include <errno.h>
#include <string.h>

#include "profile.h"

static const char *const names[COSTS] = {
	[COST_ALLOCATIONS] = "allocations", [COST_BYTES] = "bytes",	    [COST_LIVE] = "live",
	[COST_LIVE_BYTES] = "live-bytes",   [COST_TEMPORARY] = "temporary", [COST_PEAK] = "peak",
};

const char *cost__name(enum cost cost)
{
	return (unsigned int)cost < COSTS ? names[cost] : "unknown";
}

int cost__by_name(const char *name)
{
	for (int i = 0; i < COSTS; i++) {
		if (!strcmp(names[i], name))
			return i;
	}
	return -ENOENT;
}

bool cost__is_bytes(enum cost cost)
{
	return cost == COST_BYTES || cost == COST_LIVE_BYTES || cost == COST_PEAK;
}

bool cost__needs_live(enum cost cost)
{
	return cost != COST_ALLOCATIONS && cost != COST_BYTES;
}

bool cost__has_live(const struct profile *profile)
{
	return profile->n_blocks || profile__meta(profile, "epoch_ns");
}

__u64 cost__of_count(const struct profile *profile, const struct profile_count *count,
		     enum cost cost, bool requests)
{
	const struct profile_blocks *blocks = profile__count_blocks(profile, count);

	if (count->function == AP_FREE)
		return 0;
	if (!blocks || requests) {
		if (cost == COST_ALLOCATIONS)
			return count->calls;
		if (cost == COST_BYTES)
			return count->size_bytes;
	}
	if (!blocks)
		return 0;
	switch (cost) {
	case COST_ALLOCATIONS:
		return blocks->allocations;
	case COST_BYTES:
		return blocks->size_bytes;
	case COST_LIVE:
		return profile_blocks__live(blocks);
	case COST_LIVE_BYTES:
		return profile_blocks__live_bytes(blocks);
	case COST_TEMPORARY:
		return blocks->temporary;
	case COST_PEAK:
		return blocks->peak_bytes;
	default:
		return 0;
	}
}
