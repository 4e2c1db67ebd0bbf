// SPDX-License-Identifier: GPL-3.0-or-later
/* Charges the blocks of stacks to one function each. */
#include "charges.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "filter.h"
#include "hash_table.h"
#include "profile.h"
#include "stack_groups.h"

/* Returns the depth of the frame of @group that it is charged to. */
static __u32 charged_depth(const struct stack_groups *groups, const struct stack_group *group)
{
	__u32 best = 0;
	int best_rank = INT_MAX;

	for (__u32 i = 0; i < group->n_seen && best_rank; i++) {
		const struct stack_label *label = &groups->labels[group->frames[i]];
		int rank = frame_kind__rank(label->kind, label->function);

		if (rank < best_rank) {
			best = i;
			best_rank = rank;
		}
	}
	return best;
}

struct charging {
	const struct stack_groups *groups;
	struct charges *charges;
	size_t room;
	struct hash_table index; /* functions: index + 1 */
	__u64 seed;
};

/* Frames that are inlined somewhere have a label of their own, and are the same function. */
static bool match_function(const void *owner, __u32 id, const void *key)
{
	const struct charging *charging = owner;
	const struct stack_label *labels = charging->groups->labels;
	const struct stack_label *label = &labels[charging->charges->functions[id - 1].label];
	const struct stack_label *wanted = key;

	return label->module == wanted->module && !strcmp(label->text, wanted->text);
}

static int charge_group(struct charging *charging, __u32 group)
{
	struct charges *charges = charging->charges;
	const struct stack_group *of = &charging->groups->groups[group];
	__u32 depth = charged_depth(charging->groups, of);
	const struct stack_label *label = &charging->groups->labels[of->frames[depth]];
	__u64 hash = hash_mix(hash_string(charging->seed, label->text), label->module);
	__u32 found = hash_table__find(&charging->index, hash, match_function, charging, label);

	if (!found) {
		if (array__reserve(&charges->functions, &charging->room, charges->n + 1,
				   sizeof(*charges->functions)) ||
		    hash_table__insert(&charging->index, hash, charges->n + 1))
			return -ENOMEM;
		charges->functions[charges->n] =
			(struct charged_function){ .label = of->frames[depth] };
		found = ++charges->n;
	}
	charges->of_groups[group] = found;
	charges->depths[group] = depth;
	return 0;
}

static void charge(struct charged_function *function, const struct selection *of)
{
	function->allocations = profile__add_up(function->allocations, of->allocations);
	function->size_bytes = profile__add_up(function->size_bytes, of->size_bytes);
	function->live = profile__add_up(function->live, of->live);
	function->live_bytes = profile__add_up(function->live_bytes, of->live_bytes);
	function->peak = profile__add_up(function->peak, of->peak);
	function->peak_bytes = profile__add_up(function->peak_bytes, of->peak_bytes);
	function->lost = profile__add_up(function->lost, cost__blocks(COST_LOST, of));
	function->lost_bytes = profile__add_up(function->lost_bytes, cost__bytes(COST_LOST, of));
}

bool charges__include(const struct profile *profile, const struct profile_count *count)
{
	return !profile__function_frees(count->function) &&
	       !profile__function_maps(count->function) &&
	       !profile__function_faults(count->function) &&
	       !definition_names__counts(&profile->definitions, count->function);
}

int charges__make(const struct profile *profile, const struct stack_groups *groups,
		  const struct selection *counts, struct charges *charges)
{
	struct charging charging = { .groups = groups, .charges = charges, .seed = hash_seed() };
	int err = 0;

	*charges = (struct charges){
		.of_groups = calloc(groups->n_groups + 1, sizeof(*charges->of_groups)),
		.depths = calloc(groups->n_groups + 1, sizeof(*charges->depths)),
	};
	if (!charges->of_groups || !charges->depths)
		err = -ENOMEM;
	for (size_t i = 0; i < profile->n_counts && !err; i++) {
		const struct profile_count *count = &profile->counts[i];
		__u32 group = groups->by_stack[count->stack - 1];
		struct selection whole;

		if (!charges__include(profile, count) || (counts && !counts[i].allocations))
			continue;
		if (!counts)
			filter__whole(profile, NULL, count, &whole);
		if (!charges->of_groups[group])
			err = charge_group(&charging, group);
		if (!err)
			charge(&charges->functions[charges->of_groups[group] - 1],
			       counts ? &counts[i] : &whole);
	}
	hash_table__release(&charging.index);
	return err;
}

void charges__release(struct charges *charges)
{
	free(charges->functions);
	free(charges->of_groups);
	free(charges->depths);
}
