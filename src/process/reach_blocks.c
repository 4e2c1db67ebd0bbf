// SPDX-License-Identifier: GPL-3.0-or-later
/* Keeps the addresses and sizes of blocks. */
#include "reach_blocks.h"

#include <errno.h>
#include <stdlib.h>

#include "array.h"
#include "cleanup.h"

/* No address of a program is behind this one, unless it asks the kernel for such. */
#define LAST_ADDRESS (1ULL << 48)

int reach_blocks__add(struct reach_blocks *blocks, __u64 begin, __u64 size_bytes)
{
	size_t room = blocks->room;

	if (size_bytes > LAST_ADDRESS || begin > LAST_ADDRESS - size_bytes)
		return 0; /* a process in which the library counts may have written anything */
	if (array__reserve(&blocks->begins, &room, blocks->n + 1, sizeof(*blocks->begins)) ||
	    array__reserve(&blocks->sizes, &blocks->room, blocks->n + 1, sizeof(*blocks->sizes)))
		return -ENOMEM;
	blocks->begins[blocks->n] = begin;
	blocks->sizes[blocks->n++] = size_bytes;
	return 0;
}

struct sorted_block {
	__u64 begin, size;
};

static int compare_blocks(const void *a, const void *b)
{
	const struct sorted_block *first = a, *second = b;

	return first->begin < second->begin ? -1 : first->begin > second->begin;
}

int reach_blocks__sort(struct reach_blocks *blocks)
{
	_cleanup_(free_ptr) struct sorted_block *sorted = calloc(blocks->n + 1, sizeof(*sorted));
	size_t n = 0;

	if (!sorted)
		return -ENOMEM;
	for (size_t i = 0; i < blocks->n; i++)
		sorted[i] = (struct sorted_block){ blocks->begins[i], blocks->sizes[i] };
	qsort(sorted, blocks->n, sizeof(*sorted), compare_blocks);
	for (size_t i = 0; i < blocks->n; i++) {
		if (n && sorted[i].begin - blocks->begins[n - 1] < (blocks->sizes[n - 1] ?: 1))
			continue;
		blocks->begins[n] = sorted[i].begin;
		blocks->sizes[n++] = sorted[i].size;
	}
	blocks->n = n;
	return 0;
}

void reach_blocks__release(struct reach_blocks *blocks)
{
	free(blocks->begins);
	free(blocks->sizes);
	*blocks = (struct reach_blocks){ 0 };
}
