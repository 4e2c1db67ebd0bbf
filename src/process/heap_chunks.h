/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Tells what of glibc's heaps may be in use although it is in no known block. */
#ifndef ALLOCPROF_HEAP_CHUNKS_H
#define ALLOCPROF_HEAP_CHUNKS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "heap_lists.h"
#include "reach_blocks.h"
#include "reach_roots.h"

/* Memory that may be in use. No known block is in it if it has @words, which were read from there;
 * without them, blocks may be, and it was not read. @only_begins: as in struct reach_range. */
struct heap_part {
	__u64 begin, end;   /* addresses, multiples of a word's size */
	const __u64 *words; /* NULL, or what it contains */
	bool only_begins;
};

typedef void (*heap_visit_fn)(void *context, const struct heap_part *part);

/*
 * Calls @visit for what may be in use of @heap, a range that is_heap. glibc's malloc writes before
 * each chunk of memory how large it is, and behind a free one once more; a program that takes memory
 * by sbrk(2) itself has its memory among them. Only what is free by all that is written there or in
 * @lists is left out. Returns 0 or -ENOMEM.
 */
int heap_chunks__visit_used(const struct reach_range *heap, const struct reach_blocks *blocks,
			    const struct heap_lists *lists, heap_visit_fn visit, void *context);

#endif
