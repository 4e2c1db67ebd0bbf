// SPDX-License-Identifier: GPL-3.0-or-later
/* Keeps the numbers of a recording's copies, and adds up what is between them. */
#include "top.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "charges.h"
#include "cleanup.h"
#include "count_keys.h"
#include "filter.h"
#include "hash_table.h"
#include "profile.h"
#include "stack_groups.h"

static void release_copy(struct top_copy *copy)
{
	free(copy->counts);
	*copy = (struct top_copy){ 0 };
}

static int duplicate(const struct top_copy *from, struct top_copy *to)
{
	*to = *from;
	to->counts = array__copy(from->counts, from->n, sizeof(*from->counts));
	if (to->counts || !from->n)
		return 0;
	to->n = 0;
	return -ENOMEM;
}

static int compare_counts(const void *a, const void *b)
{
	const struct top_count *left = a, *right = b;

	return left->key < right->key ? -1 : left->key > right->key;
}

static bool is_zero(const struct top_numbers *numbers)
{
	return !numbers->calls && !numbers->size_bytes && !numbers->live_bytes &&
	       !numbers->peak_bytes;
}

static bool is_gone(const struct top *top, const struct profile_process *process, bool has_ended)
{
	return process->end_ns && (!has_ended || process->end_ns <= top->ended_ns);
}

static void note_ended(struct top *top, const struct profile *profile)
{
	__u64 ended_ns = 0;
	bool any_runs = false;

	for (size_t i = 0; i < profile->n_processes; i++) {
		any_runs |= !profile->processes[i].end_ns;
		if (ended_ns < profile->processes[i].end_ns)
			ended_ns = profile->processes[i].end_ns;
	}
	if (any_runs)
		top->ended_ns = ended_ns;
}

/* Fills top->by_id. */
static int read_counts(struct top *top, const struct profile *profile, bool has_ended)
{
	_cleanup_(free_ptr) __u64 *keys = count_keys__make(profile, top->seed);
	struct top_count *counts = calloc(profile->n_counts + 1, sizeof(*counts));

	if (!keys || !counts) {
		free(counts);
		return -ENOMEM;
	}
	for (size_t i = 0; i < profile->n_counts; i++) {
		const struct profile_count *count = &profile->counts[i];
		const struct profile_process *process = &profile->processes[count->process - 1];
		struct selection whole;

		filter__whole(profile, NULL, count, &whole);
		counts[i].key = keys[i];
		counts[i].numbers = (struct top_numbers){
			.calls = whole.allocations,
			.size_bytes = whole.size_bytes,
			.live_bytes = is_gone(top, process, has_ended) ? 0 : whole.live_bytes,
			.peak_bytes = whole.peak_bytes,
		};
	}
	free(top->by_id);
	top->by_id = counts;
	top->n_by_id = profile->n_counts;
	return 0;
}

/* Keeps the numbers that are not 0, sorted. */
static int make_copy(const struct top *top, __u64 time_ns, struct top_copy *copy)
{
	*copy = (struct top_copy){
		.time_ns = time_ns,
		.counts = calloc(top->n_by_id + 1, sizeof(*copy->counts)),
	};
	if (!copy->counts)
		return -ENOMEM;
	for (size_t i = 0; i < top->n_by_id; i++)
		if (!is_zero(&top->by_id[i].numbers))
			copy->counts[copy->n++] = top->by_id[i];
	qsort(copy->counts, copy->n, sizeof(*copy->counts), compare_counts);
	return 0;
}

static int keep_live(const struct top_copy *copy, struct top_past *past)
{
	size_t n = 0;

	for (size_t i = 0; i < copy->n; i++)
		n += copy->counts[i].numbers.live_bytes > 0;
	*past = (struct top_past){ .time_ns = copy->time_ns,
				   .live = calloc(n + 1, sizeof(*past->live)) };
	if (!past->live)
		return -ENOMEM;
	for (size_t i = 0; i < copy->n; i++)
		if (copy->counts[i].numbers.live_bytes)
			past->live[past->n++] =
				(struct top_live){ copy->counts[i].key,
						   copy->counts[i].numbers.live_bytes };
	return 0;
}

/* Keeps the last copy for the minute, if it is time, and drops those that are older than need be. */
static int keep(struct top *top)
{
	const struct top_copy *last = &top->last;
	struct top_past kept;
	int err;

	if (top->n_kept && last->time_ns - top->kept[top->n_kept - 1].time_ns < TOP_KEEP_NS)
		return 0;
	err = keep_live(last, &kept);
	if (err)
		return err;
	if (top->n_kept == TOP_KEPT) {
		free(top->kept[0].live);
		memmove(top->kept, top->kept + 1, (TOP_KEPT - 1) * sizeof(*top->kept));
		top->n_kept--;
	}
	top->kept[top->n_kept++] = kept;
	return 0;
}

int top__add(struct top *top, const struct profile *profile, __u64 time_ns, bool has_ended)
{
	struct top_copy copy;
	int err;

	if (!top->seed)
		top->seed = hash_seed() | 1;
	err = read_counts(top, profile, has_ended);
	note_ended(top, profile);
	if (!err)
		err = make_copy(top, time_ns, &copy);
	if (err)
		return err;
	/* The recording may end at the moment of its last copy. */
	if (top->n_copies && copy.time_ns <= top->last.time_ns) {
		copy.time_ns = top->last.time_ns;
		release_copy(&top->last);
	} else {
		release_copy(&top->before_last);
		top->before_last = top->last;
	}
	top->last = copy;
	top->n_copies++;
	return keep(top);
}

int top__mark(struct top *top)
{
	struct top_copy mark;
	int err = duplicate(&top->last, &mark);

	if (err)
		return err;
	release_copy(&top->mark);
	top->mark = mark;
	return 0;
}

void top__release(struct top *top)
{
	release_copy(&top->last);
	release_copy(&top->before_last);
	release_copy(&top->mark);
	while (top->n_kept)
		free(top->kept[--top->n_kept].live);
	free(top->by_id);
	*top = (struct top){ 0 };
}

/* Returns the youngest copy that is a minute older than the last, or the oldest that there is; top__add()
 * keeps the first. */
static const struct top_past *minute_ago(const struct top *top)
{
	const struct top_past *found = &top->kept[0];

	for (size_t i = 1; i < top->n_kept; i++)
		if (top->last.time_ns - top->kept[i].time_ns >= TOP_MINUTE_NS)
			found = &top->kept[i];
	return found;
}

__u64 top__growth_span_ns(const struct top *top)
{
	return top->last.time_ns - minute_ago(top)->time_ns;
}

static __u64 rate_span_ns(const struct top *top)
{
	return top->last.time_ns - top->before_last.time_ns;
}

__u64 top__mark_span_ns(const struct top *top)
{
	return top->last.time_ns - top->mark.time_ns;
}

static struct top_numbers find(const struct top_copy *copy, __u64 key)
{
	size_t at = ARRAY_LOWER_BOUND(copy->n, i, copy->counts[i].key < key);

	if (at < copy->n && copy->counts[at].key == key)
		return copy->counts[at].numbers;
	return (struct top_numbers){ 0 };
}

static __u64 find_live(const struct top_past *past, __u64 key)
{
	size_t at = ARRAY_LOWER_BOUND(past->n, i, past->live[i].key < key);

	return at < past->n && past->live[at].key == key ? past->live[at].bytes : 0;
}

static void add(struct top_numbers *to, const struct top_numbers *more)
{
	to->calls = profile__add_up(to->calls, more->calls);
	to->size_bytes = profile__add_up(to->size_bytes, more->size_bytes);
	to->live_bytes = profile__add_up(to->live_bytes, more->live_bytes);
	to->peak_bytes = profile__add_up(to->peak_bytes, more->peak_bytes);
}

/* The sums under way of one call of top__add_up(). */
struct adding {
	const struct top *top;
	const struct profile *profile;
	const struct stack_groups *groups;
	const struct top_wish *wish;
	struct charges charges;
	__u64 *labels;		 /* by label: hash of its text */
	__u64 *group_keys;	 /* by group */
	struct hash_table index; /* rows: index + 1 */
	struct top_rows *rows;
	size_t room;
};

/* Returns the label of the function that the rows of functions have for a group; nothing charges mappings
 * and page faults to any, and the innermost has them then. */
static __u32 function_label(const struct adding *adding, __u32 group)
{
	__u32 function = adding->charges.of_groups[group];

	return function ? adding->charges.functions[function - 1].label
			: adding->groups->groups[group].frames[0];
}

static __u64 key_of(const struct adding *adding, enum top_by by, const struct profile_count *count)
{
	__u32 group = adding->groups->by_stack[count->stack - 1];
	__u64 seed = adding->top->seed;

	switch (by) {
	case TOP_BY_FUNCTION:
		return adding->labels[function_label(adding, group)];
	case TOP_BY_THREAD:
		return thread_key__of(adding->profile, count->thread, seed);
	case TOP_BY_PROCESS:
		return process_key__of(&adding->profile->processes[count->process - 1], seed);
	default:
		return hash_mix(adding->group_keys[group], count->function);
	}
}

static bool is_in_scope(const struct adding *adding, const struct profile_count *count)
{
	for (size_t i = 0; i < TOP_BYS; i++) {
		const struct top_scope *scope = &adding->wish->scopes[i];

		if (scope->is_given && key_of(adding, scope->by, count) != scope->key)
			return false;
	}
	return true;
}

static bool has_key(const void *owner, __u32 id, const void *key)
{
	return ((const struct top_rows *)owner)->rows[id - 1].key == *(const __u64 *)key;
}

/* Returns the row of @count, which is made if it is missing; NULL if there is no memory. */
static struct top_row *get_row(struct adding *adding, const struct profile_count *count)
{
	struct top_rows *rows = adding->rows;
	__u64 key = key_of(adding, rows->by, count);
	__u32 group = adding->groups->by_stack[count->stack - 1];
	__u32 found = hash_table__find(&adding->index, key, has_key, rows, &key);

	if (found)
		return &rows->rows[found - 1];
	if (array__reserve(&rows->rows, &adding->room, rows->n + 1, sizeof(*rows->rows)) ||
	    hash_table__insert(&adding->index, key, rows->n + 1))
		return NULL;
	rows->rows[rows->n] = (struct top_row){
		.key = key,
		.group = group,
		.label = function_label(adding, group),
		.depth = adding->charges.depths[group],
		.process = count->process,
		.thread = count->thread,
		.function = count->function,
	};
	return &rows->rows[rows->n++];
}

static int add_counts(struct adding *adding, const struct selection *selected)
{
	const struct top *top = adding->top;
	const struct top_past *minute = minute_ago(top);

	for (size_t i = 0; i < adding->profile->n_counts && i < top->n_by_id; i++) {
		const struct profile_count *count = &adding->profile->counts[i];
		const struct top_count *now = &top->by_id[i];
		struct top_numbers rated, marked;
		struct top_row *row;
		__u64 past_bytes;

		if (!selected[i].allocations || !is_in_scope(adding, count))
			continue;
		row = get_row(adding, count);
		if (!row)
			return -ENOMEM;
		rated = find(&top->before_last, now->key);
		marked = find(&top->mark, now->key);
		past_bytes = find_live(minute, now->key);
		for (int j = 0; j < 2; j++) {
			struct top_row *to = j ? &adding->rows->total : row;

			add(&to->now, &now->numbers);
			add(&to->rated, &rated);
			add(&to->marked, &marked);
			to->minute_bytes = profile__add_up(to->minute_bytes, past_bytes);
		}
	}
	return 0;
}

/* Numbers of calls only grow, but those of sampled calls are estimates, which may fall. */
static double grown(__u64 now, __u64 before)
{
	return now > before ? (double)(now - before) : 0;
}

static void work_out(const struct top *top, const struct top_wish *wish, struct top_row *row)
{
	double seconds = rate_span_ns(top) / 1e9;
	bool marks = wish->since_mark;
	const struct top_numbers *past = marks ? &row->marked : &row->rated;

	if (marks || !seconds)
		seconds = 1;
	row->values[TOP_CALLS] = grown(row->now.calls, past->calls) / seconds;
	row->values[TOP_BYTES] = grown(row->now.size_bytes, past->size_bytes) / seconds;
	row->values[TOP_LIVE] = row->now.live_bytes;
	row->values[TOP_GROWTH] = (double)row->now.live_bytes -
				  (double)(marks ? row->marked.live_bytes : row->minute_bytes);
	row->values[TOP_PEAK] = row->now.peak_bytes;
}

static int compare_rows(const void *a, const void *b, void *context)
{
	const struct top_row *left = a, *right = b;
	enum top_column sort = *(const enum top_column *)context;

	if (left->values[sort] != right->values[sort])
		return left->values[sort] > right->values[sort] ? -1 : 1;
	if (left->now.live_bytes != right->now.live_bytes)
		return left->now.live_bytes > right->now.live_bytes ? -1 : 1;
	if (left->now.size_bytes != right->now.size_bytes)
		return left->now.size_bytes > right->now.size_bytes ? -1 : 1;
	return left->key < right->key ? -1 : left->key > right->key;
}

/* Hashes labels by their text, and groups by those of their frames. */
static int hash_names(struct adding *adding)
{
	const struct stack_groups *groups = adding->groups;

	adding->labels = calloc(groups->n_labels + 1, sizeof(*adding->labels));
	adding->group_keys = calloc(groups->n_groups + 1, sizeof(*adding->group_keys));
	if (!adding->labels || !adding->group_keys)
		return -ENOMEM;
	for (size_t i = 0; i < groups->n_labels; i++) {
		const struct stack_label *label = &groups->labels[i];

		adding->labels[i] = hash_string(adding->top->seed, label->text);
		if (label->module)
			adding->labels[i] =
				hash_string(adding->labels[i],
					    adding->profile->modules[label->module - 1].path);
	}
	for (size_t i = 0; i < groups->n_groups; i++) {
		const struct stack_group *group = &groups->groups[i];
		__u64 hash = adding->top->seed;

		for (__u32 j = 0; j < group->n_frames; j++)
			hash = hash_mix(hash, adding->labels[group->frames[j]]);
		adding->group_keys[i] = hash;
	}
	return 0;
}

int top__add_up(const struct top *top, const struct profile *profile,
		const struct stack_groups *groups, const struct selection *selected,
		const struct top_wish *wish, struct top_rows *rows)
{
	struct adding adding = {
		.top = top,
		.profile = profile,
		.groups = groups,
		.wish = wish,
		.rows = rows,
	};
	enum top_column sort = wish->sort;
	int err;

	*rows = (struct top_rows){ .by = wish->by };
	err = charges__make(profile, groups, selected, &adding.charges);
	if (!err)
		err = hash_names(&adding);
	if (!err)
		err = add_counts(&adding, selected);
	charges__release(&adding.charges);
	free(adding.labels);
	free(adding.group_keys);
	hash_table__release(&adding.index);
	if (err) {
		top_rows__release(rows);
		return err;
	}
	for (size_t i = 0; i < rows->n; i++)
		work_out(top, wish, &rows->rows[i]);
	work_out(top, wish, &rows->total);
	if (rows->n)
		qsort_r(rows->rows, rows->n, sizeof(*rows->rows), compare_rows, &sort);
	return 0;
}

void top_rows__release(struct top_rows *rows)
{
	free(rows->rows);
	*rows = (struct top_rows){ 0 };
}
