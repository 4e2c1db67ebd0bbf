// SPDX-License-Identifier: GPL-3.0-or-later
/* Writes the difference of two profiles as JSON. */
#include <errno.h>

#include "cleanup.h"
#include "completeness.h"
#include "diff_output.h"
#include "filter.h"
#include "finding_text.h"
#include "json.h"
#include "profile.h"

static json_object *json_side(const struct diff_output *output, enum diff_side side)
{
	const struct diff_profile *of = &output->diff->profiles[side];
	const struct profile *profile = output->profiles[side];
	const char *command = profile__meta(profile, "command");
	json_object *object = json_object_new_object();
	double seconds = diff_output__seconds(profile);

	json__add(object, "file", json__string(output->inputs[side]));
	json__add(object, "command", command ? json__string(command) : NULL);
	json__add(object, "attached_command", json__meta(profile, "attached_command"));
	json__add(object, "start_time", json__meta(profile, "start_time"));
	json__add(object, "elapsed_seconds", seconds > 0 ? json_object_new_double(seconds) : NULL);
	json__add(object, "calls", json__count(profile__ledger(profile, "events")));
	if (output->rate)
		json__add(object, "per", json_object_new_double(output->rate->amounts[side]));
	json__add(object, "basis",
		  json_object_new_string(filter__has_live(profile) ? "allocations" : "requests"));
	json__add(object, "complete", json_object_new_boolean(completeness__is_complete(profile)));
	json__add(object, "lost", json__count(profile__ledger(profile, "lost")));
	json__add(object, "stacks", json__count(of->n_stacks));
	json__add(object, "runs", json__count(of->n_runs));
	json__add(object, "sampled", json_object_new_boolean(of->is_sampled));
	json__add(object, "total", json__count(of->total));
	json__add(object, "min", json__count(of->min));
	json__add(object, "max", json__count(of->max));
	return object;
}

static json_object *json_marks(const struct diff_mark *marks, size_t n)
{
	json_object *frames = json_object_new_array();

	for (size_t i = 0; i < n; i++) {
		const struct diff_mark *mark = &marks[i];
		json_object *frame = json_object_new_object();

		json__add(frame, "name", json__string(mark->name->function));
		json__add(frame, "module",
			  *mark->name->module ? json__string(mark->name->module) : NULL);
		json__add(frame, "in",
			  json_object_new_string(!mark->is_in[DIFF_AFTER]    ? "before"
						 : !mark->is_in[DIFF_BEFORE] ? "after"
									     : "both"));
		json_object_array_add(frames, frame);
	}
	return frames;
}

static void add_ranges(const struct diff_output *output, const struct diff_entry *entry,
		       json_object *object)
{
	static const char *const keys[DIFF_SIDES][2] = { { "before_min", "before_max" },
							 { "after_min", "after_max" } };
	const struct diff_profile *profiles = output->diff->profiles;

	if (!diff_profile__has_range(&profiles[DIFF_BEFORE]) &&
	    !diff_profile__has_range(&profiles[DIFF_AFTER]))
		return;
	for (int side = 0; side < DIFF_SIDES; side++) {
		struct diff_cost cost = diff_entry__cost(output->diff, entry, side);

		json__add(object, keys[side][0], json__count(cost.min));
		json__add(object, keys[side][1], json__count(cost.max));
	}
	json__add(object, "noise", json_object_new_boolean(entry->is_noise));
}

static int json_entry(const struct diff_output *output, const struct diff_entry *entry,
		      json_object *list)
{
	_cleanup_(free_ptr) struct diff_mark *marks = NULL;
	__u64 before = diff_entry__cost(output->diff, entry, DIFF_BEFORE).median;
	__u64 after = diff_entry__cost(output->diff, entry, DIFF_AFTER).median;
	json_object *object;
	char percent[32];
	size_t n;
	int err = diff_entry__marks(output->diff, entry, &marks, &n);

	if (err)
		return err;
	object = json_object_new_object();
	snprintf(percent, sizeof(percent), "%.1f",
		 before ? 100.0 * entry->difference / before : 0.0);
	json__add(object, "before", json__count(before));
	json__add(object, "after", json__count(after));
	json__add(object, "difference", json_object_new_int64(entry->difference));
	json__add(object, "percent",
		  before ? json_object_new_double_s(100.0 * entry->difference / before, percent)
			 : NULL);
	add_ranges(output, entry, object);
	if (entry->section == DIFF_PAIRED)
		json__add(object, "similarity_permille", json__count(entry->similarity));
	json__add(object, "frames", json_marks(marks, n));
	return json_object_array_add(list, object) ? -ENOMEM : 0;
}

static int add_section(const struct diff_output *output, enum diff_section section,
		       json_object *sections)
{
	const struct diff_sum *sum = &output->diff->sections[section];
	json_object *object = json_object_new_object(), *list = json_object_new_array();
	size_t n = diff_output__listed(output, section);
	int err = 0;

	json__add(object, "stacks", json__count(sum->n));
	json__add(object, "before", json__count(sum->costs[DIFF_BEFORE]));
	json__add(object, "after", json__count(sum->costs[DIFF_AFTER]));
	json__add(object, "difference", json_object_new_int64(diff__difference(sum->costs)));
	json__add(object, "listed", list);
	json__add(sections, diff__section_name(section), object);
	for (size_t i = 0; i < n && !err; i++)
		err = json_entry(output, &output->diff->entries[sum->first + i], list);
	return err;
}

static json_object *json_between_runs(const struct diff *diff)
{
	json_object *object = json_object_new_object();
	__s64 before = diff->between_runs[DIFF_BEFORE], after = diff->between_runs[DIFF_AFTER];

	json__add(object, "before", json_object_new_int64(before));
	json__add(object, "after", json_object_new_int64(after));
	json__add(object, "difference", json_object_new_int64(after - before));
	return object;
}

int diff_output__json(const struct diff_output *output)
{
	const struct diff *diff = output->diff;
	const __u64 totals[] = { diff->profiles[DIFF_BEFORE].total,
				 diff->profiles[DIFF_AFTER].total };
	json_object *root = json_object_new_object(), *sections = json_object_new_object();
	int err = 0;

	if (!root || !sections)
		return -ENOMEM;
	json__add(root, "schema", json_object_new_string("allocprof-diff/1"));
	json__add(root, "cost", json_object_new_string(cost__name(diff->options.cost)));
	if (output->moved)
		json__add(root, "findings", moved_text__json(output->moved, output->n_moved));
	json__add(root, "depth", diff->options.depth ? json__count(diff->options.depth) : NULL);
	json__add(root, "per", output->rate ? json__string(output->rate->unit) : NULL);
	json__add(root, "min", json__count(diff->options.min));
	json__add(root, "pairing", json_object_new_boolean(!diff->options.no_pairing));
	json__add(root, "pairing_stopped", json_object_new_boolean(diff->stopped_pairing));
	json__add(root, "before", json_side(output, DIFF_BEFORE));
	json__add(root, "after", json_side(output, DIFF_AFTER));
	json__add(root, "difference", json_object_new_int64(diff__difference(totals)));
	json__add(root, "sums_exact", json_object_new_boolean(!diff->is_cut));
	json__add(root, "sections", sections);
	for (int section = 0; section < DIFF_SECTIONS && !err; section++)
		err = add_section(output, section, sections);
	json__add(root, "between_runs", json_between_runs(diff));
	if (!err)
		err = json__write(root, output->terminal.to);
	json_object_put(root);
	return err;
}
