// SPDX-License-Identifier: GPL-3.0-or-later
#include "page_trie.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "array.h"
#include "cleanup.h"
#include "event_chart.h"
#include "page_data.h"
#include "page_frames.h"
#include "profile.h"
#include "stack_groups.h"
#include "stack_view.h"

/* The key of a node: its place in the trie, and the column of a chart in which it was added. */
struct node_key {
	__u32 parent, frame, column;
};

static bool match_node(const void *owner, __u32 id, const void *key)
{
	const struct page_trie *trie = owner;
	const struct node_key *wanted = key;

	return trie->parents[id] == wanted->parent && trie->node_frames[id] == wanted->frame &&
	       (!trie->column || trie->chart_nodes[id].column == wanted->column);
}

static int add_node(struct page_trie *trie, __u32 parent, __u32 frame)
{
	size_t room = trie->room;

	if (trie->n_nodes >= UINT32_MAX ||
	    array__reserve(&trie->parents, &room, trie->n_nodes + 1, sizeof(*trie->parents)) ||
	    array__reserve(&trie->node_frames, &trie->room, trie->n_nodes + 1,
			   sizeof(*trie->node_frames)))
		return -ENOMEM;
	trie->parents[trie->n_nodes] = parent;
	trie->node_frames[trie->n_nodes] = frame;
	trie->n_nodes++;
	return 0;
}

int page_trie__init(struct page_trie *trie, const struct page_trie_options *options)
{
	*trie = (struct page_trie){ .seed = hash_seed(), .options = *options };
	return add_node(trie, 0, 0);
}

static int enter(struct page_trie *trie, __u32 frame, __u32 *at)
{
	struct node_key key = { *at, frame, 0 };
	__u64 hash = hash_mix(trie->seed, (__u64)key.parent << 32 | key.frame);
	__u32 found = hash_table__find(&trie->index, hash, match_node, trie, &key);
	int err;

	if (!found) {
		found = trie->n_nodes;
		err = add_node(trie, key.parent, frame);
		if (!err)
			err = hash_table__insert(&trie->index, hash, found);
		if (err)
			return err;
	}
	*at = found;
	return 0;
}

/* Does the same in a chart, where a frame goes on only if it is the last one of its caller, or was in this column. */
static int enter_in_chart(struct page_trie *trie, __u32 frame, __u32 *at)
{
	struct node_key key = { *at, frame, trie->column };
	__u64 hash =
		hash_mix(hash_mix(trie->seed, (__u64)key.parent << 32 | key.frame), key.column);
	__u32 node = trie->chart_nodes[*at].last_child;
	int err = 0;

	if (!node || trie->node_frames[node] != frame)
		node = hash_table__find(&trie->index, hash, match_node, trie, &key);
	if (!node) {
		node = trie->n_nodes;
		err = add_node(trie, key.parent, frame);
	}
	if (!err && trie->chart_nodes[node].column != key.column)
		err = hash_table__insert(&trie->index, hash, node);
	if (err)
		return err;
	trie->chart_nodes[node].column = key.column;
	trie->chart_nodes[*at].last_child = node;
	*at = node;
	return 0;
}

/* Returns the node with @frame among @at and the nodes above it; 0 if there is none. */
static __u32 find_above(const struct page_trie *trie, __u32 at, __u32 frame)
{
	while (at && trie->node_frames[at] != frame)
		at = trie->parents[at];
	return at;
}

int page_trie__add(struct page_trie *trie, const __u32 *frames, size_t n, __u32 *node)
{
	size_t n_names =
		trie->options.reversed ? 0 : !trie->options.no_comm + trie->options.by_thread;
	__u32 at = 0;
	int err = 0;

	if (trie->column)
		err = array__reserve_zeroed(&trie->chart_nodes, &trie->chart_room,
					    trie->n_nodes + n, sizeof(*trie->chart_nodes));
	for (size_t i = 0; i < n && !err; i++) {
		__u32 frame = frames[trie->options.reversed ? n - 1 - i : i];
		__u32 above = trie->options.merged ? find_above(trie, at, frame) : 0;

		if (above)
			at = above;
		else if (trie->column && i >= n_names)
			err = enter_in_chart(trie, frame, &at);
		else
			err = enter(trie, frame, &at);
	}
	*node = at;
	return err;
}

int page_trie__write(const struct page_trie *trie, FILE *to)
{
	int err = page_data__u32("trie.parent", trie->parents, trie->n_nodes, to);

	if (!err)
		err = page_data__u32("trie.frame", trie->node_frames, trie->n_nodes, to);
	return err ? err : page_frames__write(&trie->frames, to);
}

void page_trie__release(struct page_trie *trie)
{
	page_frames__release(&trie->frames);
	free(trie->parents);
	free(trie->node_frames);
	free(trie->chart_nodes);
	hash_table__release(&trie->index);
}

/* Adds the stacks of a profile to a trie. */

#define NO_FRAME UINT32_MAX

struct stacks {
	struct page_trie *trie;
	const struct page_input *input;
	/* Indexes of frames by the label of the groups, process, thread and function; NO_FRAME
	 * until one is needed. */
	__u32 *labels, *processes, *threads, *functions;
	struct page_frame *frames; /* frames by label of the view */
	__u32 *path;		   /* frames of the stack that is being added */
	size_t room;
};

static __u32 *new_indexes(size_t n)
{
	__u32 *indexes = malloc((n + 1) * sizeof(*indexes));

	for (size_t i = 0; indexes && i < n; i++)
		indexes[i] = NO_FRAME;
	return indexes;
}

static int add_label(struct stacks *stacks, __u32 at)
{
	const struct stack_label *label = &stacks->input->groups->labels[at];
	const struct page_frame missing = { .name = label->text, .kind = FRAME_KIND_MISSING };
	bool is_frame = at < stacks->input->groups->n_view_labels;

	if (stacks->labels[at] != NO_FRAME)
		return 0;
	return page_frames__add(&stacks->trie->frames, is_frame ? &stacks->frames[at] : &missing,
				&stacks->labels[at]);
}

static int add_name(struct stacks *stacks, const char *name, enum frame_kind kind, __u32 *index)
{
	const struct page_frame frame = { .name = *name ? name : "[unknown]", .kind = kind };

	return *index == NO_FRAME ? page_frames__add(&stacks->trie->frames, &frame, index) : 0;
}

/* Makes the frames of @count, and puts them into the path. */
static int fill_path(struct stacks *stacks, const struct profile_count *count, size_t *n)
{
	const struct stack_groups *groups = stacks->input->groups;
	const struct profile *profile = stacks->input->profile;
	const struct stack_group *group = &groups->groups[groups->by_stack[count->stack - 1]];
	__u32 *process = &stacks->processes[count->process - 1];
	__u32 *thread = &stacks->threads[count->thread - 1];
	__u32 *function = &stacks->functions[count->function];
	int err = array__reserve(&stacks->path, &stacks->room, (size_t)group->n_frames + 3,
				 sizeof(*stacks->path));

	*n = 0;
	if (!err && !stacks->trie->options.no_comm) {
		err = add_name(stacks,
			       profile_process__label(&profile->processes[count->process - 1]),
			       FRAME_KIND_PROCESS, process);
		stacks->path[(*n)++] = *process;
	}
	if (!err && stacks->trie->options.by_thread) {
		err = add_name(stacks, profile->threads[count->thread - 1].name, FRAME_KIND_THREAD,
			       thread);
		stacks->path[(*n)++] = *thread;
	}
	for (__u32 i = group->n_frames; i && !err; i--) {
		err = add_label(stacks, group->frames[i - 1]);
		stacks->path[(*n)++] = stacks->labels[group->frames[i - 1]];
	}
	if (!err) {
		err = add_name(stacks,
			       definition_names__function(&profile->definitions, count->function),
			       FRAME_KIND_ALLOCATOR, function);
		stacks->path[(*n)++] = *function;
	}
	return err;
}

static int add_counts(struct stacks *stacks, __u32 *nodes)
{
	const struct profile *profile = stacks->input->profile;
	int err = 0;

	for (size_t i = 0; i < profile->n_counts && !err; i++) {
		const struct profile_count *count = &profile->counts[i];
		const struct selection *selected = &stacks->input->counts[i];
		size_t n;

		if (profile__function_frees(count->function) ||
		    (!selected->allocations && !selected->size_bytes))
			continue;
		err = fill_path(stacks, count, &n);
		if (!err)
			err = page_trie__add(stacks->trie, stacks->path, n, &nodes[i]);
	}
	return err;
}

static int init_stacks(struct stacks *stacks, struct page_trie *trie,
		       const struct page_input *input)
{
	const struct profile *profile = input->profile;

	*stacks = (struct stacks){
		.trie = trie,
		.input = input,
		.labels = new_indexes(input->groups->n_labels),
		.processes = new_indexes(profile->n_processes),
		.threads = new_indexes(profile->n_threads),
		.functions = new_indexes(AP_FUNCTIONS),
		.frames = page_labels__new(profile, input->view),
	};
	return stacks->labels && stacks->processes && stacks->threads && stacks->functions &&
			       stacks->frames
		       ? 0
		       : -ENOMEM;
}

static void release_stacks(struct stacks *stacks)
{
	free(stacks->labels);
	free(stacks->processes);
	free(stacks->threads);
	free(stacks->functions);
	free(stacks->frames);
	free(stacks->path);
}

int page_trie__add_profile(struct page_trie *trie, const struct page_input *input, __u32 **nodes)
{
	__u32 *made = calloc(input->profile->n_counts + 1, sizeof(*made));
	struct stacks stacks;
	int err = init_stacks(&stacks, trie, input);

	if (!made)
		err = -ENOMEM;
	if (!err)
		err = add_counts(&stacks, made);
	release_stacks(&stacks);
	if (err)
		free(made);
	else
		*nodes = made;
	return err;
}

/* Adds the calls of a recording in their order to a trie. */

/* Stores the node of each part's stack. */
static int add_parts(struct stacks *stacks, const struct event_chart *chart, __u32 *nodes)
{
	const struct profile *profile = stacks->input->profile;
	int err = 0;

	for (size_t i = 0; i < chart->n && !err; i++) {
		const struct event_chart_part *part = &chart->parts[i];
		size_t n;

		stacks->trie->column = part->column;
		err = fill_path(stacks, &profile->counts[part->count - 1], &n);
		if (!err)
			err = page_trie__add(stacks->trie, stacks->path, n, &nodes[i]);
	}
	return err;
}

/* Adds up what the nodes, @nodes by part, have. */
static void fill_chart(const struct page_trie *trie, const struct event_chart *chart,
		       const __u32 *nodes, struct page_chart *out)
{
	for (size_t node = 0; node < trie->n_nodes; node++)
		out->first_ns[node] = INFINITY;
	for (size_t i = 0; i < chart->n; i++) {
		const struct event_chart_part *part = &chart->parts[i];
		__u32 node = nodes[i];

		out->own[node] += part->cost;
		out->first_ns[node] = fmin(out->first_ns[node], part->first_ns);
		out->last_ns[node] = fmax(out->last_ns[node], part->last_ns);
	}
	for (size_t node = trie->n_nodes - 1; node > 0; node--) {
		__u32 parent = trie->parents[node];

		out->first_ns[parent] = fmin(out->first_ns[parent], out->first_ns[node]);
		out->last_ns[parent] = fmax(out->last_ns[parent], out->last_ns[node]);
	}
	if (!chart->n)
		out->first_ns[0] = 0;
}

int page_trie__add_chart(struct page_trie *trie, const struct page_input *input,
			 const struct event_chart *chart, struct page_chart *out)
{
	_cleanup_(free_ptr) __u32 *nodes = calloc(chart->n + 1, sizeof(*nodes));
	struct page_chart made = { 0 };
	struct stacks stacks;
	int err = init_stacks(&stacks, trie, input);

	if (!nodes)
		err = -ENOMEM;
	if (!err)
		err = add_parts(&stacks, chart, nodes);
	release_stacks(&stacks);
	if (err)
		return err;
	made.own = calloc(trie->n_nodes, sizeof(*made.own));
	made.first_ns = calloc(trie->n_nodes, sizeof(*made.first_ns));
	made.last_ns = calloc(trie->n_nodes, sizeof(*made.last_ns));
	if (!made.own || !made.first_ns || !made.last_ns) {
		page_chart__release(&made);
		return -ENOMEM;
	}
	fill_chart(trie, chart, nodes, &made);
	*out = made;
	return 0;
}

void page_chart__release(struct page_chart *chart)
{
	free(chart->own);
	free(chart->first_ns);
	free(chart->last_ns);
	*chart = (struct page_chart){ 0 };
}

/* Adds the stacks of two profiles to a trie. */

struct pairs {
	struct page_trie *trie;
	const struct diff *diff;
	/* Frames of the side that is being added, by label of its view. */
	struct page_frame *labels;
	__u32 *names;	 /* indexes of frames by name of the diff; NO_FRAME: none yet */
	__u32 *partners; /* for each stack of BEFORE its partner, a stack of AFTER */
	__u32 *nodes;	 /* nodes by stack; 0: none yet */
	__u32 *path;
	size_t room;
};

/* Stores the frame of a name that is no code: the allocator's function, a thread or a process. */
static int add_pair_name(struct pairs *pairs, __u32 name, enum frame_kind kind, __u32 *frame)
{
	const struct page_frame added = { .name = pairs->diff->names[name].function, .kind = kind };

	return page_frames__add(&pairs->trie->frames, &added, frame);
}

static int add_pair_label(struct pairs *pairs, __u32 name, __u32 label, __u32 *frame)
{
	struct page_frame added = pairs->labels[label];
	int err;

	*frame = pairs->names[name];
	if (*frame != NO_FRAME)
		return 0;
	added.name = pairs->diff->names[name].function;
	err = page_frames__add(&pairs->trie->frames, &added, frame);
	if (!err)
		pairs->names[name] = *frame;
	return err;
}

/* Fills the path with the frames of @stack, the stack of @count, from the outermost one on. */
static int fill_pair_path(struct pairs *pairs, const struct page_input *input,
			  const struct profile_count *count, const struct diff_stack *stack)
{
	const struct diff_options *options = &pairs->diff->options;
	const __u32 *names = diff_stack__frames(pairs->diff, stack), *labels;
	__u32 n_around = options->by_thread + options->by_process, n;
	size_t n_labels;
	int err = array__reserve(&pairs->path, &pairs->room, stack->n_frames, sizeof(*pairs->path));

	labels = stack_view__frames(input->view, count->stack, &n_labels);
	n = stack->n_frames - 1 - n_around;
	for (__u32 i = 0; i < stack->n_frames && !err; i++) {
		__u32 *frame = &pairs->path[stack->n_frames - 1 - i];
		bool is_process = options->by_process && i == stack->n_frames - 1;

		if (!i)
			err = add_pair_name(pairs, names[i], FRAME_KIND_ALLOCATOR, frame);
		else if (i <= n && i <= n_labels)
			err = add_pair_label(pairs, names[i], labels[i - 1], frame);
		else
			err = add_pair_name(pairs, names[i],
					    is_process ? FRAME_KIND_PROCESS : FRAME_KIND_THREAD,
					    frame);
	}
	return err;
}

static int add_count(struct pairs *pairs, const struct page_input *input,
		     const struct profile_count *count, __u32 stack, __u32 *node)
{
	__u32 partner = pairs->partners[stack - 1];
	const struct diff_stack *added = &pairs->diff->stacks[stack - 1];
	int err = 0;

	if (!pairs->nodes[stack - 1] && partner)
		pairs->nodes[stack - 1] = pairs->nodes[partner - 1];
	if (!pairs->nodes[stack - 1]) {
		err = fill_pair_path(pairs, input, count, added);
		if (!err)
			err = page_trie__add(pairs->trie, pairs->path, added->n_frames,
					     &pairs->nodes[stack - 1]);
	}
	if (!err)
		*node = pairs->nodes[stack - 1];
	return err;
}

static int add_side(struct pairs *pairs, enum diff_side side, const struct page_input *input,
		    __u32 **nodes)
{
	const struct profile *profile = input->profile;
	__u32 *made = calloc(profile->n_counts + 1, sizeof(*made));
	int err = 0;

	pairs->labels = page_labels__new(profile, input->view);
	if (!made || !pairs->labels)
		err = -ENOMEM;
	for (size_t i = 0; i < profile->n_counts && !err; i++) {
		__u32 stack = pairs->diff->count_stacks[side][i];

		if (stack)
			err = add_count(pairs, input, &profile->counts[i], stack, &made[i]);
	}
	free(pairs->labels);
	if (err)
		free(made);
	else
		*nodes = made;
	return err;
}

int page_trie__add_diff(struct page_trie *trie, const struct diff *diff,
			const struct page_input inputs[DIFF_SIDES], __u32 *nodes[DIFF_SIDES])
{
	struct pairs pairs = {
		.trie = trie,
		.diff = diff,
		.names = malloc((diff->n_names + 1) * sizeof(*pairs.names)),
		.partners = calloc(diff->n_stacks + 1, sizeof(*pairs.partners)),
		.nodes = calloc(diff->n_stacks + 1, sizeof(*pairs.nodes)),
	};
	__u32 *made[DIFF_SIDES] = { 0 };
	int err = pairs.names && pairs.partners && pairs.nodes ? 0 : -ENOMEM;

	for (size_t i = 0; i < diff->n_names && !err; i++)
		pairs.names[i] = NO_FRAME;
	for (size_t i = 0; i < diff->n_entries && !err; i++) {
		const __u32 *stacks = diff->entries[i].stacks;

		if (stacks[DIFF_BEFORE] && stacks[DIFF_AFTER] != stacks[DIFF_BEFORE])
			pairs.partners[stacks[DIFF_BEFORE] - 1] = stacks[DIFF_AFTER];
	}
	/* AFTER comes first, since partners of its stacks take their nodes. */
	for (int side = DIFF_AFTER; side >= DIFF_BEFORE && !err; side--)
		err = add_side(&pairs, side, &inputs[side], &made[side]);
	free(pairs.names);
	free(pairs.partners);
	free(pairs.nodes);
	free(pairs.path);
	for (int side = 0; side < DIFF_SIDES; side++) {
		if (err)
			free(made[side]);
		else
			nodes[side] = made[side];
	}
	return err;
}

/* A graph of a page: the numbers of one cost. @beside is the same cost in the other unit. */
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
	{ "resident", "resident bytes of live blocks", "live", COST_RESIDENT, true },
	{ "unique", "bytes of pages of one stack alone", "live", COST_UNIQUE, true },
	{ "lost", "bytes of lost blocks", "lost-blocks", COST_LOST, true },
	{ "lost-blocks", "lost blocks", "lost", COST_LOST, false },
};

static const struct graph *graph_of(enum cost cost)
{
	size_t i = 0;

	while (graph_kinds[i].cost != cost || graph_kinds[i].is_bytes != cost__is_bytes(cost))
		i++;
	return &graph_kinds[i];
}

static bool is_known(const struct page_graphs *graphs, const struct graph *graph)
{
	if (graphs->chart && graph != graph_of(graphs->chart_cost))
		return false;
	if ((cost__needs_resident(graph->cost) && !graphs->has_resident) ||
	    (cost__needs_reach(graph->cost) && !graphs->has_reach))
		return false;
	return !cost__needs_live(graph->cost) ||
	       (graphs->has_live && !(graphs->selects_blocks && cost__is_of_stacks(graph->cost)));
}

static __u64 number_of(const struct graph *graph, const struct selection *selected)
{
	return graph->is_bytes ? cost__bytes(graph->cost, selected)
			       : cost__blocks(graph->cost, selected);
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

/* Adds the numbers to @sums, indexed by node or, with @stacks, by the number of the stack that
 * ends at a node. */
static void add_up(const struct page_graphs *graphs, enum diff_side side, const struct graph *graph,
		   const __u32 *stacks, double *sums)
{
	const struct page_input *input = graphs->inputs[side];

	for (size_t i = 0; graphs->chart && i < graphs->trie->n_nodes; i++)
		if (!stacks || graphs->chart->own[i] > 0)
			sums[stacks ? stacks[i] : i] = graphs->chart->own[i];
	for (size_t i = 0; !graphs->chart && i < input->profile->n_counts; i++) {
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

/* Numbers the nodes at which stacks end: *@stacks is indexed by node, *@nodes by number. The
 * caller frees both. */
static int number_stacks(const struct page_graphs *graphs, __u32 **stacks, __u32 **nodes, size_t *n)
{
	__u32 *numbers = calloc(graphs->trie->n_nodes, sizeof(*numbers)), *ends = NULL;

	if (!numbers)
		return -ENOMEM;
	for (size_t i = 0; graphs->chart && i < graphs->trie->n_nodes; i++)
		numbers[i] = graphs->chart->own[i] > 0;
	for (int side = 0; side < DIFF_SIDES; side++)
		for (size_t i = 0;
		     graphs->nodes[side] && i < graphs->inputs[side]->profile->n_counts; i++)
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
	if (!err && graphs->chart)
		err = page_data__f64("chart.first_ns", graphs->chart->first_ns,
				     graphs->trie->n_nodes, to);
	if (!err && graphs->chart)
		err = page_data__f64("chart.last_ns", graphs->chart->last_ns, graphs->trie->n_nodes,
				     to);
	for (size_t i = 0; i < ARRAY_SIZE(graph_kinds) && !err; i++) {
		if (!is_known(graphs, &graph_kinds[i]))
			continue;
		err = write_graph(graphs, &graph_kinds[i], DIFF_AFTER, stacks, n, to);
		if (!err && graphs->inputs[DIFF_BEFORE])
			err = write_graph(graphs, &graph_kinds[i], DIFF_BEFORE, stacks, n, to);
	}
	return err;
}
