/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Where the boxes of a static flame graph are. */
#ifndef ALLOCPROF_FLAMEGRAPH_LAYOUT_H
#define ALLOCPROF_FLAMEGRAPH_LAYOUT_H

#include <linux/types.h>
#include <stddef.h>

#include "page_trie.h"

struct flamegraph_box {
	__u32 node;   /* of siblings that are too narrow for boxes: their parent */
	__u32 hidden; /* how many those are; 0: the box is that of @node */
	__u32 depth;  /* 0: the root */
	double x, width;
};

struct flamegraph_layout {
	struct flamegraph_box *boxes; /* parents before children, siblings by width */
	size_t n, room;
	__u32 n_rows;
};

/* Turns the numbers of stacks into sums over those that go through a node. */
void page_trie__add_up(const struct page_trie *trie, double *own);
/* Lays the whole trie out: @weights has the width of each node. To be released in either case. 0 or
 * -ENOMEM. */
int flamegraph_layout__make(struct flamegraph_layout *layout, const struct page_trie *trie,
			    const double *weights, double width);
void flamegraph_layout__release(struct flamegraph_layout *layout);

#endif
