// SPDX-License-Identifier: GPL-3.0-or-later
/* Writes a report as JSON. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "advice.h"
#include "array.h"
#include "completeness.h"
#include "event_blocks.h"
#include "finding_text.h"
#include "json.h"
#include "mapping_sums.h"
#include "profile_runs.h"
#include "recording_text.h"
#include "report_output.h"
#include "stack_groups.h"
#include "stack_view.h"
#include "suppressions.h"

/* Returns the error of an estimate. Without a sample only its bytes have a bound. */
static json_object *margin_of(const struct profile_estimate *estimate, bool bytes, __u64 unseen)
{
	if (!estimate->samples && unseen)
		return bytes ? json__count(unseen) : NULL;
	return json__count(
		ceil(fmin(profile_estimate__margin(estimate, bytes), (double)PROFILE_MAX)));
}

/* Returns the errors of sampled numbers. The parameters are those of json_selection(). */
static json_object *json_error(const struct selection *selection, bool has_live, bool by_stack,
			       __u64 unseen)
{
	const struct profile_estimate *live = &selection->of_live;
	const struct profile_estimate *temporary = &selection->of_temporary;
	json_object *object = json_object_new_object();

	json__add(object, "samples", json__count(selection->of_allocations.samples));
	json__add(object, "allocations", margin_of(&selection->of_allocations, false, unseen));
	json__add(object, "bytes", margin_of(&selection->of_allocations, true, unseen));
	json__add(object, "live_samples", has_live ? json__count(live->samples) : NULL);
	json__add(object, "live", has_live ? margin_of(live, false, unseen) : NULL);
	json__add(object, "live_bytes", has_live ? margin_of(live, true, unseen) : NULL);
	json__add(object, "temporary_samples", by_stack ? json__count(temporary->samples) : NULL);
	json__add(object, "temporary", by_stack ? margin_of(temporary, false, unseen) : NULL);
	json__add(object, "temporary_bytes", by_stack ? margin_of(temporary, true, unseen) : NULL);
	return object;
}

static void add_reach(json_object *object, const struct selection *selection, bool is_known)
{
	static const char *const keys[PROFILE_REACHES][2] = {
		[PROFILE_LOST] = { "lost", "lost_bytes" },
		[PROFILE_INDIRECTLY_LOST] = { "indirectly_lost", "indirectly_lost_bytes" },
		[PROFILE_POSSIBLY_LOST] = { "possibly_lost", "possibly_lost_bytes" },
		[PROFILE_REACHABLE] = { "reachable", "reachable_bytes" },
	};

	for (int i = 0; i < PROFILE_REACHES; i++) {
		const struct profile_reached *reached = &selection->reached[i];

		json__add(object, keys[i][0], is_known ? json__count(reached->blocks) : NULL);
		json__add(object, keys[i][1], is_known ? json__count(reached->size_bytes) : NULL);
	}
}

/* Returns the figures of a selection. Values that need --live are null without it, as are those
 * that a filter makes unknown. */
static json_object *json_selection(const struct report_output *output,
				   const struct selection *selection, bool is_whole)
{
	json_object *object = json_object_new_object();
	bool has_live = filter__has_live(output->profile);
	bool by_stack = has_live && (is_whole || !report_output__selects_blocks(output));

	json__add(object, "allocations", json__count(selection->allocations));
	json__add(object, "bytes", json__count(selection->size_bytes));
	json__add(object, "live", has_live ? json__count(selection->live) : NULL);
	json__add(object, "live_bytes", has_live ? json__count(selection->live_bytes) : NULL);
	json__add(object, "oldest_age_seconds",
		  selection->oldest_ns != UINT64_MAX &&
				  selection->oldest_ns <= output->report->end_ns
			  ? json__seconds((output->report->end_ns - selection->oldest_ns) / 1e9)
			  : NULL);
	json__add(object, "temporary", by_stack ? json__count(selection->temporary) : NULL);
	json__add(object, "temporary_bytes",
		  by_stack ? json__count(selection->temporary_bytes) : NULL);
	json__add(object, "peak", by_stack ? json__count(selection->peak) : NULL);
	json__add(object, "peak_bytes", by_stack ? json__count(selection->peak_bytes) : NULL);
	if (output->profile->n_rss) {
		json__add(object, "resident_bytes",
			  by_stack ? json__count(selection->resident_bytes) : NULL);
		json__add(object, "unique_bytes",
			  by_stack ? json__count(cost__bytes(COST_UNIQUE, selection)) : NULL);
		json__add(object, "unique_slack_bytes",
			  by_stack ? json__count(selection->unique_slack_bytes) : NULL);
	}
	if (profile__has_reach(output->profile))
		add_reach(object, selection, is_whole || output->knows_reach);
	if (profile__sample_bytes(output->profile))
		json__add(object, "error",
			  json_error(selection, has_live, by_stack,
				     profile__unseen_bytes(output->profile)));
	if (!is_whole) {
		json__add(object, "unsure", json__count(selection->unsure));
		json__add(object, "unsure_bytes", json__count(selection->unsure_bytes));
	}
	return object;
}

static json_object *json_frame(const struct report_output *output,
			       const struct stack_label *printed)
{
	json_object *frame = json_object_new_object();

	json__add(frame, "name", json__string(printed->text));
	json__add(frame, "module",
		  printed->module ? json__string(output->profile->modules[printed->module - 1].path)
				  : NULL);
	json__add(frame, "inlined", json_object_new_boolean(printed->inlined));
	return frame;
}

/* Returns whether @label is a text that marks the end of a stack, in place of which JSON has
 * "end". */
static bool is_end(const struct stack_groups *groups, size_t label)
{
	return label - groups->n_view_labels < groups->n_end_labels;
}

static json_object *json_frames(const struct report_output *output)
{
	json_object *frames = json_object_new_array();

	for (size_t i = 0; i < output->groups->n_labels; i++)
		if (!is_end(output->groups, i))
			json_object_array_add(frames,
					      json_frame(output, &output->groups->labels[i]));
	return frames;
}

/* Returns the index of @label in the list of frames. */
static json_object *frame_at(const struct report_output *output, __u32 label)
{
	return json__count(label < output->groups->n_view_labels
				   ? label
				   : label - output->groups->n_end_labels);
}

/* Returns the growth; NULL if it is unknown. */
static json_object *json_growth(const struct growth *growth)
{
	json_object *object;

	if (!growth->is_known)
		return NULL;
	object = json_object_new_object();
	json__add(object, "growing",
		  growth->verdict == GROWTH_UNDECIDED
			  ? NULL
			  : json_object_new_boolean(growth->verdict == GROWTH_GROWING));
	json__add(object, "bytes_per_second", json__seconds(growth->bytes_per_second));
	return object;
}

/* Returns the functions that grow by more than their stacks show. */
static json_object *json_growing(const struct report_output *output)
{
	json_object *array = json_object_new_array();

	for (size_t i = 0; i < output->report->n_growing; i++) {
		const struct report_growing *growing = &output->report->growing[i];
		json_object *object = json_growth(&growing->growth);

		json__add(object, "stacks", json__count(growing->n_entries));
		json__add(object, "name",
			  json__string(output->groups->labels[growing->label].text));
		json_object_array_add(array, object);
	}
	return array;
}

/* Returns the figures of the blocks that were freed at the end, if --leaks shows what was live
 * before that; else NULL. */
static json_object *json_exit_frees(const struct report *report)
{
	json_object *object;

	if (!report->exit_frees.epoch)
		return NULL;
	object = json_object_new_object();
	json__add(object, "seconds", json__seconds(report->exit_frees.took_ns / 1e9));
	json__add(object, "freed_bytes", json__count(report->exit_frees.freed_bytes));
	json__add(object, "left", json__count(report->left));
	json__add(object, "left_bytes", json__count(report->left_bytes));
	return object;
}

/* Returns the bytes of live mappings by kind, and what of them was given back. */
static json_object *json_mappings(const struct mapping_sums *sums)
{
	json_object *object = json_object_new_object();

	for (int i = 0; i < MAPPING_KINDS; i++)
		json__add(object, mapping_kind__name(i), json__count(sums->bytes[i]));
	json__add(object, "given_back", json__count(sums->given_back_bytes));
	return object;
}

static json_object *json_all_mappings(const struct report *report)
{
	struct mapping_sums sums = { 0 };

	for (size_t i = 0; i < report->profile->n_counts; i++)
		mapping_sums__add(&sums, &report->mappings[i]);
	return json_mappings(&sums);
}

static json_object *json_entry(const struct report_output *output, const struct report_entry *entry)
{
	const struct stack_group *group = &output->groups->groups[entry->group];
	json_object *object = json_object_new_object(), *frames = json_object_new_array();
	struct mapping_sums mappings = { 0 };
	struct selection whole;

	for (__u32 i = 0; i < group->n_seen; i++)
		json_object_array_add(frames, frame_at(output, group->frames[i]));
	if (entry->root != REPORT_NO_ROOT)
		json_object_array_add(frames, frame_at(output, entry->root));
	json__add(object, "stack", json__count(group->id));
	json__add(object, "function",
		  json__string(definition_names__function(&output->profile->definitions,
							  entry->function)));
	json__add(object, "selected", json_selection(output, &entry->selected, false));
	report_entry__whole(output->report, entry, COST_ALLOCATIONS, &whole);
	json__add(object, "all", json_selection(output, &whole, true));
	json__add(object, "end", json__string(profile__stack_end_name(group->end)));
	if (output->report->mappings && profile__function_maps(entry->function)) {
		report_entry__add_mappings(output->report, entry, &mappings);
		json__add(object, "mappings", json_mappings(&mappings));
	}
	if (output->with_growth)
		json__add(object, "growth", json_growth(&entry->growth));
	json__add(object, "frames", frames);
	return object;
}

/* Returns the advice. Its stacks are in the list of stacks, too, but for those that --top leaves out. */
static json_object *json_advice(const struct report_output *output)
{
	json_object *array = json_object_new_array();

	for (size_t i = 0; i < output->n_advice; i++) {
		const struct advice *advice = &output->advice[i];
		const struct report_entry *entry = &output->report->entries[advice->entry];
		json_object *object = json_object_new_object();

		json__add(object, "kind", json_object_new_string(advice__name(advice->kind)));
		json__add(object, "stack", json__count(output->groups->groups[entry->group].id));
		json__add(object, "saved_calls", json__count(advice->saved_calls));
		json__add(object, "saved_bytes", json__count(advice->saved_bytes));
		json__add(object, "allocations", json__count(advice->allocations));
		json__add(object, "least_bytes", json__count(advice->least_bytes));
		json__add(object, "most_bytes", json__count(advice->most_bytes));
		json__add(object, "share", json__seconds(advice->share));
		json_object_array_add(array, object);
	}
	return array;
}

struct cursor {
	const struct report_output *output;
	size_t at;
};

static json_object *next_entry(void *context)
{
	struct cursor *cursor = context;
	const struct report_output *output = cursor->output;

	/* --top is of single blocks if there are some, which name their stacks. */
	if (cursor->at >= output->report->n_entries ||
	    (cursor->at >= output->top && !output->blocks))
		return NULL;
	return json_entry(output, &output->report->entries[cursor->at++]);
}

static json_object *json_address(__u64 address)
{
	char text[32];

	snprintf(text, sizeof(text), "0x%llx", address);
	return json_object_new_string(text);
}

/* Returns the call that ended a block; NULL if none did. */
static json_object *json_end(const struct report_output *output, const struct event_block *block)
{
	const struct profile *profile = output->profile;
	json_object *object;

	if (!block->ended_by)
		return NULL;
	object = json_object_new_object();
	json__add(object, "thread", json__count(block->ended_by));
	json__add(object, "thread_name",
		  block->ended_thread ? json__string(profile->threads[block->ended_thread - 1].name)
				      : NULL);
	if (block->fate != BLOCK_REALLOCATED)
		return object;
	json__add(object, "stack",
		  block->next_count
			  ? json__count(report_output__stack_id(output, block->next_count))
			  : NULL);
	json__add(object, "address", json_address(block->next_address));
	json__add(object, "size", json__count(block->next_bytes));
	return object;
}

static json_object *json_block(const struct report_output *output, const struct event_block *block)
{
	const struct profile *profile = output->profile;
	const struct profile_count *count = &profile->counts[block->count - 1];
	const struct profile_process *process = &profile->processes[count->process - 1];
	const char *type = stack_view__type(output->view, count->stack);
	bool is_alive = block->fate == BLOCK_ALIVE;
	json_object *object = json_object_new_object();

	json__add(object, "id", json__count(block->id));
	json__add(object, "address", json_address(block->address));
	json__add(object, "size", json__count(block->size_bytes));
	json__add(object, "weight", json__count(block->weight));
	json__add(object, "function",
		  json__string(definition_names__function(&profile->definitions, count->function)));
	json__add(object, "type", type ? json__string(type) : NULL);
	json__add(object, "stack", json__count(report_output__stack_id(output, block->count)));
	json__add(object, "process", json__string(process->comm));
	json__add(object, "pid", json__count(process->pid));
	json__add(object, "thread", json__count(block->thread));
	json__add(object, "thread_name", json__string(profile->threads[count->thread - 1].name));
	json__add(object, "allocated_at_ns", json__count(block->born_ns));
	json__add(object, "ended_at_ns", is_alive ? NULL : json__count(block->died_ns));
	json__add(object, "fate", json_object_new_string(block_fate__name(block->fate)));
	json__add(object, "temporary", json_object_new_boolean(block->temporary));
	json__add(object, "ended_by", json_end(output, block));
	return object;
}

static json_object *next_block(void *context)
{
	struct cursor *cursor = context;
	const struct event_blocks *blocks = cursor->output->blocks;

	return cursor->at < blocks->n ? json_block(cursor->output, &blocks->list[cursor->at++])
				      : NULL;
}

static json_object *json_blocks(const struct event_blocks *blocks, int sort)
{
	json_object *object = json_object_new_object();

	json__add(object, "sort", json_object_new_string(block_sort__name(sort)));
	json__add(object, "selected", json__count(blocks->blocks));
	json__add(object, "bytes", json__count(blocks->size_bytes));
	json__add(object, "logged", json__count(blocks->logged));
	json__add(object, "unknown", json__count(blocks->unknown));
	return object;
}

static int write_lists(const struct report_output *output, json_object *root)
{
	struct cursor stacks = { output, 0 }, blocks = { output, 0 };
	FILE *to = output->terminal.to;
	int err = json__begin(root, to);

	if (!err && output->blocks)
		err = json__list("blocks", next_block, &blocks, to);
	if (!err)
		err = json__list("stacks", next_entry, &stacks, to);
	return err ?: json__end(to);
}

static json_object *json_histogram(const __u64 *buckets)
{
	json_object *array = json_object_new_array();

	for (int i = 0; i < PROFILE_BUCKETS; i++) {
		json_object *bucket;

		if (!buckets[i])
			continue;
		bucket = json_object_new_object();
		json__add(bucket, "least", json__count(i ? 1ULL << (i - 1) : 0));
		json__add(bucket, "blocks", json__count(buckets[i]));
		json_object_array_add(array, bucket);
	}
	return array;
}

static json_object *json_suppressions(const struct report_output *output)
{
	const struct suppressions *suppressions = output->filter->suppressions;
	json_object *array = json_object_new_array();

	for (size_t i = 0; suppressions && i < suppressions->n; i++) {
		json_object *entry = json_object_new_object();

		json__add(entry, "template", json__string(suppressions->list[i].template));
		json__add(entry, "blocks", json__count(suppressions->list[i].blocks));
		json__add(entry, "bytes", json__count(suppressions->list[i].size_bytes));
		json_object_array_add(array, entry);
	}
	return array;
}

static json_object *json_range(const struct figure_range *range)
{
	json_object *object = json_object_new_object();

	json__add(object, "min", json_object_new_int64(range->min));
	json__add(object, "median", json_object_new_int64(range->median));
	json__add(object, "max", json_object_new_int64(range->max));
	return object;
}

static json_object *json_number(const char *text)
{
	return text ? json__count(strtoull(text, NULL, 10)) : NULL;
}

/* Returns the runs; NULL for a recording of one run. */
static json_object *json_runs(const struct profile *profile)
{
	const char *run = profile__meta(profile, "run");
	struct figure_range events;
	json_object *object;

	if ((!run && !profile->n_runs) || runs_text__range(profile, &events))
		return NULL;
	object = json_object_new_object();
	json__add(object, "run", json_number(run));
	json__add(object, "runs", json_number(profile__meta(profile, "runs")));
	json__add(object, "wanted_runs", json_number(profile__meta(profile, "wanted_runs")));
	json__add(object, "events", json_range(&events));
	json__add(object, "peak_of_run",
		  profile->n_runs && filter__has_live(profile)
			  ? json__count(profile__peak_run(profile))
			  : NULL);
	return object;
}

/* Returns the parts of the resident memory of each process. */
static json_object *json_rss(const struct profile *profile)
{
	json_object *array = json_object_new_array(), *object = NULL;
	__u32 last = 0;

	for (size_t i = 0; i < profile->n_rss; i++) {
		const struct profile_rss *rss = &profile->rss[i];
		const struct profile_process *process = &profile->processes[rss->process - 1];

		if (rss->process != last) {
			object = json_object_new_object();
			json__add(object, "pid", json__count(process->pid));
			json__add(object, "comm", json__string(process->comm));
			json_object_array_add(array, object);
		}
		last = rss->process;
		json__add(object, rss_kind__name(rss->kind), json__count(rss->size_bytes));
	}
	return array;
}

static json_object *json_heaps(const struct profile *profile)
{
	json_object *array = json_object_new_array();

	for (size_t i = 0; i < profile->n_heaps; i++) {
		const struct profile_heap *heap = &profile->heaps[i];
		const struct profile_process *process = &profile->processes[heap->process - 1];
		json_object *object = json_object_new_object();

		json__add(object, "pid", json__count(process->pid));
		json__add(object, "kind", json__string(heap_kind__name(heap->kind)));
		json__add(object, "address", heap->address ? json__count(heap->address) : NULL);
		json__add(object, "mappings", json__count(heap->mappings));
		json__add(object, "resident_bytes", json__count(heap->resident_bytes));
		json__add(object, "block_bytes", json__count(heap->block_bytes));
		json__add(object, "slack_bytes", json__count(heap->slack_bytes));
		json__add(object, "free_bytes", json__count(heap->free_bytes));
		json__add(object, "blocks", json__count(heap->blocks));
		json__add(object, "bytes", json__count(heap->size_bytes));
		json_object_array_add(array, object);
	}
	return array;
}

static json_object *json_size_classes(const struct profile *profile)
{
	json_object *array = json_object_new_array();

	for (size_t i = 0; i < profile->n_size_classes; i++) {
		const struct profile_size_class *sizes = &profile->size_classes[i];
		json_object *object = json_object_new_object();

		json__add(object, "rule", json__string(size_rule__name(sizes->rule)));
		json__add(object, "most_bytes", json__count(sizes->most_bytes));
		json__add(object, "blocks", json__count(sizes->blocks));
		json__add(object, "bytes", json__count(sizes->size_bytes));
		json__add(object, "usable_bytes",
			  sizes->usable_bytes ? json__count(sizes->usable_bytes) : NULL);
		json_object_array_add(array, object);
	}
	return array;
}

int report_output__json(const struct report_output *output)
{
	json_object *root = json_object_new_object();
	__u64 sizes[PROFILE_BUCKETS], lifetimes[PROFILE_BUCKETS];
	static const char *const ends[] = { "exit_status", "exit_signal", "oom_kills",
					    "group_limit_bytes", "own_bytes" };
	int err;

	if (!root)
		return -ENOMEM;
	report__histograms(output->report, output->filtered, sizes, lifetimes);
	json__add(root, "schema", json_object_new_string("allocprof-report/1"));
	json__add(root, "command", json__meta(output->profile, "command"));
	json__add(root, "attached_pid", json__meta(output->profile, "attached_pid"));
	json__add(root, "start_time", json__meta(output->profile, "start_time"));
	if (profile__meta(output->profile, "engine"))
		json__add(root, "engine", json__meta(output->profile, "engine"));
	if (profile__meta(output->profile, "uprobe_programs"))
		json__add(root, "uprobe_programs", json__meta(output->profile, "uprobe_programs"));
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
		if (profile__meta(output->profile, ends[i]))
			json__add(root, ends[i],
				  json__count(profile__meta_number(output->profile, ends[i])));
	json__add(root, "runs", json_runs(output->profile));
	json__add(root, "duration_seconds", json__seconds(output->report->end_ns / 1e9));
	json__add(root, "epoch_seconds",
		  output->report->epoch_ns ? json__seconds(output->report->epoch_ns / 1e9) : NULL);
	json__add(root, "sample_bytes",
		  profile__sample_bytes(output->profile)
			  ? json__count(profile__sample_bytes(output->profile))
			  : NULL);
	json__add(root, "complete",
		  json_object_new_boolean(completeness__is_complete(output->profile)));
	json__add(root, "ledger", json__ledger(output->profile));
	json__add(root, "what", json_object_new_string(report_output__what(output)));
	json__add(root, "sort",
		  json_object_new_string(output->sort == REPORT_OLDEST ? "oldest"
					 : output->sort == REPORT_LOST ? "lost"
								       : cost__name(output->sort)));
	json__add(root, "n_stacks", json__count(output->report->n_entries));
	if (output->findings)
		json__add(root, "findings",
			  findings_text__json(output->of_findings, output->findings));
	json__add(root, "selected", json_selection(output, &output->report->total, false));
	json__add(root, "all", json_selection(output, &output->report->whole, true));
	json__add(root, "peak_bytes",
		  output->report->peak_bytes ? json__count(output->report->peak_bytes) : NULL);
	if (output->profile->n_rss)
		json__add(root, "rss", json_rss(output->profile));
	if (output->profile->n_rss) {
		json__add(root, "heaps", json_heaps(output->profile));
		json__add(root, "size_classes", json_size_classes(output->profile));
	}
	if (output->profile->n_rss_samples)
		json__add(root, "rss_samples",
			  json__rss_samples(output->profile->rss_samples,
					    output->profile->n_rss_samples));
	if (output->report->mappings)
		json__add(root, "mappings", json_all_mappings(output->report));
	if (output->with_growth) {
		json__add(root, "exit_frees", json_exit_frees(output->report));
		json__add(root, "growing_functions", json_growing(output));
	}
	if (output->with_advice)
		json__add(root, "advice", json_advice(output));
	json__add(root, "size_histogram", json_histogram(sizes));
	json__add(root, "lifetime_histogram_ns", json_histogram(lifetimes));
	json__add(root, "suppressions", json_suppressions(output));
	json__add(root, "frames", json_frames(output));
	if (output->blocks)
		json__add(root, "single_blocks", json_blocks(output->blocks, output->block_sort));
	err = write_lists(output, root);
	json_object_put(root);
	return err;
}
