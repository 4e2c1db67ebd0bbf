/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Graphs over a trie: for each of the costs a number for each stack. */
#ifndef ALLOCPROF_PAGE_GRAPHS_H
#define ALLOCPROF_PAGE_GRAPHS_H

#include <json-c/json.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stdio.h>

#include "page_trie.h"
#include "selection.h"

/* What all graphs of a page are made from. The pointers are the caller's. */
struct page_graphs {
	const struct page_trie *trie;
	const struct page_input
		*inputs[DIFF_SIDES];	/* NULL for DIFF_BEFORE: nothing to compare with */
	const __u32 *nodes[DIFF_SIDES]; /* by count's id - 1 */
	bool has_live;			/* live and temporary blocks, and the peak, */
	bool selects_blocks;		/* but not the last two */
};

/* Adds the graph of @cost to @own, which has a number for each node of the trie. */
void page_graphs__add(const struct page_graphs *graphs, enum diff_side side, enum cost cost,
		      double *own);
/* Returns the unit of @cost: "bytes", "blocks" or "allocations". */
const char *page_graphs__unit(enum cost cost);
/* Returns the title of @cost for people, such as "bytes allocated". */
const char *page_graphs__title(enum cost cost);

/*
 * A list of objects that say what is known of each graph: name (as in --cost, if that has it), title,
 * unit, and beside, the name of the same in the other unit. NULL on ENOMEM.
 */
json_object *page_graphs__json(const struct page_graphs *graphs);
/* Writes the blocks stacks.node, own.NAME and base.NAME, which web/graphs.js reads. 0 or -ENOMEM. */
int page_graphs__write(const struct page_graphs *graphs, FILE *to);

#endif
