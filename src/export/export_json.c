// SPDX-License-Identifier: GPL-3.0-or-later
/* Writes allocprof's own format, which data/export-1.schema.json describes. */
#include <errno.h>
#include <string.h>

#include "cleanup.h"
#include "completeness.h"
#include "export_internal.h"
#include "json.h"
#include "profile_runs.h"
#include "recording_text.h"
#include "stack_view.h"

#define SCHEMA "allocprof-export/1"

struct cursor {
	const struct export_input *input;
	const __u32 *numbers; /* numbers of locations */
	size_t at;
};

static void add_numbers(const struct export_input *input, const struct selection *selected,
			json_object *object)
{
	json__add(object, "allocations", json__count(selected->allocations));
	json__add(object, "bytes", json__count(selected->size_bytes));
	if (!export__has_live(input))
		return;
	json__add(object, "live", json__count(selected->live));
	json__add(object, "live_bytes", json__count(selected->live_bytes));
	if (input->selects_blocks)
		return;
	json__add(object, "temporary", json__count(selected->temporary));
	json__add(object, "temporary_bytes", json__count(selected->temporary_bytes));
	json__add(object, "peak", json__count(selected->peak));
	json__add(object, "peak_bytes", json__count(selected->peak_bytes));
}

static json_object *next_module(void *context)
{
	struct cursor *cursor = context;
	const struct profile *profile = cursor->input->profile;
	const struct profile_module *module;
	json_object *object;

	if (cursor->at >= profile->n_modules)
		return NULL;
	module = &profile->modules[cursor->at++];
	object = json_object_new_object();
	json__add(object, "path", json__string(module->path));
	json__add(object, "build_id", *module->build_id ? json__string(module->build_id) : NULL);
	return object;
}

/* Returns the index of the element with @id; null for id 0. */
static json_object *json_index(__u32 id)
{
	return id ? json__count(id - 1) : NULL;
}

static json_object *next_process(void *context)
{
	struct cursor *cursor = context;
	const struct profile *profile = cursor->input->profile;
	const struct profile_process *process;
	json_object *object;

	if (cursor->at >= profile->n_processes)
		return NULL;
	process = &profile->processes[cursor->at++];
	object = json_object_new_object();
	json__add(object, "name", json__string(process->comm));
	json__add(object, "pid", json__count(process->pid));
	json__add(object, "parent", json_index(process->parent));
	json__add(object, "run", json__count(process->run));
	return object;
}

static json_object *json_location(const struct export_input *input, __u32 location)
{
	const struct profile *profile = input->profile;
	const struct stack_location *at = &input->view->locations[location];
	const struct profile_frame *frame = &profile->frames[at->frame - 1];
	const struct profile_line *line = export__line(input, location);
	json_object *object = json_object_new_object();
	char address[32];

	snprintf(address, sizeof(address), "0x%llx", export__address(frame));
	json__add(object, "name", line ? json__string(input->view->labels[at->label].text) : NULL);
	json__add(object, "symbol",
		  line ? json__string(profile->functions[line->function - 1].symbol) : NULL);
	json__add(object, "inlined", json_object_new_boolean(line && line->inlined));
	json__add(object, "file",
		  line && line->file ? json__string(profile->files[line->file - 1].path) : NULL);
	json__add(object, "line", line && line->line ? json__count(line->line) : NULL);
	json__add(object, "module", json_index(frame->module));
	json__add(object, "address", json_object_new_string(address));
	return object;
}

static json_object *next_frame(void *context)
{
	struct cursor *cursor = context;

	while (cursor->at < cursor->input->view->n_locations) {
		__u32 location = cursor->at++;

		if (cursor->numbers[location] != EXPORT_UNUSED)
			return json_location(cursor->input, location);
	}
	return NULL;
}

static json_object *next_sample(void *context)
{
	struct cursor *cursor = context;
	struct export_sample sample;
	json_object *object, *frames;

	if (!export__next(cursor->input, &cursor->at, &sample))
		return NULL;
	object = json_object_new_object();
	frames = json_object_new_array();
	json__add(object, "stack", json__count(sample.count->stack));
	json__add(object, "process", json_index(sample.count->process));
	json__add(object, "thread", json__string(sample.thread));
	json__add(object, "function", json__string(sample.function));
	json__add(object, "end", json__string(sample.end ?: "complete"));
	add_numbers(cursor->input, sample.selected, object);
	for (size_t i = 0; i < sample.n_frames; i++)
		json_object_array_add(frames, json__count(cursor->numbers[sample.locations[i]]));
	json__add(object, "frames", frames);
	return object;
}

static int make_head(const struct export_input *input, json_object *root)
{
	const struct profile *profile = input->profile;
	__u64 sample_bytes = profile__sample_bytes(profile);
	json_object *total = json_object_new_object(), *lines = json_object_new_array();
	_cleanup_(free_ptr) char *remarks = NULL;
	char *rest, *line;
	int err = recording_text__remarks(input->profile, &remarks);

	rest = remarks;
	while (!err && (line = strsep(&rest, "\n")))
		if (*line)
			json_object_array_add(lines, json__string(line));
	json__add(root, "schema", json_object_new_string(SCHEMA));
	json__add(root, "allocprof_version", json__meta(profile, "allocprof_version"));
	json__add(root, "command", json__meta(profile, "command"));
	json__add(root, "attached_pid", json__meta(profile, "attached_pid"));
	json__add(root, "start_time", json__meta(profile, "start_time"));
	json__add(root, "duration_seconds", json__seconds(input->end_ns / 1e9));
	json__add(root, "runs", json__count(profile__n_runs(profile)));
	json__add(root, "sample_bytes", sample_bytes ? json__count(sample_bytes) : NULL);
	json__add(root, "live", json_object_new_boolean(export__has_live(input)));
	json__add(root, "complete", json_object_new_boolean(completeness__is_complete(profile)));
	json__add(root, "remarks", lines);
	json__add(root, "ledger", json__ledger(profile));
	add_numbers(input, input->total, total);
	json__add(root, "total", total);
	return err;
}

int export_json__write(const struct export_input *input, FILE *to)
{
	static const struct {
		const char *key;
		json_object *(*next)(void *context);
	} lists[] = {
		{ "modules", next_module },
		{ "processes", next_process },
		{ "frames", next_frame },
		{ "samples", next_sample },
	};
	_cleanup_(free_ptr) __u32 *numbers = NULL;
	json_object *root = json_object_new_object();
	size_t n;
	int err = root ? export__number_locations(input, &numbers, &n) : -ENOMEM;

	if (!err)
		err = make_head(input, root);
	if (!err)
		err = json__begin(root, to);
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]) && !err; i++) {
		struct cursor cursor = { input, numbers, 0 };

		err = json__list(lists[i].key, lists[i].next, &cursor, to);
	}
	json_object_put(root);
	return err ? err : json__end(to);
}
