// SPDX-License-Identifier: GPL-3.0-or-later
/* Finds pairs of stacks that differ in frames but probably are the same, by aligning their frames. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "diff_internal.h"
#include "hash_table.h"

/* Similarity in thousandths from which on two stacks are certainly a pair. From DIFF_ALIGN_LEAST
 * on they are one if their costs or names support it. */
#define SURE 900
/* Costs that differ by no more than a tenth count as the same. */
#define SAME_COST 10

/* In a group of many stacks, each is compared only with those of a nearby rank by cost. */
#define WINDOW	  4
#define ALL_PAIRS 64

/* Limit of the work of comparing, about a second. */
#define MOST_WORK    100000000ULL
#define LOOK_UP_WORK 8

struct pair_candidate {
	__u32 ranks[DIFF_SIDES];
	__u16 similarity;
	bool same_cost;
	__u64 difference;
};

/* The unpaired stacks. A rank is an index of these, which are in descending order of cost. */
struct pairing {
	const struct diff *diff;
	__u32 *stacks[DIFF_SIDES];
	bool *is_paired[DIFF_SIDES];
	size_t n[DIFF_SIDES];
	struct diff_keys keys;
	__u32 (*weighed)[DIFF_SIDES]; /* pairs of ranks that have been compared */
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
	pairing->is_paired[side] = calloc(diff->n_stacks + 1, sizeof(bool));
	if (!stacks || !pairing->is_paired[side])
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

/* Returns whether the stacks of ranks @before and @after can be a pair, and how similar they are. */
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

	pairing->is_paired[DIFF_BEFORE][before] = true;
	pairing->is_paired[DIFF_AFTER][after] = true;
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

/* Notes that two stacks are compared, since stacks can share several keys. Returns 1 if they were
 * not compared yet, 0, or -ENOMEM. */
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

/* Compares candidates, the best first. Ties are broken by the stacks' texts, so that they do not
 * depend on the sides. */
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

		if (!pairing->is_paired[DIFF_BEFORE][candidate->ranks[DIFF_BEFORE]] &&
		    !pairing->is_paired[DIFF_AFTER][candidate->ranks[DIFF_AFTER]])
			take(pairing, candidate);
	}
	pairing->n_candidates = 0;
}

/* Finds pairs in rounds: each has fewer stacks left, and so can use vaguer keys. */
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
					  (const bool *const *)pairing->is_paired);

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
		free(pairing.is_paired[side]);
	}
	hash_table__release(&pairing.weighed_index);
	free(pairing.weighed);
	free(pairing.candidates);
	free(pairing.pairs);
	return err;
}

/* Cost of a frame that only one of the stacks has. */
#define GAP	   1000
#define IMPOSSIBLE (4 * GAP)
#define NOT_FILLED (UINT32_MAX / 2)

/* Units of work; one is the time that a cell takes, some nanoseconds. */
#define WORK_ALIGN   32
#define WORK_COMPARE 64

/* Similarity of names that differ in the module or in clone suffixes. */
#define ALMOST_ALIKE 950
/* Factor in thousandths for names of different modules. */
#define IN_OTHER_MODULE 800

/* The part of two stacks between their common prefix and suffix. */
struct diff_region {
	const __u32 *a, *b;
	__u32 n_a, n_b;
	__u32 band;
};

struct diff_aligner *diff_aligner__new(const struct diff *diff)
{
	struct diff_aligner *aligner = calloc(1, sizeof(*aligner));

	if (!aligner)
		return NULL;
	aligner->diff = diff;
	for (size_t i = 0; i < diff->n_names; i++) {
		if (diff->names[i].canonical >= aligner->n_canonical)
			aligner->n_canonical = diff->names[i].canonical + 1;
	}
	for (int side = 0; side < DIFF_SIDES; side++)
		aligner->is_known[side] = calloc(aligner->n_canonical + 1, sizeof(bool));
	aligner->cells = calloc(DIFF_ALIGN_CELLS, sizeof(*aligner->cells));
	aligner->names = calloc(diff->n_names + 1, sizeof(*aligner->names));
	if (!aligner->is_known[DIFF_BEFORE] || !aligner->is_known[DIFF_AFTER] || !aligner->cells ||
	    !aligner->names) {
		diff_aligner__free(aligner);
		return NULL;
	}
	for (size_t i = 0; i < diff->n_names; i++) {
		for (int side = 0; side < DIFF_SIDES; side++)
			aligner->is_known[side][diff->names[i].canonical] |=
				diff->names[i].is_in[side];
	}
	return aligner;
}

void diff_aligner__free(struct diff_aligner *aligner)
{
	if (!aligner)
		return;
	free(aligner->is_known[DIFF_BEFORE]);
	free(aligner->is_known[DIFF_AFTER]);
	free(aligner->cells);
	free(aligner->known);
	hash_table__release(&aligner->known_index);
	for (size_t i = 0; aligner->names && i < aligner->diff->n_names; i++)
		free(aligner->names[i].pairs);
	free(aligner->names);
	free(aligner);
}

/* Returns the name's pairs of characters. If there is no memory, it has none, and so is similar to
 * no other. */
static const struct diff_align_name *pairs_of(struct diff_aligner *aligner, __u32 name)
{
	struct diff_align_name *to = &aligner->names[name];
	__u16 pairs[DIFF_NAME_PAIRS];

	if (to->pairs)
		return to;
	to->n_pairs = diff_name__pairs(aligner->diff->names[name].function, pairs);
	to->pairs = malloc((to->n_pairs + 1) * sizeof(*pairs));
	if (to->pairs)
		memcpy(to->pairs, pairs, to->n_pairs * sizeof(*pairs));
	else
		to->n_pairs = 0;
	return to;
}

/* Returns the similarity of two different names, in thousandths. */
static unsigned int compare_names(struct diff_aligner *aligner, __u32 a, __u32 b)
{
	const struct diff_name *name_a = &aligner->diff->names[a];
	const struct diff_name *name_b = &aligner->diff->names[b];
	const struct diff_align_name *pairs_a, *pairs_b;
	unsigned int similarity;

	if (name_a->canonical == name_b->canonical)
		return ALMOST_ALIKE;
	if (!diff_name__is_comparable(name_a, name_b))
		return 0;
	pairs_a = pairs_of(aligner, a);
	pairs_b = pairs_of(aligner, b);
	similarity = diff_name__shared_pairs(pairs_a->pairs, pairs_a->n_pairs, pairs_b->pairs,
					     pairs_b->n_pairs);
	if (similarity > ALMOST_ALIKE)
		similarity = ALMOST_ALIKE;
	return strcmp(name_a->module, name_b->module) ? similarity * IN_OTHER_MODULE / 1000
						      : similarity;
}

static bool match_known(const void *owner, __u32 id, const void *key)
{
	const struct diff_aligner *aligner = owner;

	return !memcmp(aligner->known[id - 1].names, key, sizeof(aligner->known->names));
}

/* Returns the similarity of two names, which is cached. */
static unsigned int similarity_of(struct diff_aligner *aligner, __u32 a, __u32 b)
{
	struct diff_align_known known = { .names = { a < b ? a : b, a < b ? b : a } };
	__u64 hash = hash_mix(hash_mix(0, known.names[0]), known.names[1]);
	__u32 id = hash_table__find(&aligner->known_index, hash, match_known, aligner, known.names);

	if (id)
		return aligner->known[id - 1].similarity;
	known.similarity = compare_names(aligner, known.names[0], known.names[1]);
	aligner->work += WORK_COMPARE;
	/* If there is no memory, the result is not cached. */
	if (!array__reserve(&aligner->known, &aligner->known_room, aligner->n_known + 1,
			    sizeof(known)) &&
	    !hash_table__insert(&aligner->known_index, hash, aligner->n_known + 1))
		aligner->known[aligner->n_known++] = known;
	return known.similarity;
}

/* Returns whether each name exists on one side only, so that one may be the other's new name. */
static bool may_be_renamed(const struct diff_aligner *aligner, __u32 a, __u32 b)
{
	__u32 x = aligner->diff->names[a].canonical, y = aligner->diff->names[b].canonical;
	bool *const *known = aligner->is_known;

	return known[DIFF_BEFORE][x] != known[DIFF_AFTER][x] &&
	       known[DIFF_BEFORE][y] != known[DIFF_AFTER][y] &&
	       known[DIFF_BEFORE][x] != known[DIFF_BEFORE][y];
}

static __u32 cost_of_change(struct diff_aligner *aligner, __u32 a, __u32 b)
{
	unsigned int similarity;

	if (a == b)
		return 0;
	similarity = similarity_of(aligner, a, b);
	if (similarity < DIFF_NAMES_ALIKE && !may_be_renamed(aligner, a, b))
		return IMPOSSIBLE;
	return 1000 - similarity;
}

static __u32 min(__u32 a, __u32 b)
{
	return a < b ? a : b;
}

static __u32 *cell(const struct diff_aligner *aligner, const struct diff_region *region, __u32 i,
		   __u32 j)
{
	return &aligner->cells[(size_t)i * (region->n_b + 1) + j];
}

/* Returns the cost of a cell. Only cells in a band around the diagonal are filled. */
static __u32 cost_at(const struct diff_aligner *aligner, const struct diff_region *region, __u32 i,
		     __u32 j)
{
	if (i > j + region->band || j > i + region->band)
		return NOT_FILLED;
	return *cell(aligner, region, i, j);
}

static __u32 cheapest(struct diff_aligner *aligner, const struct diff_region *region, __u32 i,
		      __u32 j)
{
	__u32 cost = NOT_FILLED;

	if (!i && !j)
		return 0;
	if (i)
		cost = min(cost, cost_at(aligner, region, i - 1, j) + GAP);
	if (j)
		cost = min(cost, cost_at(aligner, region, i, j - 1) + GAP);
	if (i && j)
		cost = min(cost,
			   cost_at(aligner, region, i - 1, j - 1) +
				   cost_of_change(aligner, region->a[i - 1], region->b[j - 1]));
	return cost;
}

/* Fills the table. Returns the cost of the last cell, or any value above @most if it is greater
 * than that. */
static __u32 fill_cells(struct diff_aligner *aligner, const struct diff_region *region, __u32 most)
{
	__u32 least = 0;

	for (__u32 i = 0; i <= region->n_a; i++) {
		__u32 from = i > region->band ? i - region->band : 0;
		__u32 to = min(i + region->band, region->n_b);

		least = NOT_FILLED;
		for (__u32 j = from; j <= to; j++) {
			__u32 cost = cheapest(aligner, region, i, j);

			*cell(aligner, region, i, j) = cost;
			least = min(least, cost);
		}
		aligner->work += 2 * region->band + 1;
		if (least > most)
			return least;
	}
	return cost_at(aligner, region, region->n_a, region->n_b);
}

/*
 * Widens the band of cells around the diagonal until it suffices. A path that leaves the band has
 * more gaps than the band is wide, so a cost that does not exceed the cost of so many gaps is the
 * minimum. Returns false if the cost exceeds @most.
 */
static bool widen_band(struct diff_aligner *aligner, struct diff_region *region, __u32 most)
{
	__u32 longer = region->n_a > region->n_b ? region->n_a : region->n_b;
	__u32 cost;

	for (region->band = longer - min(region->n_a, region->n_b) + 1;; region->band *= 2) {
		cost = fill_cells(aligner, region, most);
		if (cost <= (region->band + 1) * GAP || (region->band + 1) * GAP > most ||
		    region->band >= longer)
			return cost <= most;
	}
}

/* Adjacent unmatched frames of both stacks, none of which is a renamed frame of the other. */
struct gaps {
	bool a, b;
};

static void note_change(struct diff_aligner *aligner, __u32 a, __u32 b,
			struct diff_alignment *alignment)
{
	const struct diff_name *names = aligner->diff->names;

	if (names[a].canonical == names[b].canonical)
		return;
	if (!may_be_renamed(aligner, a, b))
		alignment->is_doubtful = true;
	if (similarity_of(aligner, a, b) < DIFF_NAMES_ALIKE)
		alignment->is_by_name = false;
}

/* Follows the cheapest path back from the last cell. */
static void trace_back(struct diff_aligner *aligner, const struct diff_region *region,
		       struct diff_alignment *alignment, enum diff_edit *edits, size_t *n_edits)
{
	struct gaps gaps = { 0 };
	size_t n = 0;

	for (__u32 i = region->n_a, j = region->n_b; i || j;) {
		__u32 cost = cost_at(aligner, region, i, j);
		enum diff_edit edit;

		if (i && j &&
		    cost == cost_at(aligner, region, i - 1, j - 1) +
				    cost_of_change(aligner, region->a[i - 1], region->b[j - 1])) {
			edit = DIFF_EDIT_SAME;
			i--;
			j--;
			note_change(aligner, region->a[i], region->b[j], alignment);
			gaps = (struct gaps){ 0 };
		} else if (i && cost == cost_at(aligner, region, i - 1, j) + GAP) {
			edit = DIFF_EDIT_A_ONLY;
			i--;
			gaps.a = true;
		} else {
			edit = DIFF_EDIT_B_ONLY;
			j--;
			gaps.b = true;
		}
		if (edit != DIFF_EDIT_SAME)
			alignment->is_by_name = false;
		if (gaps.a && gaps.b)
			alignment->is_doubtful = true;
		if (edits)
			edits[n] = edit;
		n++;
	}
	*n_edits = n;
}

static void reverse(enum diff_edit *edits, size_t n)
{
	for (size_t i = 0; i < n / 2; i++) {
		enum diff_edit edit = edits[i];

		edits[i] = edits[n - 1 - i];
		edits[n - 1 - i] = edit;
	}
}

bool diff_aligner__align(struct diff_aligner *aligner, __u32 a, __u32 b,
			 struct diff_alignment *alignment, enum diff_edit *edits, size_t *n_edits)
{
	const struct diff *diff = aligner->diff;
	bool swapped = diff__compare_stacks(diff, a, b) > 0;
	const struct diff_stack *stack_a = &diff->stacks[swapped ? b : a];
	const struct diff_stack *stack_b = &diff->stacks[swapped ? a : b];
	const __u32 *frames_a = diff_stack__frames(diff, stack_a);
	const __u32 *frames_b = diff_stack__frames(diff, stack_b);
	__u32 shorter = min(stack_a->n_frames, stack_b->n_frames);
	__u32 longer = stack_a->n_frames + stack_b->n_frames - shorter;
	__u32 head = 0, tail = 0;
	struct diff_region region;
	size_t n = 0;

	while (head < shorter && frames_a[head] == frames_b[head])
		head++;
	while (tail < shorter - head &&
	       frames_a[stack_a->n_frames - 1 - tail] == frames_b[stack_b->n_frames - 1 - tail])
		tail++;
	region = (struct diff_region){
		.a = frames_a + head,
		.b = frames_b + head,
		.n_a = stack_a->n_frames - head - tail,
		.n_b = stack_b->n_frames - head - tail,
	};
	aligner->work += WORK_ALIGN + head + tail;
	if ((__u64)(region.n_a + 1) * (region.n_b + 1) > DIFF_ALIGN_CELLS)
		return false;
	if (!widen_band(aligner, &region, (1000 - DIFF_ALIGN_LEAST) * longer))
		return false;
	*alignment = (struct diff_alignment){
		.similarity = 1000 - cost_at(aligner, &region, region.n_a, region.n_b) / longer,
		.is_by_name = true,
	};
	trace_back(aligner, &region, alignment, edits ? edits + head : NULL, &n);
	if (!edits)
		return true;
	reverse(edits + head, n);
	for (__u32 i = 0; i < head; i++)
		edits[i] = DIFF_EDIT_SAME;
	for (__u32 i = 0; i < tail; i++)
		edits[head + n + i] = DIFF_EDIT_SAME;
	*n_edits = head + n + tail;
	for (size_t i = 0; swapped && i < *n_edits; i++) {
		if (edits[i] != DIFF_EDIT_SAME)
			edits[i] =
				edits[i] == DIFF_EDIT_A_ONLY ? DIFF_EDIT_B_ONLY : DIFF_EDIT_A_ONLY;
	}
	return true;
}
