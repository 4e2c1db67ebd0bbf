/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The stacks of a page, of one profile or two, as one tree, and numbers for its nodes. */
#ifndef ALLOCPROF_PAGE_TRIE_H
#define ALLOCPROF_PAGE_TRIE_H

#include <json-c/json.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "diff.h"
#include "hash_table.h"
#include "page_frames.h"
#include "selection.h"

struct profile;
struct stack_groups;
struct stack_view;

/*
 * The stacks of a page as a tree: a stack is a node, and its frames are those on the way from the root.
 * A graph over it is a list of numbers, one for each node: what the stack itself has. Totals are
 * added up from the last node to the first, since parents come before their children.
 */

/* What a trie is made from. The pointers are the caller's, and must outlive it. */
struct page_input {
	const struct profile *profile;
	const struct stack_view *view;	   /* of @profile, with_locations */
	const struct stack_groups *groups; /* of @view */
	const struct selection *counts;	   /* filtered, by count's id - 1 */
};

struct page_trie_options {
	bool no_comm;	/* without the name of the process as the outermost frame */
	bool by_thread; /* with the name of the thread inside of it */
	bool reversed;	/* from the allocator's function to its callers */
	bool merged; /* a function that calls itself, directly or not, is one frame: what it calls at
			 * last follows it */
};

/* Read freely. */
struct page_trie {
	struct page_frames frames;
	__u32 *parents;	    /* by node; node 0 is the root, and its own parent */
	__u32 *node_frames; /* by node: index into the frames; 0 for the root, which has none */
	size_t n_nodes, room;
	struct hash_table index; /* nodes by parent and frame */
	__u64 seed;
	struct page_trie_options options;
};

/* An empty trie. To be released in either case. 0 or -ENOMEM. */
int page_trie__init(struct page_trie *trie, const struct page_trie_options *options);
/* Adds the stack of @n frames from the root on. *@node is its node. 0 or -ENOMEM. */
int page_trie__add(struct page_trie *trie, const __u32 *frames, size_t n, __u32 *node);
/*
 * Adds the selected stacks. *@nodes, to be freed, has the node of each count, by its id - 1; 0 if it
 * is not selected. 0 or -ENOMEM.
 */
int page_trie__add_profile(struct page_trie *trie, const struct page_input *input, __u32 **nodes);
/*
 * The same for two profiles that @diff compares: a stack of the first is at the node of its partner in
 * the second. @diff is by allocations, must outlive the trie, and says itself which processes and
 * threads are frames.
 */
int page_trie__add_diff(struct page_trie *trie, const struct diff *diff,
			const struct page_input inputs[DIFF_SIDES], __u32 *nodes[DIFF_SIDES]);
/* Writes the blocks trie.* and frames.*, which web/trie.js reads. 0 or -ENOMEM. */
int page_trie__write(const struct page_trie *trie, FILE *to);
void page_trie__release(struct page_trie *trie);

/* Graphs over a trie: for each of the costs a number for each stack. */

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
