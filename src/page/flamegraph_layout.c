// SPDX-License-Identifier: GPL-3.0-or-later
#include "flamegraph_layout.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "cleanup.h"

/* Narrower boxes are drawn together with their neighbours. */
#define MIN_WIDTH 0.5

void page_trie__add_up(const struct page_trie *trie, double *own)
{
	for (size_t i = trie->n_nodes - 1; i > 0; i--)
		own[trie->parents[i]] += own[i];
}

/* The children of each node. */
struct children {
	__u32 *nodes;
	size_t *starts; /* by node; one more ends the last */
};

static int find_children(const struct page_trie *trie, struct children *children)
{
	size_t *starts = calloc(trie->n_nodes + 2, sizeof(*starts));

	children->nodes = calloc(trie->n_nodes, sizeof(*children->nodes));
	children->starts = starts;
	if (!children->nodes || !starts)
		return -ENOMEM;
	/* Counts go two places up, so that filling advances each start to the right place. */
	for (size_t i = 1; i < trie->n_nodes; i++)
		starts[trie->parents[i] + 2]++;
	for (size_t i = 2; i < trie->n_nodes + 2; i++)
		starts[i] += starts[i - 1];
	for (size_t i = 1; i < trie->n_nodes; i++)
		children->nodes[starts[trie->parents[i] + 1]++] = i;
	return 0;
}

struct order {
	const struct page_trie *trie;
	const double *weights;
};

/* By weight, then by name, so that equal recordings give equal pictures. */
static int compare_nodes(const void *left, const void *right, void *context)
{
	const struct order *order = context;
	const struct page_trie *trie = order->trie;
	__u32 a = *(const __u32 *)left, b = *(const __u32 *)right;
	int by_name;

	if (order->weights[a] != order->weights[b])
		return order->weights[a] > order->weights[b] ? -1 : 1;
	by_name = strcmp(trie->frames.frames[trie->node_frames[a]].name,
			 trie->frames.frames[trie->node_frames[b]].name);
	return by_name ? by_name : a < b ? -1 : a > b;
}

static int add_box(struct flamegraph_layout *layout, const struct flamegraph_box *box)
{
	int err = array__reserve(&layout->boxes, &layout->room, layout->n + 1, sizeof(*box));

	if (err)
		return err;
	layout->boxes[layout->n++] = *box;
	if (box->depth >= layout->n_rows)
		layout->n_rows = box->depth + 1;
	return 0;
}

static int add_children(struct flamegraph_layout *layout, const struct order *order,
			const struct children *children, struct flamegraph_box parent, double scale)
{
	__u32 *nodes = &children->nodes[children->starts[parent.node]];
	size_t n = children->starts[parent.node + 1] - children->starts[parent.node], wide = 0;
	struct flamegraph_box rest = { .node = parent.node, .depth = parent.depth + 1 };
	double x = parent.x;
	int err = 0;

	for (size_t i = 0; i < n; i++) {
		__u32 node = nodes[i];

		if (order->weights[node] * scale >= MIN_WIDTH) {
			nodes[i] = nodes[wide];
			nodes[wide++] = node;
		} else if (order->weights[node] > 0) {
			rest.width += order->weights[node] * scale;
			rest.hidden++;
		}
	}
	if (wide)
		qsort_r(nodes, wide, sizeof(*nodes), compare_nodes, (void *)order);
	for (size_t i = 0; i < wide && !err; i++) {
		double width = order->weights[nodes[i]] * scale;

		err = add_box(layout,
			      &(struct flamegraph_box){ nodes[i], 0, rest.depth, x, width });
		x += width;
	}
	rest.x = x;
	return !err && rest.width >= MIN_WIDTH ? add_box(layout, &rest) : err;
}

int flamegraph_layout__make(struct flamegraph_layout *layout, const struct page_trie *trie,
			    const double *weights, double width)
{
	_cleanup_(free_ptr) __u32 *nodes = NULL;
	_cleanup_(free_ptr) size_t *starts = NULL;
	const struct order order = { trie, weights };
	struct children children = { 0 };
	int err;

	*layout = (struct flamegraph_layout){ 0 };
	err = find_children(trie, &children);
	nodes = children.nodes;
	starts = children.starts;
	if (!err)
		err = add_box(layout, &(struct flamegraph_box){ .width = width });
	for (size_t i = 0; i < layout->n && !err && weights[0] > 0; i++)
		if (!layout->boxes[i].hidden)
			err = add_children(layout, &order, &children, layout->boxes[i],
					   width / weights[0]);
	return err;
}

void flamegraph_layout__release(struct flamegraph_layout *layout)
{
	free(layout->boxes);
}
