// SPDX-License-Identifier: GPL-3.0-or-later
#include "diff_pair.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "diff_align.h"
#include "diff_internal.h"
#include "diff_keys.h"
#include "hash_table.h"

/* Similarity in thousandths from which on two stacks are a pair; from DIFF_ALIGN_LEAST on they are
 * one if their costs or names support it. */
#define SURE 900
/* Costs that differ by no more than a tenth count as the same. */
#define SAME_COST 10

/* In a group of many stacks, each is compared only with those of a nearby rank by cost. */
#define WINDOW	  4
#define ALL_PAIRS 64

/* About a second of comparing. */
#define MOST_WORK    100000000ULL
#define LOOK_UP_WORK 8

struct pair_candidate {
	__u32 ranks[DIFF_SIDES];
	__u16 similarity;
	bool same_cost;
	__u64 difference;
};

/* Unpaired stacks; a rank is an index into them, in descending order of cost. */
struct pairing {
	const struct diff *diff;
	__u32 *stacks[DIFF_SIDES];
	bool *is_taken[DIFF_SIDES];
	size_t n[DIFF_SIDES];
	struct diff_keys keys;
	__u32 (*weighed)[DIFF_SIDES]; /* pairs of ranks that were compared */
	size_t n_weighed, weighed_room;
	struct hash_table weighed_index; /* index + 1 */
	struct pair_candidate *candidates;
	size_t n_candidates, candidates_room;
	struct diff_pair *pairs;
	size_t n_pairs;
	bool stopped;
};

static __u64 cost_of(const struct pairing *pairing, enum diff_side side, __u32 rank)
{
	return pairing->diff->stacks[pairing->stacks[side][rank]].costs[side].median;
}

struct order {
	const struct diff *diff;
	enum diff_side side;
};

static int compare_by_cost(const void *left, const void *right, void *context)
{
	const struct order *order = context;
	__u32 a = *(const __u32 *)left, b = *(const __u32 *)right;
	__u64 cost_a = order->diff->stacks[a].costs[order->side].median;
	__u64 cost_b = order->diff->stacks[b].costs[order->side].median;

	if (cost_a != cost_b)
		return cost_a > cost_b ? -1 : 1;
	return diff__compare_stacks(order->diff, a, b);
}

static int list_stacks(struct pairing *pairing, enum diff_side side)
{
	const struct diff *diff = pairing->diff;
	struct order order = { diff, side };
	__u32 *stacks = calloc(diff->n_stacks + 1, sizeof(*stacks));
	size_t n = 0;

	pairing->stacks[side] = stacks;
	pairing->is_taken[side] = calloc(diff->n_stacks + 1, sizeof(bool));
	if (!stacks || !pairing->is_taken[side])
		return -ENOMEM;
	for (size_t i = 0; i < diff->n_stacks; i++) {
		if (diff->stacks[i].is_in[side] && !diff->stacks[i].is_in[!side])
			stacks[n++] = i;
	}
	qsort_r(stacks, n, sizeof(*stacks), compare_by_cost, &order);
	pairing->n[side] = n;
	return 0;
}

static bool is_pair(const struct diff_alignment *alignment, bool same_cost)
{
	if (same_cost)
		return true;
	if (alignment->is_doubtful)
		return false;
	return alignment->similarity >= SURE || alignment->is_by_name;
}

/* Whether ranks @before and @after can be a pair, and how similar they are. */
static bool judge(struct pairing *pairing, __u32 before, __u32 after,
		  struct pair_candidate *candidate, bool *is_sure)
{
	__u64 cost_before = cost_of(pairing, DIFF_BEFORE, before);
	__u64 cost_after = cost_of(pairing, DIFF_AFTER, after);
	__u64 more = cost_before > cost_after ? cost_before : cost_after;
	struct diff_alignment alignment;

	if (!diff_aligner__align(pairing->diff->aligner, pairing->stacks[DIFF_BEFORE][before],
				 pairing->stacks[DIFF_AFTER][after], &alignment, NULL, NULL))
		return false;
	*candidate = (struct pair_candidate){
		.ranks = { before, after },
		.similarity = alignment.similarity,
		.difference = cost_before > cost_after ? cost_before - cost_after
						       : cost_after - cost_before,
	};
	candidate->same_cost = candidate->difference <= more / SAME_COST;
	*is_sure = alignment.similarity >= SURE && !alignment.is_doubtful;
	return is_pair(&alignment, candidate->same_cost);
}

static void take(struct pairing *pairing, const struct pair_candidate *candidate)
{
	__u32 before = candidate->ranks[DIFF_BEFORE], after = candidate->ranks[DIFF_AFTER];

	pairing->is_taken[DIFF_BEFORE][before] = true;
	pairing->is_taken[DIFF_AFTER][after] = true;
	pairing->pairs[pairing->n_pairs++] = (struct diff_pair){
		.stacks = { pairing->stacks[DIFF_BEFORE][before],
			    pairing->stacks[DIFF_AFTER][after] },
		.similarity = candidate->similarity,
	};
}

static int add_candidate(struct pairing *pairing, __u32 before, __u32 after)
{
	struct pair_candidate candidate;
	bool is_sure;
	int err;

	if (!judge(pairing, before, after, &candidate, &is_sure))
		return 0;
	err = array__reserve(&pairing->candidates, &pairing->candidates_room,
			     pairing->n_candidates + 1, sizeof(candidate));
	if (err)
		return err;
	pairing->candidates[pairing->n_candidates++] = candidate;
	return 0;
}

static bool is_worn_out(struct pairing *pairing)
{
	if (pairing->diff->aligner->work > MOST_WORK)
		pairing->stopped = true;
	return pairing->stopped;
}

/* Pairs the two stacks of a group that has no others, if they are similar enough. */
static int take_sure(void *context, const struct diff_key_group *group)
{
	struct pairing *pairing = context;
	struct pair_candidate candidate;
	bool is_sure;

	if (group->n[DIFF_BEFORE] != 1 || group->n[DIFF_AFTER] != 1 || is_worn_out(pairing))
		return 0;
	if (judge(pairing, group->ranks[DIFF_BEFORE][0], group->ranks[DIFF_AFTER][0], &candidate,
		  &is_sure) &&
	    is_sure)
		take(pairing, &candidate);
	return 0;
}

static bool match_weighed(const void *owner, __u32 id, const void *key)
{
	const struct pairing *pairing = owner;

	return !memcmp(pairing->weighed[id - 1], key, sizeof(*pairing->weighed));
}

/* Stacks can share several keys. 1 if these two were not compared yet, 0, or -ENOMEM. */
static int note_weighed(struct pairing *pairing, __u32 before, __u32 after)
{
	const __u32 ranks[DIFF_SIDES] = { before, after };
	__u64 hash = hash_mix(hash_mix(0, before), after);
	int err;

	if (hash_table__find(&pairing->weighed_index, hash, match_weighed, pairing, ranks))
		return 0;
	err = array__reserve(&pairing->weighed, &pairing->weighed_room, pairing->n_weighed + 1,
			     sizeof(*pairing->weighed));
	if (!err)
		err = hash_table__insert(&pairing->weighed_index, hash, pairing->n_weighed + 1);
	if (err)
		return err;
	memcpy(pairing->weighed[pairing->n_weighed++], ranks, sizeof(ranks));
	return 1;
}

static int weigh(struct pairing *pairing, const struct diff_key_group *group, __u32 i, __u32 j)
{
	__u32 before, after;
	int err;

	if (i >= group->n[DIFF_BEFORE] || j >= group->n[DIFF_AFTER])
		return 0;
	before = group->ranks[DIFF_BEFORE][i];
	after = group->ranks[DIFF_AFTER][j];
	pairing->diff->aligner->work += LOOK_UP_WORK;
	err = note_weighed(pairing, before, after);
	return err <= 0 ? err : add_candidate(pairing, before, after);
}

/* Compares stacks of similar rank. Stops only at a point that does not depend on the sides. */
static int weigh_neighbours(struct pairing *pairing, const struct diff_key_group *group)
{
	__u32 most = group->n[DIFF_BEFORE] > group->n[DIFF_AFTER] ? group->n[DIFF_BEFORE]
								  : group->n[DIFF_AFTER];
	int err = 0;

	for (__u32 distance = 0; distance <= WINDOW; distance++) {
		for (__u32 i = 0; i + distance < most && !err && !is_worn_out(pairing); i++) {
			err = weigh(pairing, group, i, i + distance);
			if (!err && distance)
				err = weigh(pairing, group, i + distance, i);
		}
	}
	return err;
}

static int weigh_group(void *context, const struct diff_key_group *group)
{
	struct pairing *pairing = context;
	int err = 0;

	if (is_worn_out(pairing))
		return 0;
	if ((__u64)group->n[DIFF_BEFORE] * group->n[DIFF_AFTER] > ALL_PAIRS)
		return weigh_neighbours(pairing, group);
	for (__u32 i = 0; i < group->n[DIFF_BEFORE] && !err; i++) {
		for (__u32 j = 0; j < group->n[DIFF_AFTER] && !err; j++)
			err = weigh(pairing, group, i, j);
	}
	return err;
}

/* Best first. Ties are broken by the stacks' texts, which does not depend on the sides. */
static int compare_candidates(const void *left, const void *right, void *context)
{
	const struct pair_candidate *candidates[2] = { left, right };
	const struct pairing *pairing = context;
	__u32 first[2], second[2];
	int order;

	if (candidates[0]->similarity != candidates[1]->similarity)
		return candidates[0]->similarity > candidates[1]->similarity ? -1 : 1;
	if (candidates[0]->same_cost != candidates[1]->same_cost)
		return candidates[0]->same_cost ? -1 : 1;
	if (candidates[0]->difference != candidates[1]->difference)
		return candidates[0]->difference < candidates[1]->difference ? -1 : 1;
	for (int i = 0; i < 2; i++) {
		const __u32 *ranks = candidates[i]->ranks;
		__u32 a = pairing->stacks[DIFF_BEFORE][ranks[DIFF_BEFORE]];
		__u32 b = pairing->stacks[DIFF_AFTER][ranks[DIFF_AFTER]];
		bool in_order = diff__compare_stacks(pairing->diff, a, b) < 0;

		first[i] = in_order ? a : b;
		second[i] = in_order ? b : a;
	}
	order = diff__compare_stacks(pairing->diff, first[0], first[1]);
	return order ? order : diff__compare_stacks(pairing->diff, second[0], second[1]);
}

static void take_best(struct pairing *pairing)
{
	if (pairing->n_candidates)
		qsort_r(pairing->candidates, pairing->n_candidates, sizeof(*pairing->candidates),
			compare_candidates, pairing);
	for (size_t i = 0; i < pairing->n_candidates; i++) {
		const struct pair_candidate *candidate = &pairing->candidates[i];

		if (!pairing->is_taken[DIFF_BEFORE][candidate->ranks[DIFF_BEFORE]] &&
		    !pairing->is_taken[DIFF_AFTER][candidate->ranks[DIFF_AFTER]])
			take(pairing, candidate);
	}
	pairing->n_candidates = 0;
}

/* Each round has fewer stacks left and can afford vaguer keys. */
static int find_pairs(struct pairing *pairing)
{
	static const struct {
		enum diff_key_kind kind;
		int (*visit)(void *context, const struct diff_key_group *group);
	} rounds[] = {
		{ DIFF_KEYS_WHOLE, take_sure },
		{ DIFF_KEYS_BUT_ONE, weigh_group },
		{ DIFF_KEYS_ENDS, weigh_group },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rounds); i++) {
		int err = diff_keys__fill(&pairing->keys, rounds[i].kind,
					  (const bool *const *)pairing->is_taken);

		if (!err)
			err = diff_keys__for_each_group(&pairing->keys, rounds[i].visit, pairing);
		if (err)
			return err;
		take_best(pairing);
	}
	return 0;
}

int diff_pair__find(const struct diff *diff, struct diff_pair **pairs, size_t *n_pairs,
		    bool *stopped)
{
	struct pairing pairing = { .diff = diff };
	int err = 0;

	for (int side = 0; side < DIFF_SIDES && !err; side++)
		err = list_stacks(&pairing, side);
	if (err)
		goto out;
	err = -ENOMEM;
	pairing.pairs = calloc(diff->n_stacks + 1, sizeof(*pairing.pairs));
	if (!pairing.pairs)
		goto out;
	err = diff_keys__init(&pairing.keys, diff, pairing.stacks, pairing.n);
	if (!err && pairing.n[DIFF_BEFORE] && pairing.n[DIFF_AFTER])
		err = find_pairs(&pairing);
	if (!err) {
		*pairs = pairing.pairs;
		*n_pairs = pairing.n_pairs;
		*stopped = pairing.stopped;
		pairing.pairs = NULL;
	}
out:
	diff_keys__release(&pairing.keys);
	for (int side = 0; side < DIFF_SIDES; side++) {
		free(pairing.stacks[side]);
		free(pairing.is_taken[side]);
	}
	hash_table__release(&pairing.weighed_index);
	free(pairing.weighed);
	free(pairing.candidates);
	free(pairing.pairs);
	return err;
}
