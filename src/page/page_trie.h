/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Makes one tree of the stacks of a page, of one profile or two, and numbers for its nodes. */
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

struct event_chart;
struct profile;
struct stack_groups;
struct stack_view;

/*
 * The stacks of a page as a tree: a stack is a node, and its frames are those on the way from the
 * root. A graph over the tree is a list of numbers, one for each node: the stack's own cost.
 * Totals are added up from the last node to the first, since parents come before their children.
 */

/* The data of which a trie is made. The pointers belong to the caller, and must outlive the trie. */
struct page_input {
	const struct profile *profile;
	const struct stack_view *view;	   /* view of @profile, with_locations */
	const struct stack_groups *groups; /* groups of @view */
	const struct selection *counts;	   /* filtered costs by count's id - 1 */
};

struct page_trie_options {
	bool no_comm;	/* omit the process's name as the outermost frame */
	bool by_thread; /* add the thread's name below it */
	bool reversed;	/* the trie leads from the allocator's function to its callers */
	/* A function that calls itself, directly or not, is one frame; its last call's frames
	 * follow it. */
	bool merged;
};

/* The trie. Its fields may be read freely. */
struct page_trie {
	struct page_frames frames;
	__u32 *parents;	    /* parents by node; node 0 is the root, and its own parent */
	__u32 *node_frames; /* frames by node, as indexes; 0 for the root, which has none */
	size_t n_nodes, room;
	struct hash_table index; /* nodes by parent and frame */
	__u64 seed;
	struct page_trie_options options;
	__u32 column; /* the column of a chart whose stacks are added; 0: it is no chart */
	struct page_chart_node *chart_nodes; /* by node; only of a chart */
	size_t chart_room;
};

/* The trie of a chart keeps this of each node. */
struct page_chart_node {
	__u32 column;	  /* the last one that it was in; 0: it is of all */
	__u32 last_child; /* the last that was added; 0: none */
};

/* Costs and times of a chart's nodes, by node. Zeroed it is empty; all is owned. */
struct page_chart {
	double *own; /* cost of the stack itself */
	double *first_ns,
		*last_ns; /* of the calls through the node, since the start of the recording */
};

/* Makes an empty trie, which the caller releases in any case. Returns 0 or -ENOMEM. */
int page_trie__init(struct page_trie *trie, const struct page_trie_options *options);
/* Adds the stack of @n frames from the root on. *@node is its node. Returns 0 or -ENOMEM. */
int page_trie__add(struct page_trie *trie, const __u32 *frames, size_t n, __u32 *node);
/*
 * Adds the selected stacks. *@nodes, which the caller frees, gets the node of each count, by its
 * id - 1; 0 if it is not selected. Returns 0 or -ENOMEM.
 */
int page_trie__add_profile(struct page_trie *trie, const struct page_input *input, __u32 **nodes);
/*
 * Does the same for two profiles that @diff compares: a stack of the first is at the node of its
 * partner in the second. @diff must compare allocations and outlive the trie; it decides whether
 * processes and threads are frames.
 */
int page_trie__add_diff(struct page_trie *trie, const struct diff *diff,
			const struct page_input inputs[DIFF_SIDES], __u32 *nodes[DIFF_SIDES]);
/*
 * Adds the stacks of @chart in their order: a frame is one with that beside it only if nothing is between them, or both
 * are in one column. Names of processes and threads, where they are outermost, are one frame each. The caller releases
 * *@out. Returns 0 or -ENOMEM.
 */
int page_trie__add_chart(struct page_trie *trie, const struct page_input *input,
			 const struct event_chart *chart, struct page_chart *out);
void page_chart__release(struct page_chart *chart);
/* Writes the blocks trie.* and frames.*, which web/trie.js reads. Returns 0 or -ENOMEM. */
int page_trie__write(const struct page_trie *trie, FILE *to);
void page_trie__release(struct page_trie *trie);

/* Makes graphs over a trie: for each cost a number for each stack. */

/* The data of which all graphs of a page are made. The pointers belong to the caller. */
struct page_graphs {
	const struct page_trie *trie;
	const struct page_input
		*inputs[DIFF_SIDES];	/* NULL for DIFF_BEFORE: there is nothing to compare with */
	const __u32 *nodes[DIFF_SIDES]; /* nodes by count's id - 1 */
	/* The trie is of a chart, of this cost alone; then there are no nodes, and one input. NULL: it is not. */
	const struct page_chart *chart;
	enum cost chart_cost;
	/* The profile has live and temporary blocks, and the peak. */
	bool has_live, has_resident, has_reach;
	/* There are no temporary blocks and no peak, since blocks are selected one by one. */
	bool selects_blocks;
};

/* Adds the graph of @cost to @own, which has a number for each node of the trie. */
void page_graphs__add(const struct page_graphs *graphs, enum diff_side side, enum cost cost,
		      double *own);
/* Returns the unit of @cost: "bytes", "blocks" or "allocations". */
const char *page_graphs__unit(enum cost cost);
/* Returns the title of @cost for people, such as "bytes allocated". */
const char *page_graphs__title(enum cost cost);

/*
 * Returns a list of objects that describe each graph: name (as in --cost, if that has it), title,
 * unit, and beside, the name of the same cost in the other unit. Returns NULL if there is no
 * memory.
 */
json_object *page_graphs__json(const struct page_graphs *graphs);
/* Writes the blocks stacks.node, own.NAME and base.NAME, which web/graphs.js reads. Returns 0 or
 * -ENOMEM. */
int page_graphs__write(const struct page_graphs *graphs, FILE *to);

#endif
