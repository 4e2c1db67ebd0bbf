/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Writes single blocks for the page of `allocprof html`; web/single_blocks.js reads them. */
#ifndef ALLOCPROF_PAGE_BLOCKS_H
#define ALLOCPROF_PAGE_BLOCKS_H

#include <linux/types.h>
#include <stdio.h>

struct event_blocks;
struct page_input;

/* The most blocks of a page: they are some 30 bytes each there. */
#define PAGE_MAX_BLOCKS 10000

/* Writes the columns "<prefix>.blocks.*". @nodes has the node of each count, by its id - 1. Returns 0 or a negative errno. */
int page_blocks__write(const struct event_blocks *blocks, const struct page_input *input,
		       const __u32 *nodes, const char *prefix, FILE *to);

#endif
