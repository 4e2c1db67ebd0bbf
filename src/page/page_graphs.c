// SPDX-License-Identifier: GPL-3.0-or-later
#include "page_graphs.h"

#include <errno.h>
#include <stdlib.h>

#include "array.h"
#include "cleanup.h"
#include "page_data.h"
#include "profile.h"

/* A graph of a page: a cost, in its own unit or the other one. */
struct graph {
	const char *name, *title, *beside;
	enum cost cost;
	bool is_bytes;
};

static const struct graph graph_kinds[] = {
	{ "bytes", "bytes allocated", "allocations", COST_BYTES, true },
	{ "allocations", "allocations", "bytes", COST_ALLOCATIONS, false },
	{ "live-bytes", "bytes live at the end", "live", COST_LIVE_BYTES, true },
	{ "live", "blocks live at the end", "live-bytes", COST_LIVE, false },
	{ "peak", "bytes live at the peak", "peak-blocks", COST_PEAK, true },
	{ "peak-blocks", "blocks live at the peak", "peak", COST_PEAK, false },
	{ "temporary-bytes", "bytes of temporary blocks", "temporary", COST_TEMPORARY, true },
	{ "temporary", "temporary blocks", "temporary-bytes", COST_TEMPORARY, false },
};

static bool is_known(const struct page_graphs *graphs, const struct graph *graph)
{
	bool is_of_blocks = graph->cost == COST_PEAK || graph->cost == COST_TEMPORARY;

	return !cost__needs_live(graph->cost) ||
	       (graphs->has_live && !(graphs->selects_blocks && is_of_blocks));
}

static __u64 number_of(const struct graph *graph, const struct selection *selected)
{
	return graph->is_bytes ? cost__bytes(graph->cost, selected)
			       : cost__blocks(graph->cost, selected);
}

static const struct graph *graph_of(enum cost cost)
{
	size_t i = 0;

	while (graph_kinds[i].cost != cost || graph_kinds[i].is_bytes != cost__is_bytes(cost))
		i++;
	return &graph_kinds[i];
}

static const char *unit_of(const struct graph *graph)
{
	return graph->is_bytes			 ? "bytes"
	       : graph->cost == COST_ALLOCATIONS ? "allocations"
						 : "blocks";
}

const char *page_graphs__unit(enum cost cost)
{
	return unit_of(graph_of(cost));
}

const char *page_graphs__title(enum cost cost)
{
	return graph_of(cost)->title;
}

/* Adds the numbers to @sums, by node or, with @stacks, by the stack that a node is. */
static void add_up(const struct page_graphs *graphs, enum diff_side side, const struct graph *graph,
		   const __u32 *stacks, double *sums)
{
	const struct page_input *input = graphs->inputs[side];

	for (size_t i = 0; i < input->profile->n_counts; i++) {
		__u32 node = graphs->nodes[side][i];

		if (node)
			sums[stacks ? stacks[node] : node] += number_of(graph, &input->counts[i]);
	}
}

void page_graphs__add(const struct page_graphs *graphs, enum diff_side side, enum cost cost,
		      double *own)
{
	add_up(graphs, side, graph_of(cost), NULL, own);
}

json_object *page_graphs__json(const struct page_graphs *graphs)
{
	json_object *list = json_object_new_array();

	for (size_t i = 0; i < ARRAY_SIZE(graph_kinds) && list; i++) {
		const struct graph *graph = &graph_kinds[i];
		json_object *object;

		if (!is_known(graphs, graph))
			continue;
		object = json_object_new_object();
		json_object_object_add(object, "name", json_object_new_string(graph->name));
		json_object_object_add(object, "title", json_object_new_string(graph->title));
		json_object_object_add(object, "unit", json_object_new_string(unit_of(graph)));
		json_object_object_add(object, "beside", json_object_new_string(graph->beside));
		json_object_array_add(list, object);
	}
	return list;
}

/* Numbers the nodes at which stacks end: *@stacks by node, *@nodes by number. Both to be freed. */
static int number_stacks(const struct page_graphs *graphs, __u32 **stacks, __u32 **nodes, size_t *n)
{
	__u32 *numbers = calloc(graphs->trie->n_nodes, sizeof(*numbers)), *ends = NULL;

	if (!numbers)
		return -ENOMEM;
	for (int side = 0; side < DIFF_SIDES; side++)
		for (size_t i = 0;
		     graphs->inputs[side] && i < graphs->inputs[side]->profile->n_counts; i++)
			numbers[graphs->nodes[side][i]] = 1;
	*n = 0;
	numbers[0] = 0;
	for (size_t i = 1; i < graphs->trie->n_nodes; i++)
		*n += numbers[i];
	ends = calloc(*n + 1, sizeof(*ends));
	if (!ends) {
		free(numbers);
		return -ENOMEM;
	}
	*n = 0;
	for (size_t i = 1; i < graphs->trie->n_nodes; i++) {
		if (!numbers[i])
			continue;
		ends[*n] = i;
		numbers[i] = (*n)++;
	}
	*stacks = numbers;
	*nodes = ends;
	return 0;
}

static int write_graph(const struct page_graphs *graphs, const struct graph *graph,
		       enum diff_side side, const __u32 *stacks, size_t n, FILE *to)
{
	_cleanup_(free_ptr) double *sums = calloc(n + 1, sizeof(*sums));
	char name[32];

	if (!sums)
		return -ENOMEM;
	add_up(graphs, side, graph, stacks, sums);
	snprintf(name, sizeof(name), "%s.%s", side == DIFF_AFTER ? "own" : "base", graph->name);
	return page_data__f64(name, sums, n, to);
}

int page_graphs__write(const struct page_graphs *graphs, FILE *to)
{
	_cleanup_(free_ptr) __u32 *stacks = NULL, *nodes = NULL;
	size_t n;
	int err = number_stacks(graphs, &stacks, &nodes, &n);

	if (!err)
		err = page_data__u32("stacks.node", nodes, n, to);
	for (size_t i = 0; i < ARRAY_SIZE(graph_kinds) && !err; i++) {
		if (!is_known(graphs, &graph_kinds[i]))
			continue;
		err = write_graph(graphs, &graph_kinds[i], DIFF_AFTER, stacks, n, to);
		if (!err && graphs->inputs[DIFF_BEFORE])
			err = write_graph(graphs, &graph_kinds[i], DIFF_BEFORE, stacks, n, to);
	}
	return err;
}
