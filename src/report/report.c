// SPDX-License-Identifier: GPL-3.0-or-later
/* Makes a report: its stacks in order, or their tree of functions, top-down or bottom-up. */
#include "report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "cleanup.h"
#include "error.h"
#include "mapping_sums.h"
#include "profile.h"
#include "profile_runs.h"
#include "stack_groups.h"

static bool ran_to_exit(const struct profile *profile, const struct profile_count *count)
{
	const struct profile_process *process = &profile->processes[count->process - 1];

	return process->end_ns && !process->execed;
}

static bool match_entry(const void *owner, __u32 at, const void *key)
{
	const struct report_entry *entry = &((const struct report *)owner)->entries[at - 1];
	const struct report_entry *wanted = key;

	return entry->group == wanted->group && entry->function == wanted->function &&
	       entry->root == wanted->root;
}

/* Returns the entry of @count, which is made if it is missing; NULL if there is no memory. */
static struct report_entry *get_entry(struct report *report, struct hash_table *index, __u64 seed,
				      const struct profile_count *count, const __u32 *roots)
{
	struct report_entry entry = {
		.group = report->groups->by_stack[count->stack - 1],
		.root = roots[count->thread - 1],
		.function = count->function,
		.selected = selection_none,
		.at_exit = true,
	};
	__u64 hash =
		hash_mix(hash_mix(seed, (__u64)entry.group << 32 | entry.root), entry.function);
	__u32 at = hash_table__find(index, hash, match_entry, report, &entry);

	if (!at) {
		/* The array has room for one entry per count. */
		report->entries[report->n_entries] = entry;
		at = ++report->n_entries;
		if (hash_table__insert(index, hash, at))
			return NULL;
	}
	return &report->entries[at - 1];
}

static int compare_growing(const void *left, const void *right)
{
	const struct report_growing *a = left, *b = right;
	double x = a->growth.bytes_per_second, y = b->growth.bytes_per_second;

	return x != y ? (x > y ? -1 : 1) : a->label < b->label ? -1 : a->label > b->label;
}

/* Keeps those functions whose growth their stacks do not show. */
static void keep_unseen(struct report *report, const struct growth *growths, const __u32 *numbers,
			size_t n)
{
	double shown = 0;

	for (size_t i = 0; i < n; i++)
		report->growing[i].growth = growths[i];
	for (size_t i = 0; i < report->n_entries; i++) {
		const struct growth *growth = &report->entries[i].growth;

		if (growth->verdict != GROWTH_GROWING)
			continue;
		report->growing[numbers[i]].growth.bytes_per_second -= growth->bytes_per_second;
		if (report->entries[i].selected.live)
			shown += growth->bytes_per_second;
	}
	for (size_t i = 0; i < n; i++) {
		const struct report_growing *growing = &report->growing[i];

		if (growing->n_entries < 2 || growths[i].verdict != GROWTH_GROWING ||
		    growths[i].bytes_per_second < shown / 100 ||
		    growing->growth.bytes_per_second < growths[i].bytes_per_second / 5)
			continue;
		report->growing[report->n_growing] = *growing;
		report->growing[report->n_growing++].growth = growths[i];
	}
	qsort(report->growing, report->n_growing, sizeof(*report->growing), compare_growing);
}

/* Measures functions, since a leak of one function may be in many stacks, none of which grows by
 * itself. */
static int measure_functions(struct report *report, const __u32 *entries, __u64 before,
			     struct error *error)
{
	const struct profile *profile = report->profile;
	_cleanup_(free_ptr) __u32 *of_labels =
		calloc(report->groups->n_labels + 1, sizeof(*of_labels));
	_cleanup_(free_ptr) __u32 *numbers = calloc(report->n_entries + 1, sizeof(*numbers));
	_cleanup_(free_ptr) __u32 *of_counts = calloc(profile->n_counts + 1, sizeof(*of_counts));
	_cleanup_(free_ptr) struct growth *growths =
		calloc(report->n_entries + 1, sizeof(*growths));
	__u32 n = 0;
	int err;

	report->growing = calloc(report->n_entries + 1, sizeof(*report->growing));
	if (!of_labels || !numbers || !of_counts || !growths || !report->growing)
		return -ENOMEM;
	for (size_t i = 0; i < report->n_entries; i++) {
		__u32 label = report->groups->groups[report->entries[i].group].frames[0];

		if (!of_labels[label]) {
			report->growing[n].label = label;
			of_labels[label] = ++n;
		}
		numbers[i] = of_labels[label] - 1;
		report->growing[numbers[i]].n_entries += report->entries[i].selected.live > 0;
	}
	for (size_t i = 0; i < profile->n_counts; i++)
		if (entries[i])
			of_counts[i] = numbers[entries[i] - 1] + 1;
	err = growth__measure(profile, of_counts, n, before, growths, error);
	if (!err)
		keep_unseen(report, growths, numbers, n);
	return err;
}

/* Measures the growth of entries. @entries has the index + 1 at a count's id - 1; 0: none. */
static int measure_growth(struct report *report, const __u32 *entries, enum report_growth growth)
{
	_cleanup_(free_ptr) struct growth *growths =
		calloc(report->n_entries + 1, sizeof(*growths));
	struct exit_frees frees;
	struct error error;
	int err;

	if (!growths)
		return -ENOMEM;
	err = exit_frees__find(report->profile, &frees, &error);
	if (!err)
		err = growth__measure(report->profile, entries, report->n_entries, frees.epoch,
				      growths, &error);
	for (size_t i = 0; i < report->n_entries && !err; i++)
		report->entries[i].growth = growths[i];
	if (err || growth != REPORT_GROWTH_OF_FUNCTIONS)
		return err;
	return measure_functions(report, entries, frees.epoch, &error);
}

static int add_up(struct report *report, const struct filtered *filtered, const __u32 *roots,
		  enum report_growth growth)
{
	const struct profile *profile = report->profile;
	_cleanup_(free_ptr) __u32 *entries = calloc(profile->n_counts + 1, sizeof(*entries));
	struct hash_table index = { 0 };
	__u64 seed = hash_seed();
	int err = 0;

	report->entries = calloc(profile->n_counts + 1, sizeof(*report->entries));
	report->previous = calloc(profile->n_counts + 1, sizeof(*report->previous));
	if (!report->entries || !report->previous || !entries)
		return -ENOMEM;
	report->at_exit = true;
	for (size_t i = 0; i < profile->n_counts && !err; i++) {
		const struct profile_count *count = &profile->counts[i];
		struct report_entry *entry;

		if (profile__function_frees(count->function) ||
		    (definition_names__counts(&profile->definitions, count->function) &&
		     !filtered->counts[i].allocations))
			continue;
		entry = get_entry(report, &index, seed, count, roots);
		if (!entry) {
			err = -ENOMEM;
			break;
		}
		entries[i] = entry - report->entries + 1;
		report->previous[i] = entry->count;
		entry->count = count->id;
		selection__add(&entry->selected, &filtered->counts[i]);
		if (filtered->counts[i].live && !ran_to_exit(profile, count))
			entry->at_exit = report->at_exit = false;
	}
	hash_table__release(&index);
	return err || growth == REPORT_NO_GROWTH ? err : measure_growth(report, entries, growth);
}

static char *root_text(const struct profile *profile, const struct profile_thread *thread,
		       enum report_by by)
{
	const char *label = profile_process__label(&profile->processes[thread->process - 1]);
	const char *kind = profile->is_labelled_by_group ? "control group" : "process";
	char *text;
	int len;

	if (by == REPORT_BY_PROCESS)
		len = asprintf(&text, "%s %s", kind, label);
	else
		len = asprintf(&text, "%s %s, thread %s", kind, label, thread->name);
	return len < 0 ? NULL : text;
}

struct root {
	char *text;
	__u32 thread; /* index of the thread */
};

static int compare_roots(const void *a, const void *b)
{
	return strcmp(((const struct root *)a)->text, ((const struct root *)b)->text);
}

/* Gives each thread, by id - 1, the label of its process or thread. */
static int label_roots(const struct profile *profile, struct stack_groups *groups,
		       enum report_by by, __u32 *labels)
{
	struct root *roots = calloc(profile->n_threads + 1, sizeof(*roots));
	__u32 label = 0;
	size_t n = 0;
	int err = roots ? 0 : -ENOMEM;

	for (; n < profile->n_threads && !err; n++) {
		roots[n].thread = n;
		roots[n].text = root_text(profile, &profile->threads[n], by);
		if (!roots[n].text)
			err = -ENOMEM;
	}
	if (!err)
		qsort(roots, n, sizeof(*roots), compare_roots);
	for (size_t i = 0; i < n && !err; i++) {
		if (!i || strcmp(roots[i].text, roots[i - 1].text))
			err = stack_groups__add_label(groups, roots[i].text, &label);
		labels[roots[i].thread] = label;
	}
	while (n)
		free(roots[--n].text);
	free(roots);
	return err;
}

static int fill(struct report *report, struct stack_groups *groups, const struct filtered *filtered,
		enum report_by by, enum report_growth growth)
{
	const struct profile *profile = report->profile;
	_cleanup_(free_ptr) __u32 *roots = calloc(profile->n_threads + 1, sizeof(*roots));
	int err = 0;

	if (!roots)
		return -ENOMEM;
	if (by == REPORT_BY_STACK)
		memset(roots, 0xff, profile->n_threads * sizeof(*roots));
	else
		err = label_roots(profile, groups, by, roots);
	return err ? err : add_up(report, filtered, roots, growth);
}

static void drop_empty(struct report *report, enum cost cost)
{
	size_t n = 0;

	for (size_t i = 0; i < report->n_entries; i++) {
		if (cost__blocks(cost, &report->entries[i].selected))
			report->entries[n++] = report->entries[i];
	}
	report->n_entries = n;
}

struct order {
	const struct stack_groups *groups;
	int sort;
};

static int compare(__u64 a, __u64 b)
{
	return a < b ? -1 : a > b;
}

static int compare_lost(const struct selection *a, const struct selection *b)
{
	int difference = compare(cost__bytes(COST_LOST, a), cost__bytes(COST_LOST, b));

	if (!difference)
		difference = compare(a->reached[PROFILE_POSSIBLY_LOST].size_bytes,
				     b->reached[PROFILE_POSSIBLY_LOST].size_bytes);
	return difference ? difference : compare(a->live_bytes, b->live_bytes);
}

static int compare_entries(const void *left, const void *right, void *context)
{
	const struct report_entry *a = left, *b = right;
	const struct order *order = context;
	enum cost second = COST_BYTES;
	int difference;

	if (order->sort == REPORT_OLDEST) {
		difference = compare(a->selected.oldest_ns, b->selected.oldest_ns);
	} else if (order->sort == REPORT_LOST) {
		difference = compare_lost(&b->selected, &a->selected);
	} else {
		difference = compare(cost__of(order->sort, &b->selected),
				     cost__of(order->sort, &a->selected));
		/* Ties of bytes are broken by blocks, and ties of blocks by bytes. */
		if (!difference && cost__is_bytes(order->sort))
			difference = compare(cost__blocks(order->sort, &b->selected),
					     cost__blocks(order->sort, &a->selected));
		else if (!difference)
			difference = compare(cost__bytes(order->sort, &b->selected),
					     cost__bytes(order->sort, &a->selected));
	}
	if (!difference)
		difference =
			compare(cost__of(second, &b->selected), cost__of(second, &a->selected));
	if (!difference)
		difference = compare(order->groups->groups[a->group].id,
				     order->groups->groups[b->group].id);
	if (!difference)
		difference = compare(a->root, b->root);
	return difference ? difference : (int)a->function - (int)b->function;
}

struct report *report__new(const struct profile *profile, struct stack_groups *groups,
			   const struct filtered *filtered, enum report_by by, int sort,
			   enum report_growth growth)
{
	struct report *report = calloc(1, sizeof(*report));
	struct order order = { groups, sort };

	if (!report)
		return NULL;
	report->profile = profile;
	report->groups = groups;
	report->runs = &filtered->runs;
	report->total = filtered->total;
	report->whole = filtered->whole;
	report->peak_bytes = filtered->peak_bytes;
	report->left = filtered->left;
	report->left_bytes = filtered->left_bytes;
	report->of_left = filtered->of_left;
	report->exit_frees = filtered->exit_frees;
	report->end_ns = filtered->end_ns;
	report->epoch_ns = filtered->epoch_ns;
	report->mappings = mapping_sums__new(profile);
	if ((profile->n_mappings && !report->mappings) ||
	    fill(report, groups, filtered, by, growth)) {
		report__free(report);
		return NULL;
	}
	drop_empty(report, sort >= COSTS ? COST_LIVE : (enum cost)sort);
	qsort_r(report->entries, report->n_entries, sizeof(*report->entries), compare_entries,
		&order);
	return report;
}

void report_entry__whole(const struct report *report, const struct report_entry *entry,
			 enum cost cost, struct selection *whole)
{
	const struct profile *profile = report->profile;
	__u32 run = cost == COST_PEAK ? report->runs->peak_run : 0;

	*whole = selection_none;
	for (__u32 id = entry->count; id; id = report->previous[id - 1]) {
		const struct profile_count *count = &profile->counts[id - 1];
		struct selection one;

		if (run && profile__count_run(profile, count) != run)
			continue;
		filter__whole_or_calls(profile, report->runs, count, &one);
		selection__add(whole, &one);
	}
}

void report_entry__add_blocks(const struct report *report, const struct report_entry *entry,
			      struct profile_blocks *sum)
{
	for (__u32 id = entry->count; id; id = report->previous[id - 1]) {
		struct profile_blocks blocks;

		if (profile__count_blocks(report->profile, &report->profile->counts[id - 1],
					  &blocks))
			profile_blocks__add(sum, &blocks);
	}
}

void report_entry__add_mappings(const struct report *report, const struct report_entry *entry,
				struct mapping_sums *sums)
{
	if (!report->mappings)
		return;
	for (__u32 id = entry->count; id; id = report->previous[id - 1])
		mapping_sums__add(sums, &report->mappings[id - 1]);
}

bool report__is_of_many_programs(const struct profile *profile, const struct filtered *filtered,
				 enum cost cost)
{
	const char *first = NULL;

	for (size_t i = 0; i < profile->n_counts; i++) {
		const char *comm = profile->processes[profile->counts[i].process - 1].comm;

		if (!cost__of(cost, &filtered->counts[i]))
			continue;
		if (first && strcmp(comm, first))
			return true;
		first = comm;
	}
	return false;
}

void report__free(struct report *report)
{
	if (!report)
		return;
	free(report->entries);
	free(report->previous);
	free(report->mappings);
	free(report->growing);
	free(report);
}

void report__histograms(const struct report *report, const struct filtered *filtered, __u64 *sizes,
			__u64 *lifetimes)
{
	const struct profile *profile = report->profile;

	memset(sizes, 0, PROFILE_BUCKETS * sizeof(*sizes));
	memset(lifetimes, 0, PROFILE_BUCKETS * sizeof(*lifetimes));
	for (size_t i = 0; i < profile->n_counts; i++) {
		struct profile_blocks blocks;

		if (!filtered->counts[i].allocations ||
		    !profile__count_blocks(profile, &profile->counts[i], &blocks))
			continue;
		for (int j = 0; j < PROFILE_BUCKETS; j++) {
			sizes[j] = profile__add_up(sizes[j], blocks.sizes[j]);
			lifetimes[j] = profile__add_up(lifetimes[j], blocks.lifetimes[j]);
		}
	}
}

/* Makes a tree. Items are sorted by their frames from the root on, so that each node is a range of
 * items, and its cost a difference of prefix sums. Only visible nodes are built. */
struct item {
	const struct stack_group *group;
	__u32 root; /* label of the root, or REPORT_NO_ROOT */
	__u32 leaf; /* label of the allocator's function; top-down only */
	__u64 blocks, size_bytes;
};

/* Sums saturate where they are shown, and not before, since differences of saturated sums would be
 * wrong. */
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

/* Returns the label of frame @at, which must exist, counted from the tree's root. */
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

/* Returns the end of the items, from @start on, that have the same frame at @at; they are
 * contiguous. */
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

/* Adds frames to the node as long as all items of @range share the next frame. Returns 0 or
 * -ENOMEM. */
static int follow_chain(struct builder *builder, struct range *range, struct report_node *node)
{
	for (;;) {
		const struct item *first = &builder->items[range->start];

		/* The shortest item comes first; where it ends, the others branch off. */
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
 * Stores the children of @parent that get a line, sorted, in *@children, which the caller frees,
 * and the sum of the others in @rest.
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

/* Builds the tree depth first, with an explicit stack, since files may nest without limit. */
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

	const struct definition_names *definitions = &report->profile->definitions;

	for (int i = 0; i < definition_names__n_functions(definitions); i++) {
		if (stack_groups__add_label(groups, definition_names__function(definitions, i),
					    &leaves[i]))
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
