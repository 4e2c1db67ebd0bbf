// SPDX-License-Identifier: GPL-3.0-or-later
#include "diff_keys.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "diff_align.h"
#include "diff_internal.h"
#include "hash_table.h"

/*
 * The key of a list of frames is the sum of f(frame) * BASE^index, so that the key without one
 * frame is found in one step. Collisions are sorted out when the stacks are compared; so the seed
 * can be fixed, and every run compares the same stacks.
 */
#define BASE	     0x9e3779b97f4a7c15ULL
#define BASE_INVERSE 0xf1de83e19937733dULL /* BASE * BASE_INVERSE = 1 */

#define AFTER_BIT  0x80000000U
#define RADIX_BITS 11
#define RADIX	   (1U << RADIX_BITS)

struct diff_key {
	__u32 key;
	__u32 rank; /* with AFTER_BIT for that side */
};

int diff_keys__init(struct diff_keys *keys, const struct diff *diff,
		    __u32 *const stacks[DIFF_SIDES], const size_t n[DIFF_SIDES])
{
	const struct diff_aligner *aligner = diff->aligner;
	bool *is_stable = calloc(aligner->n_canonical + 1, sizeof(*is_stable));
	__u32 longest = 0;

	*keys = (struct diff_keys){ .diff = diff, .is_stable = is_stable };
	if (!is_stable)
		return -ENOMEM;
	for (size_t i = 0; i < aligner->n_canonical; i++)
		is_stable[i] =
			aligner->is_known[DIFF_BEFORE][i] && aligner->is_known[DIFF_AFTER][i];
	for (int side = 0; side < DIFF_SIDES; side++) {
		if (n[side] >= AFTER_BIT)
			return -ENOMEM;
		keys->stacks[side] = stacks[side];
		keys->n_stacks[side] = n[side];
		keys->ranks[side] = calloc(n[side] + 1, sizeof(__u32));
		if (!keys->ranks[side])
			return -ENOMEM;
	}
	for (size_t i = 0; i < diff->n_stacks; i++) {
		if (diff->stacks[i].n_frames > longest)
			longest = diff->stacks[i].n_frames;
	}
	keys->sums = calloc((size_t)longest + 1, sizeof(*keys->sums));
	keys->inverses = calloc((size_t)longest + 1, sizeof(*keys->inverses));
	if (!keys->sums || !keys->inverses)
		return -ENOMEM;
	keys->inverses[0] = 1;
	for (__u32 i = 0; i < longest; i++)
		keys->inverses[i + 1] = keys->inverses[i] * BASE_INVERSE;
	return 0;
}

void diff_keys__release(struct diff_keys *keys)
{
	free((void *)keys->is_stable);
	for (int side = 0; side < DIFF_SIDES; side++)
		free(keys->ranks[side]);
	free(keys->sums);
	free(keys->inverses);
	free(keys->keys);
}

static int add_key(struct diff_keys *keys, __u64 hash, __u32 n_frames, __u32 rank)
{
	int err = array__reserve(&keys->keys, &keys->room, keys->n_keys + 1, sizeof(*keys->keys));

	if (err)
		return err;
	keys->keys[keys->n_keys++] = (struct diff_key){ hash_mix(hash, n_frames) >> 32, rank };
	return 0;
}

static __u64 hash_name(__u32 canonical)
{
	return hash_mix(hash_mix(0x2545f4914f6cdd1dULL, canonical), canonical);
}

/* Fills keys->sums: sums[i] is the key of the first i frames. Returns their number. */
static __u32 sum_frames(struct diff_keys *keys, const struct diff_stack *stack)
{
	const __u32 *frames = diff_stack__frames(keys->diff, stack);
	__u64 power = 1;
	__u32 n = 0;

	for (__u32 i = 0; i < stack->n_frames; i++) {
		__u32 canonical = keys->diff->names[frames[i]].canonical;

		if (!keys->is_stable[canonical])
			continue;
		keys->sums[n + 1] = keys->sums[n] + hash_name(canonical) * power;
		power *= BASE;
		n++;
	}
	return n;
}

static int add_but_one(struct diff_keys *keys, __u32 n, __u32 rank)
{
	__u64 whole = keys->sums[n];
	int err = 0;

	for (__u32 i = 0; i < n && !err; i++)
		err = add_key(keys, keys->sums[i] + (whole - keys->sums[i + 1]) * BASE_INVERSE,
			      n - 1, rank);
	return err;
}

/* Adds a key for each combination of 1, 2, 4, 8, ... innermost and outermost frames that has at
 * least half of all. */
static int add_ends(struct diff_keys *keys, __u32 n, __u32 rank)
{
	int err = 0;

	for (__u32 inner = 1; inner < n; inner *= 2) {
		for (__u32 outer = 1; inner + outer < n && !err; outer *= 2) {
			/* Shifts the outer frames' sum to index 0. */
			__u64 hash =
				(keys->sums[n] - keys->sums[n - outer]) * keys->inverses[n - outer];

			if ((inner + outer) * 2 >= n)
				err = add_key(keys, hash_mix(keys->sums[inner], hash),
					      inner << 16 | outer, rank);
		}
	}
	return err;
}

static int add_stack(struct diff_keys *keys, enum diff_side side, __u32 rank)
{
	__u32 n = sum_frames(keys, &keys->diff->stacks[keys->stacks[side][rank]]);
	__u32 marked = rank | (side == DIFF_AFTER ? AFTER_BIT : 0);
	int err;

	if (keys->kind == DIFF_KEYS_ENDS)
		return add_ends(keys, n, marked);
	err = add_key(keys, keys->sums[n], n, marked);
	if (!err && keys->kind == DIFF_KEYS_BUT_ONE)
		err = add_but_one(keys, n, marked);
	return err;
}

/* Stable sort by key. */
static int sort_keys(struct diff_keys *keys)
{
	struct diff_key *other = calloc(keys->room, sizeof(*other)), *from = keys->keys;

	if (!other)
		return -ENOMEM;
	for (unsigned int shift = 0; shift < 32; shift += RADIX_BITS) {
		size_t starts[RADIX] = { 0 }, at = 0;
		struct diff_key *to = other;

		for (size_t i = 0; i < keys->n_keys; i++)
			starts[from[i].key >> shift & (RADIX - 1)]++;
		for (size_t i = 0; i < RADIX; i++) {
			size_t n = starts[i];

			starts[i] = at;
			at += n;
		}
		for (size_t i = 0; i < keys->n_keys; i++)
			to[starts[from[i].key >> shift & (RADIX - 1)]++] = from[i];
		other = from;
		from = to;
	}
	keys->keys = from;
	free(other);
	return 0;
}

int diff_keys__fill(struct diff_keys *keys, enum diff_key_kind kind,
		    const bool *const is_taken[DIFF_SIDES])
{
	int err = 0;

	keys->kind = kind;
	keys->n_keys = 0;
	for (int side = 0; side < DIFF_SIDES; side++) {
		for (size_t rank = 0; rank < keys->n_stacks[side] && !err; rank++) {
			if (!is_taken[side][rank])
				err = add_stack(keys, side, rank);
		}
	}
	return err || !keys->n_keys ? err : sort_keys(keys);
}

int diff_keys__for_each_group(struct diff_keys *keys,
			      int (*visit)(void *context, const struct diff_key_group *group),
			      void *context)
{
	int err = 0;

	for (size_t i = 0; i < keys->n_keys && !err;) {
		struct diff_key_group group = {
			.key = keys->keys[i].key,
			.ranks = { keys->ranks[DIFF_BEFORE], keys->ranks[DIFF_AFTER] },
		};

		for (; i < keys->n_keys && keys->keys[i].key == group.key; i++) {
			__u32 marked = keys->keys[i].rank, rank = marked & ~AFTER_BIT;
			enum diff_side side = marked & AFTER_BIT ? DIFF_AFTER : DIFF_BEFORE;
			__u32 *n = &group.n[side];

			/* A recursive stack gives the same key for several of its frames. */
			if (!*n || keys->ranks[side][*n - 1] != rank)
				keys->ranks[side][(*n)++] = rank;
		}
		if (group.n[DIFF_BEFORE] && group.n[DIFF_AFTER])
			err = visit(context, &group);
	}
	return err;
}
