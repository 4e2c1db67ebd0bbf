// SPDX-License-Identifier: GPL-3.0-or-later
/* Keeps the mapped ranges of an address space in a treap. */
#include "mapping_ranges.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "hash_table.h"

struct mapping_node {
	struct mapping_range range;
	__u64 priority; /* random, and not less than those of the nodes beneath */
	struct mapping_node *left, *right;
};

/* Goes down the right side by a loop, so that the depth of the recursion is that of the tree, which
 * is logarithmic. */
static void node__free(struct mapping_node *node)
{
	while (node) {
		struct mapping_node *right = node->right;

		node__free(node->left);
		free(node);
		node = right;
	}
}

void mapping_ranges__release(struct mapping_ranges *ranges)
{
	node__free(ranges->root);
	*ranges = (struct mapping_ranges){ 0 };
}

/* Splits the tree into the ranges that begin before @address, and the others. */
static void node__split(struct mapping_node *node, __u64 address, struct mapping_node **below,
			struct mapping_node **above)
{
	if (!node) {
		*below = *above = NULL;
	} else if (node->range.begin < address) {
		node__split(node->right, address, &node->right, above);
		*below = node;
	} else {
		node__split(node->left, address, below, &node->left);
		*above = node;
	}
}

/* Joins two trees, of which all of @below is at lower addresses. */
static struct mapping_node *node__join(struct mapping_node *below, struct mapping_node *above)
{
	if (!below || !above)
		return below ? below : above;
	if (below->priority > above->priority) {
		below->right = node__join(below->right, above);
		return below;
	}
	above->left = node__join(below, above->left);
	return above;
}

/* Returns the next number of an xorshift generator, whose seed the target does not know. */
static __u64 next_priority(struct mapping_ranges *ranges)
{
	if (!ranges->random)
		ranges->random = hash_seed() | 1;
	ranges->random ^= ranges->random << 13;
	ranges->random ^= ranges->random >> 7;
	ranges->random ^= ranges->random << 17;
	return ranges->random;
}

static int insert(struct mapping_ranges *ranges, const struct mapping_range *range)
{
	struct mapping_node *node = calloc(1, sizeof(*node)), *below, *above;

	if (!node)
		return -ENOMEM;
	node->range = *range;
	node->priority = next_priority(ranges);
	node__split(ranges->root, range->begin, &below, &above);
	ranges->root = node__join(node__join(below, node), above);
	return 0;
}

/* Returns the last range that begins before @address, or NULL. */
static struct mapping_range *last_before(const struct mapping_ranges *ranges, __u64 address)
{
	struct mapping_range *found = NULL;

	for (struct mapping_node *node = ranges->root; node;) {
		if (node->range.begin < address) {
			found = &node->range;
			node = node->right;
		} else {
			node = node->left;
		}
	}
	return found;
}

const struct mapping_range *mapping_ranges__from(const struct mapping_ranges *ranges, __u64 address)
{
	const struct mapping_range *found = NULL;

	for (const struct mapping_node *node = ranges->root; node;) {
		if (node->range.end > address) {
			found = &node->range;
			node = node->left;
		} else {
			node = node->right;
		}
	}
	return found;
}

static bool are_alike(const struct mapping_range *a, const struct mapping_range *b)
{
	return a->origin == b->origin && a->placed_ns == b->placed_ns &&
	       a->protection == b->protection && a->was_executable == b->was_executable &&
	       a->was_given_back == b->was_given_back;
}

/* Removes the range that begins at @begin. */
static void remove_at(struct mapping_ranges *ranges, __u64 begin)
{
	struct mapping_node *below, *at, *above;

	node__split(ranges->root, begin, &below, &at);
	node__split(at, begin + 1, &at, &above);
	node__free(at);
	ranges->root = node__join(below, above);
}

int mapping_ranges__add(struct mapping_ranges *ranges, const struct mapping_range *range)
{
	struct mapping_range *before = last_before(ranges, range->begin);
	const struct mapping_range *behind = mapping_ranges__from(ranges, range->end);
	struct mapping_range joined = *range;

	if (behind && behind->begin == range->end && are_alike(behind, range)) {
		joined.end = behind->end;
		remove_at(ranges, behind->begin);
	}
	/* The node before is another one, which the removal has left. */
	if (before && before->end == range->begin && are_alike(before, range)) {
		before->end = joined.end;
		return 0;
	}
	return insert(ranges, &joined);
}

/* Makes two ranges of one that spans @address. */
static int cut(struct mapping_ranges *ranges, __u64 address)
{
	struct mapping_range *range = last_before(ranges, address), above;
	int err;

	if (!range || range->end <= address)
		return 0;
	above = *range;
	above.begin = address;
	err = insert(ranges, &above);
	if (!err)
		range->end = address;
	return err;
}

int mapping_ranges__take(struct mapping_ranges *ranges, __u64 begin, __u64 end,
			 struct mapping_ranges *taken)
{
	struct mapping_node *below, *at, *above;
	int err;

	if (begin >= end)
		return 0;
	err = cut(ranges, begin);
	if (!err)
		err = cut(ranges, end);
	if (err)
		return err;
	node__split(ranges->root, begin, &below, &at);
	node__split(at, end, &at, &above);
	ranges->root = node__join(below, above);
	taken->root = at;
	return 0;
}
