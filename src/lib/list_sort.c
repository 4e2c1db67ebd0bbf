// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Multikey quicksort. Each step divides the lists by a key of two of their numbers, which is
 * stored beside the list's number. So no beginning is compared twice, and memory is read in order.
 */
#include "list_sort.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "cleanup.h"
#include "hash_table.h"

#define FEW 12

struct item {
	__u64 key; /* two numbers of the list, each plus 1; 0 for a number behind the end */
	__u32 list;
};

struct sort {
	list_sort_number_fn number;
	const void *owner;
	__u64 random;
};

struct part {
	struct item *items;
	size_t n;
	size_t at; /* index, in each list, of the first of the two numbers that form its key */
};

static __u64 key_of(const struct sort *sort, __u32 list, size_t at)
{
	__u32 first = sort->number(sort->owner, list, at) + 1;
	__u32 second = first ? sort->number(sort->owner, list, at + 1) + 1 : 0;

	return (__u64)first << 32 | second;
}

/* Returns whether the list ends within the numbers of @key. */
static bool is_last(__u64 key)
{
	return !(__u32)key;
}

static void swap_items(struct item *a, struct item *b)
{
	struct item item = *a;

	*a = *b;
	*b = item;
}

static bool is_before(const struct sort *sort, const struct item *a, const struct item *b,
		      size_t at)
{
	__u64 left = a->key, right = b->key;

	while (left == right && !is_last(left)) {
		at += 2;
		left = key_of(sort, a->list, at);
		right = key_of(sort, b->list, at);
	}
	return left < right;
}

static void sort_few(const struct sort *sort, const struct part *part)
{
	for (size_t i = 1; i < part->n; i++) {
		for (size_t j = i;
		     j && is_before(sort, &part->items[j], &part->items[j - 1], part->at); j--)
			swap_items(&part->items[j], &part->items[j - 1]);
	}
}

static __u64 some_key(struct sort *sort, const struct part *part)
{
	sort->random = hash_mix(sort->random, part->n);
	return part->items[(sort->random >> 32) % part->n].key;
}

/* Returns the median of three keys that are chosen at random, so that no file can make the sort
 * slow. */
static __u64 choose_key(struct sort *sort, const struct part *part)
{
	__u64 a = some_key(sort, part), b = some_key(sort, part), c = some_key(sort, part);

	if (a > b) {
		__u64 key = a;

		a = b;
		b = key;
	}
	return c < a ? a : c > b ? b : c;
}

/* Divides @part by a key into the lists with a lesser, the same and a greater key. */
static void divide_part(struct sort *sort, const struct part *part, struct part parts[3])
{
	__u64 key = choose_key(sort, part);
	size_t n_less = 0, n_done = 0, end = part->n;

	while (n_done < end) {
		struct item *item = &part->items[n_done];

		if (item->key < key)
			swap_items(&part->items[n_less++], &part->items[n_done++]);
		else if (item->key > key)
			swap_items(item, &part->items[--end]);
		else
			n_done++;
	}
	parts[0] = (struct part){ part->items, n_less, part->at };
	parts[1] = (struct part){ part->items + n_less, end - n_less, part->at };
	parts[2] = (struct part){ part->items + end, part->n - end, part->at };
	if (is_last(key)) {
		parts[1].n = 0;
		return;
	}
	parts[1].at += 2;
	for (size_t i = 0; i < parts[1].n; i++)
		parts[1].items[i].key = key_of(sort, parts[1].items[i].list, parts[1].at);
}

/* Sorts @part. Recursion is only for parts of at most half of the lists, so it is never deep. */
static void sort_part(struct sort *sort, struct part part)
{
	while (part.n > FEW) {
		struct part parts[3];
		int most = 0;

		divide_part(sort, &part, parts);
		for (int i = 1; i < 3; i++) {
			if (parts[i].n > parts[most].n)
				most = i;
		}
		for (int i = 0; i < 3; i++) {
			if (i != most)
				sort_part(sort, parts[i]);
		}
		part = parts[most];
	}
	sort_few(sort, &part);
}

int list_sort(__u32 *lists, size_t n, list_sort_number_fn number, const void *owner)
{
	_cleanup_(free_ptr) struct item *items = calloc(n + 1, sizeof(*items));
	struct sort sort = { .number = number, .owner = owner, .random = hash_seed() };

	if (!items)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		items[i] = (struct item){ key_of(&sort, lists[i], 0), lists[i] };
	sort_part(&sort, (struct part){ items, n, 0 });
	for (size_t i = 0; i < n; i++)
		lists[i] = items[i].list;
	return 0;
}
