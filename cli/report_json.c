// SPDX-License-Identifier: GPL-3.0-or-later
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "completeness.h"
#include "json.h"
#include "profile_runs.h"
#include "report_output.h"
#include "runs_text.h"
#include "stack_groups.h"

static void add(json_object *object, const char *key, json_object *value)
{
	json_object_object_add(object, key, value);
}

static json_object *count_of(__u64 count)
{
	return json_object_new_uint64(count);
}

static json_object *meta_of(const struct report_output *output, const char *key)
{
	const char *value = profile__meta(output->profile, key);

	return value ? json__string(value) : NULL;
}

static json_object *margin_of(const struct profile_estimate *estimate, bool bytes)
{
	return count_of(ceil(fmin(profile_estimate__margin(estimate, bytes), (double)PROFILE_MAX)));
}

/* The errors of sampled numbers; parameters as json_selection(). */
static json_object *json_error(const struct selection *selection, bool has_live, bool by_stack)
{
	const struct profile_estimate *live = &selection->of_live;
	const struct profile_estimate *temporary = &selection->of_temporary;
	json_object *object = json_object_new_object();

	add(object, "samples", count_of(selection->of_allocations.samples));
	add(object, "allocations", margin_of(&selection->of_allocations, false));
	add(object, "bytes", margin_of(&selection->of_allocations, true));
	add(object, "live_samples", has_live ? count_of(live->samples) : NULL);
	add(object, "live", has_live ? margin_of(live, false) : NULL);
	add(object, "live_bytes", has_live ? margin_of(live, true) : NULL);
	add(object, "temporary_samples", by_stack ? count_of(temporary->samples) : NULL);
	add(object, "temporary", by_stack ? margin_of(temporary, false) : NULL);
	add(object, "temporary_bytes", by_stack ? margin_of(temporary, true) : NULL);
	return object;
}

/* Values that need --live are null without it, as are those that a filter makes unknown. */
static json_object *json_selection(const struct report_output *output,
				   const struct selection *selection, bool is_whole)
{
	json_object *object = json_object_new_object();
	bool has_live = filter__has_live(output->profile);
	bool by_stack = has_live && (is_whole || !report_output__selects_blocks(output));

	add(object, "allocations", count_of(selection->allocations));
	add(object, "bytes", count_of(selection->size_bytes));
	add(object, "live", has_live ? count_of(selection->live) : NULL);
	add(object, "live_bytes", has_live ? count_of(selection->live_bytes) : NULL);
	add(object, "oldest_age_seconds",
	    selection->oldest_ns != UINT64_MAX && selection->oldest_ns <= output->report->end_ns
		    ? json__seconds((output->report->end_ns - selection->oldest_ns) / 1e9)
		    : NULL);
	add(object, "temporary", by_stack ? count_of(selection->temporary) : NULL);
	add(object, "temporary_bytes", by_stack ? count_of(selection->temporary_bytes) : NULL);
	add(object, "peak", by_stack ? count_of(selection->peak) : NULL);
	add(object, "peak_bytes", by_stack ? count_of(selection->peak_bytes) : NULL);
	if (profile__sample_bytes(output->profile))
		add(object, "error", json_error(selection, has_live, by_stack));
	if (!is_whole) {
		add(object, "unsure", count_of(selection->unsure));
		add(object, "unsure_bytes", count_of(selection->unsure_bytes));
	}
	return object;
}

static json_object *json_frame(const struct report_output *output,
			       const struct stack_label *printed)
{
	json_object *frame = json_object_new_object();

	add(frame, "name", json__string(printed->text));
	add(frame, "module",
	    printed->module ? json__string(output->profile->modules[printed->module - 1].path)
			    : NULL);
	add(frame, "inlined", json_object_new_boolean(printed->inlined));
	return frame;
}

/* Whether @label is a text that marks the end of a stack; JSON has "end" instead. */
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

/* The index of @label in that list. */
static json_object *frame_at(const struct report_output *output, __u32 label)
{
	return count_of(label < output->groups->n_view_labels
				? label
				: label - output->groups->n_end_labels);
}

/* NULL if unknown. */
static json_object *json_growth(const struct growth *growth)
{
	json_object *object;

	if (!growth->is_known)
		return NULL;
	object = json_object_new_object();
	add(object, "growing", json_object_new_boolean(growth->is_growing));
	add(object, "bytes_per_second", json__seconds(growth->bytes_per_second));
	return object;
}

static json_object *json_entry(const struct report_output *output, const struct report_entry *entry)
{
	const struct stack_group *group = &output->groups->groups[entry->group];
	json_object *object = json_object_new_object(), *frames = json_object_new_array();

	for (__u32 i = 0; i < group->n_seen; i++)
		json_object_array_add(frames, frame_at(output, group->frames[i]));
	if (entry->root != REPORT_NO_ROOT)
		json_object_array_add(frames, frame_at(output, entry->root));
	add(object, "stack", count_of(group->id));
	add(object, "function",
	    json__string(source_names__function(&output->profile->sources, entry->function)));
	add(object, "selected", json_selection(output, &entry->selected, false));
	add(object, "all", json_selection(output, &entry->whole, true));
	add(object, "end", json__string(profile__stack_end_name(group->end)));
	if (output->with_growth)
		add(object, "growth", json_growth(&entry->growth));
	add(object, "frames", frames);
	return object;
}

struct cursor {
	const struct report_output *output;
	size_t at;
};

static json_object *next_entry(void *context)
{
	struct cursor *cursor = context;
	const struct report_output *output = cursor->output;

	if (cursor->at >= output->report->n_entries || cursor->at >= output->top)
		return NULL;
	return json_entry(output, &output->report->entries[cursor->at++]);
}

static json_object *json_histogram(const __u64 *buckets)
{
	json_object *array = json_object_new_array();

	for (int i = 0; i < PROFILE_BUCKETS; i++) {
		json_object *bucket;

		if (!buckets[i])
			continue;
		bucket = json_object_new_object();
		add(bucket, "least", count_of(i ? 1ULL << (i - 1) : 0));
		add(bucket, "blocks", count_of(buckets[i]));
		json_object_array_add(array, bucket);
	}
	return array;
}

static json_object *json_suppressions(const struct report_output *output)
{
	const struct suppressions *suppressions = output->choice->options.suppressions;
	json_object *array = json_object_new_array();

	for (size_t i = 0; suppressions && i < suppressions->n; i++) {
		json_object *entry = json_object_new_object();

		add(entry, "template", json__string(suppressions->list[i].template));
		add(entry, "blocks", count_of(suppressions->list[i].blocks));
		add(entry, "bytes", count_of(suppressions->list[i].size_bytes));
		json_object_array_add(array, entry);
	}
	return array;
}

static json_object *json_ledger(const struct profile *profile)
{
	json_object *ledger = json_object_new_object();

	for (size_t i = 0; i < profile->n_ledger; i++)
		add(ledger, profile->ledger[i].name, count_of(profile->ledger[i].value));
	return ledger;
}

static json_object *json_range(const struct figure_range *range)
{
	json_object *object = json_object_new_object();

	add(object, "min", json_object_new_int64(range->min));
	add(object, "median", json_object_new_int64(range->median));
	add(object, "max", json_object_new_int64(range->max));
	return object;
}

static json_object *json_number(const char *text)
{
	return text ? json_object_new_uint64(strtoull(text, NULL, 10)) : NULL;
}

/* NULL for a recording of one run. */
static json_object *json_runs(const struct profile *profile)
{
	const char *run = profile__meta(profile, "run");
	struct figure_range events;
	json_object *object;

	if ((!run && !profile->n_runs) || runs_text__range(profile, &events))
		return NULL;
	object = json_object_new_object();
	add(object, "run", json_number(run));
	add(object, "runs", json_number(profile__meta(profile, "runs")));
	add(object, "wanted_runs", json_number(profile__meta(profile, "wanted_runs")));
	add(object, "events", json_range(&events));
	add(object, "peak_of_run",
	    profile->n_runs && filter__has_live(profile)
		    ? json_object_new_uint64(profile__peak_run(profile))
		    : NULL);
	return object;
}

int report_output__json(const struct report_output *output)
{
	json_object *root = json_object_new_object();
	struct cursor cursor = { output, 0 };
	__u64 sizes[PROFILE_BUCKETS], lifetimes[PROFILE_BUCKETS];
	int err;

	if (!root)
		return -ENOMEM;
	report__histograms(output->report, output->filtered, sizes, lifetimes);
	add(root, "schema", json_object_new_string("allocprof-report/1"));
	add(root, "command", meta_of(output, "command"));
	add(root, "attached_pid", meta_of(output, "attached_pid"));
	add(root, "start_time", meta_of(output, "start_time"));
	add(root, "runs", json_runs(output->profile));
	add(root, "duration_seconds", json__seconds(output->report->end_ns / 1e9));
	add(root, "epoch_seconds",
	    output->report->epoch_ns ? json__seconds(output->report->epoch_ns / 1e9) : NULL);
	add(root, "sample_bytes",
	    profile__sample_bytes(output->profile)
		    ? count_of(profile__sample_bytes(output->profile))
		    : NULL);
	add(root, "complete",
	    json_object_new_boolean(completeness__has_all_calls(output->profile)));
	add(root, "ledger", json_ledger(output->profile));
	add(root, "what", json_object_new_string(report_output__what(output)));
	add(root, "sort",
	    json_object_new_string(output->sort == REPORT_OLDEST ? "oldest"
								 : cost__name(output->sort)));
	add(root, "n_stacks", count_of(output->report->n_entries));
	add(root, "selected", json_selection(output, &output->report->total, false));
	add(root, "all", json_selection(output, &output->report->whole, true));
	add(root, "size_histogram", json_histogram(sizes));
	add(root, "lifetime_histogram_ns", json_histogram(lifetimes));
	add(root, "suppressions", json_suppressions(output));
	add(root, "frames", json_frames(output));
	err = json__write_list(root, "stacks", next_entry, &cursor, output->terminal.to);
	json_object_put(root);
	return err;
}
