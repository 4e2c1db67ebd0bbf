// SPDX-License-Identifier: GPL-3.0-or-later
/* Builds the tree of functions of a report, top-down or bottom-up. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "profile.h"
#include "report.h"
#include "stack_groups.h"

/* Items are sorted by their frames from the root on, so that each node is a range of items, and its
 * cost a difference of prefix sums. Only visible nodes are built. */
struct item {
	const struct stack_group *group;
	__u32 root; /* label, or REPORT_NO_ROOT */
	__u32 leaf; /* label of the allocator's function; top-down only */
	__u64 blocks, size_bytes;
};

/* Sums saturate where they are shown, not before: differences of saturated sums are none. */
typedef unsigned __int128 exact_sum;

struct range {
	size_t start, end; /* items */
	__u32 at;	   /* number of frames from the root to here */
	exact_sum blocks, size_bytes;
};

struct builder {
	struct report_tree *tree;
	const struct report_tree_options *options;
	struct item *items;
	size_t n_items;
	exact_sum *blocks, *size_bytes; /* prefix sums over the items */
	__u64 least;			/* minimum cost of a node */
};

static __u32 item_length(const struct builder *builder, const struct item *item)
{
	return item->group->n_frames + (item->root != REPORT_NO_ROOT) +
	       !builder->options->bottom_up;
}

/* The label of frame @at, which must exist, from the tree's root. */
static __u32 item_frame(const struct builder *builder, const struct item *item, __u32 at)
{
	__u32 n = item->group->n_frames;

	if (builder->options->bottom_up)
		return at == n ? item->root : item->group->frames[at];
	if (item->root != REPORT_NO_ROOT && !at--)
		return item->root;
	return at == n ? item->leaf : item->group->frames[n - 1 - at];
}

static int compare_items(const void *left, const void *right, void *context)
{
	const struct item *a = left, *b = right;
	const struct builder *builder = context;
	__u32 len_a = item_length(builder, a), len_b = item_length(builder, b);

	for (__u32 at = 0; at < len_a && at < len_b; at++) {
		__u32 frame_a = item_frame(builder, a, at), frame_b = item_frame(builder, b, at);

		if (frame_a != frame_b)
			return frame_a < frame_b ? -1 : 1;
	}
	return len_a < len_b ? -1 : len_a > len_b;
}

static exact_sum range_cost(const struct builder *builder, const struct range *range)
{
	return cost__is_bytes(builder->options->cost) ? range->size_bytes : range->blocks;
}

static void cost_range(const struct builder *builder, struct range *range)
{
	range->blocks = builder->blocks[range->end] - builder->blocks[range->start];
	range->size_bytes = builder->size_bytes[range->end] - builder->size_bytes[range->start];
}

/* The end of the items from @start on that have the same frame at @at; they are contiguous. */
static size_t find_end(const struct builder *builder, size_t start, size_t end, __u32 at)
{
	__u32 frame = item_frame(builder, &builder->items[start], at);
	size_t step = 1, low = start;

	/* Galloping search: most ranges are short, but some have all items. */
	while (low + step < end && item_frame(builder, &builder->items[low + step], at) == frame) {
		low += step;
		step *= 2;
	}
	if (low + step < end)
		end = low + step;
	for (low++; low < end;) {
		size_t middle = low + (end - low) / 2;

		if (item_frame(builder, &builder->items[middle], at) == frame)
			low = middle + 1;
		else
			end = middle;
	}
	return low;
}

static __u64 saturate(exact_sum sum)
{
	return sum < PROFILE_MAX ? sum : PROFILE_MAX;
}

static int add_node(struct builder *builder, struct report_node *node, const struct range *range)
{
	struct report_tree *tree = builder->tree;
	int err;

	node->blocks = saturate(range->blocks);
	node->size_bytes = saturate(range->size_bytes);
	err = array__reserve(&tree->nodes, &tree->room, tree->n_nodes + 1, sizeof(*node));
	if (!err)
		tree->nodes[tree->n_nodes++] = *node;
	return err;
}

static int add_frame(struct report_tree *tree, struct report_node *node, __u32 frame)
{
	int err = array__reserve(&tree->frames, &tree->frames_room, tree->n_frames + 1,
				 sizeof(frame));

	if (err)
		return err;
	tree->frames[tree->n_frames++] = frame;
	node->n_frames++;
	return 0;
}

/* Descends as long as all items of @range share the next frame. */
static int follow_chain(struct builder *builder, struct range *range, struct report_node *node)
{
	for (;;) {
		const struct item *first = &builder->items[range->start];

		/* The shortest item comes first: where it ends, the others branch off. */
		if (node->n_frames &&
		    (range->at >= item_length(builder, first) ||
		     find_end(builder, range->start, range->end, range->at) < range->end))
			return 0;
		if (add_frame(builder->tree, node, item_frame(builder, first, range->at)))
			return -ENOMEM;
		range->at++;
	}
}

static int compare_ranges(const void *left, const void *right, void *context)
{
	const struct range *a = left, *b = right;
	exact_sum cost_a = range_cost(context, a), cost_b = range_cost(context, b);

	if (cost_a != cost_b)
		return cost_a > cost_b ? -1 : 1;
	return a->start < b->start ? -1 : 1;
}

/*
 * The children of @parent that get a line, sorted, in *@children, to be freed; the rest in @rest.
 */
static int find_children(struct builder *builder, const struct range *parent,
			 struct range **children, size_t *n, struct range *rest, __u32 *n_rest)
{
	size_t room = 0, start = parent->start;

	*children = NULL;
	*n = *n_rest = 0;
	*rest = (struct range){ 0 };
	while (start < parent->end && parent->at >= item_length(builder, &builder->items[start]))
		start++;
	while (start < parent->end) {
		struct range child = { .start = start, .at = parent->at };

		child.end = find_end(builder, start, parent->end, parent->at);
		cost_range(builder, &child);
		start = child.end;
		if (range_cost(builder, &child) < builder->least) {
			rest->blocks += child.blocks;
			rest->size_bytes += child.size_bytes;
			++*n_rest;
			continue;
		}
		if (array__reserve(children, &room, *n + 1, sizeof(child)))
			return -ENOMEM;
		(*children)[(*n)++] = child;
	}
	if (*n)
		qsort_r(*children, *n, sizeof(**children), compare_ranges, builder);
	return 0;
}

struct level {
	struct range *children, rest;
	size_t n, next;
	__u32 n_rest;
};

/* Depth first, with an explicit stack: files may nest without limit. */
static int build(struct builder *builder)
{
	struct range all = { .end = builder->n_items };
	struct level *levels = calloc(1, sizeof(*levels));
	size_t room = 1, depth = 1;
	int err;

	if (!levels)
		return -ENOMEM;
	err = find_children(builder, &all, &levels[0].children, &levels[0].n, &levels[0].rest,
			    &levels[0].n_rest);
	while (depth && !err) {
		struct level *level = &levels[depth - 1];
		struct report_node node = { .depth = depth - 1 };
		struct range range;

		if (level->next == level->n) {
			node.n_hidden = level->n_rest;
			node.is_last = true;
			/* If all children are hidden, the line would only repeat their parent. */
			if (node.n_hidden && (level->n || depth == 1))
				err = add_node(builder, &node, &level->rest);
			free(level->children);
			depth--;
			continue;
		}
		range = level->children[level->next++];
		node.is_last = level->next == level->n && !level->n_rest;
		err = follow_chain(builder, &range, &node);
		if (!err)
			err = add_node(builder, &node, &range);
		if (!err)
			err = array__reserve(&levels, &room, depth + 1, sizeof(*levels));
		if (err)
			break;
		level = &levels[depth++];
		*level = (struct level){ 0 };
		err = find_children(builder, &range, &level->children, &level->n, &level->rest,
				    &level->n_rest);
	}
	while (depth)
		free(levels[--depth].children);
	free(levels);
	return err;
}

static int prepare(struct builder *builder, const struct report *report,
		   struct stack_groups *groups)
{
	__u32 leaves[AP_FUNCTIONS] = { 0 };
	enum cost cost = builder->options->cost;
	double least = builder->options->min_share * cost__of(cost, &report->whole);

	const struct source_names *sources = &report->profile->sources;

	for (int i = 0; i < source_names__n_functions(sources); i++) {
		if (stack_groups__add_label(groups, source_names__function(sources, i), &leaves[i]))
			return -ENOMEM;
	}
	builder->items = calloc(report->n_entries + 1, sizeof(*builder->items));
	builder->blocks = calloc(report->n_entries + 1, sizeof(*builder->blocks));
	builder->size_bytes = calloc(report->n_entries + 1, sizeof(*builder->size_bytes));
	if (!builder->items || !builder->blocks || !builder->size_bytes)
		return -ENOMEM;
	for (size_t i = 0; i < report->n_entries; i++) {
		const struct report_entry *entry = &report->entries[i];

		if (!cost__of(cost, &entry->selected))
			continue;
		builder->items[builder->n_items++] = (struct item){
			.group = &groups->groups[entry->group],
			.root = entry->root,
			.leaf = leaves[entry->function],
			.blocks = cost__blocks(cost, &entry->selected),
			.size_bytes = cost__bytes(cost, &entry->selected),
		};
	}
	qsort_r(builder->items, builder->n_items, sizeof(*builder->items), compare_items, builder);
	for (size_t i = 0; i < builder->n_items; i++) {
		builder->blocks[i + 1] = builder->blocks[i] + builder->items[i].blocks;
		builder->size_bytes[i + 1] = builder->size_bytes[i] + builder->items[i].size_bytes;
	}
	/* A node of cost 0 never gets a line. */
	builder->least = least >= 1 ? (__u64)least : 1;
	if (builder->least < least)
		builder->least++;
	return 0;
}

static void point_to_frames(struct report_tree *tree)
{
	size_t at = 0;

	for (size_t i = 0; i < tree->n_nodes; i++) {
		tree->nodes[i].frames = tree->frames + at;
		at += tree->nodes[i].n_frames;
	}
}

struct report_tree *report_tree__new(const struct report *report, struct stack_groups *groups,
				     const struct report_tree_options *options)
{
	struct report_tree *tree = calloc(1, sizeof(*tree));
	struct builder builder = { .tree = tree, .options = options };
	int err;

	if (!tree)
		return NULL;
	err = prepare(&builder, report, groups);
	if (!err)
		err = build(&builder);
	free(builder.items);
	free(builder.blocks);
	free(builder.size_bytes);
	if (err) {
		report_tree__free(tree);
		return NULL;
	}
	point_to_frames(tree);
	return tree;
}

void report_tree__free(struct report_tree *tree)
{
	if (!tree)
		return;
	free(tree->nodes);
	free(tree->frames);
	free(tree);
}
