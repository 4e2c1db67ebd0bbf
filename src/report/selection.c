// SPDX-License-Identifier: GPL-3.0-or-later
#include "selection.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

/* Half-width of the 95 % interval of a normal distribution, in standard deviations. */
#define CONFIDENCE 1.96

const struct selection selection_none = { .oldest_ns = UINT64_MAX };

static const char *const names[COSTS] = {
	[COST_ALLOCATIONS] = "allocations", [COST_BYTES] = "bytes",	    [COST_LIVE] = "live",
	[COST_LIVE_BYTES] = "live-bytes",   [COST_TEMPORARY] = "temporary", [COST_PEAK] = "peak",
	[COST_RESIDENT] = "resident",	    [COST_UNIQUE] = "unique",	    [COST_LOST] = "lost",
};

static void add(__u64 *to, __u64 more)
{
	*to = profile__add_up(*to, more);
}

void selection__add(struct selection *to, const struct selection *more)
{
	add(&to->allocations, more->allocations);
	add(&to->size_bytes, more->size_bytes);
	add(&to->live, more->live);
	add(&to->live_bytes, more->live_bytes);
	add(&to->temporary, more->temporary);
	add(&to->temporary_bytes, more->temporary_bytes);
	add(&to->peak, more->peak);
	add(&to->peak_bytes, more->peak_bytes);
	add(&to->resident_bytes, more->resident_bytes);
	add(&to->unique_pages, more->unique_pages);
	add(&to->unique_slack_bytes, more->unique_slack_bytes);
	for (int i = 0; i < PROFILE_REACHES; i++) {
		add(&to->reached[i].blocks, more->reached[i].blocks);
		add(&to->reached[i].size_bytes, more->reached[i].size_bytes);
	}
	add(&to->unsure, more->unsure);
	add(&to->unsure_bytes, more->unsure_bytes);
	profile_estimate__add(&to->of_allocations, &more->of_allocations);
	profile_estimate__add(&to->of_live, &more->of_live);
	profile_estimate__add(&to->of_temporary, &more->of_temporary);
	if (more->oldest_ns < to->oldest_ns)
		to->oldest_ns = more->oldest_ns;
}

__u64 cost__blocks(enum cost cost, const struct selection *selection)
{
	switch (cost) {
	case COST_LIVE:
	case COST_LIVE_BYTES:
	case COST_RESIDENT:
	case COST_UNIQUE:
		return selection->live;
	case COST_LOST:
		return profile__add_up(selection->reached[PROFILE_LOST].blocks,
				       selection->reached[PROFILE_INDIRECTLY_LOST].blocks);
	case COST_TEMPORARY:
		return selection->temporary;
	case COST_PEAK:
		return selection->peak;
	default:
		return selection->allocations;
	}
}

__u64 cost__bytes(enum cost cost, const struct selection *selection)
{
	switch (cost) {
	case COST_LIVE:
	case COST_LIVE_BYTES:
		return selection->live_bytes;
	case COST_TEMPORARY:
		return selection->temporary_bytes;
	case COST_PEAK:
		return selection->peak_bytes;
	case COST_RESIDENT:
		return selection->resident_bytes;
	case COST_UNIQUE:
		return selection->unique_pages * PROFILE_PAGE_BYTES;
	case COST_LOST:
		return profile__add_up(selection->reached[PROFILE_LOST].size_bytes,
				       selection->reached[PROFILE_INDIRECTLY_LOST].size_bytes);
	default:
		return selection->size_bytes;
	}
}

const struct profile_estimate *cost__estimate(enum cost cost, const struct selection *selection)
{
	switch (cost) {
	case COST_LIVE:
	case COST_LIVE_BYTES:
		return &selection->of_live;
	case COST_TEMPORARY:
		return &selection->of_temporary;
	case COST_PEAK:
	case COST_RESIDENT:
	case COST_UNIQUE:
	case COST_LOST:
		return NULL;
	default:
		return &selection->of_allocations;
	}
}

double profile_estimate__margin(const struct profile_estimate *estimate, bool bytes)
{
	return CONFIDENCE * sqrt(bytes ? estimate->bytes_variance : estimate->variance);
}

__u64 cost__of(enum cost cost, const struct selection *selection)
{
	return cost__is_bytes(cost) ? cost__bytes(cost, selection) : cost__blocks(cost, selection);
}

bool cost__is_bytes(enum cost cost)
{
	return cost != COST_ALLOCATIONS && cost != COST_LIVE && cost != COST_TEMPORARY;
}

bool cost__needs_live(enum cost cost)
{
	return cost != COST_ALLOCATIONS && cost != COST_BYTES;
}

bool cost__needs_resident(enum cost cost)
{
	return cost == COST_RESIDENT || cost == COST_UNIQUE;
}

bool cost__needs_reach(enum cost cost)
{
	return cost == COST_LOST;
}

bool cost__is_of_stacks(enum cost cost)
{
	return cost == COST_PEAK || cost == COST_TEMPORARY || cost__needs_resident(cost) ||
	       cost__needs_reach(cost);
}

const char *cost__name(enum cost cost)
{
	return names[cost];
}

int cost__by_name(const char *name)
{
	for (int i = 0; i < COSTS; i++) {
		if (!strcmp(names[i], name))
			return i;
	}
	return -ENOENT;
}
