// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The Firefox Profiler's own files, "processed profiles", of the version below. Its documentation has them:
 * https://github.com/firefox-devtools/profiler, docs-developer/processed-profile-format.md and
 * CHANGELOG-formats.md; src/types/profile.ts has the fields. data/firefox-48.schema.json describes what is
 * written here.
 *
 * A thread has tables of its own, each a list for each of its columns. So its samples are sorted by
 * their stacks, and the tree of the stacks is walked once for each column, which needs no more memory
 * than the deepest stack.
 */
#include "export_firefox.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "cleanup.h"
#include "export_internal.h"
#include "json.h"
#include "path.h"
#include "recording_text.h"
#include "stack_view.h"

#define VERSION 48
/* Version of Firefox's own format ("gecko"), from which no file of ours was converted. */
#define GECKO_VERSION 30

#define NS_PER_MS 1e6

void firefox__list(struct firefox *firefox, const char *key)
{
	fprintf(firefox->to, "%s\"%s\":[", firefox->in_table ? "," : "", key);
	firefox->in_table = true;
	firefox->in_list = false;
}

/* Prints a number. There may be millions of numbers, for which printf(3) takes three times as
 * long. */
void firefox__number(struct firefox *firefox, __s64 number)
{
	__u64 rest = number < 0 ? -(__u64)number : (__u64)number;
	char text[24], *at = text + sizeof(text);

	do
		*--at = '0' + rest % 10;
	while (rest /= 10);
	if (number < 0)
		*--at = '-';
	if (firefox->in_list)
		*--at = ',';
	firefox->in_list = true;
	fwrite_unlocked(at, 1, text + sizeof(text) - at, firefox->to);
}

void firefox__null(struct firefox *firefox)
{
	fputs_unlocked(firefox->in_list ? ",null" : "null", firefox->to);
	firefox->in_list = true;
}

void firefox__same(struct firefox *firefox, const char *key, size_t n, const char *value)
{
	firefox__list(firefox, key);
	for (size_t i = 0; i < n; i++) {
		if (i)
			fputc_unlocked(',', firefox->to);
		fputs_unlocked(value, firefox->to);
	}
	fputc(']', firefox->to);
}

static void print_text(struct firefox *firefox, const char *key, const char *text)
{
	fprintf(firefox->to, ",\"%s\":", key);
	if (!firefox->err)
		firefox->err = json__print_string(text, firefox->to);
}

/* Stores the part of the sample's stack that follows @depth, counted from the outermost one.
 * Returns false at its end. */
static bool frame_at(const struct firefox *firefox, const struct firefox_sample *sample,
		     size_t depth, __u32 *frame)
{
	size_t n = sample->n_locations ?: 1;

	if (depth > n)
		return false;
	if (depth == n)
		*frame = firefox->first_function + sample->function;
	else if (!sample->n_locations)
		*frame = firefox->no_frame;
	else
		*frame = sample->locations[sample->n_locations - 1 - depth];
	return true;
}

static int compare_samples(const void *left, const void *right, void *context)
{
	const struct firefox_sample *a = left, *b = right;
	__u32 of_a, of_b;

	if (a->thread != b->thread)
		return a->thread < b->thread ? -1 : 1;
	for (size_t depth = 0;; depth++) {
		bool has_a = frame_at(context, a, depth, &of_a);
		bool has_b = frame_at(context, b, depth, &of_b);

		if (!has_a || !has_b)
			return has_a != has_b  ? (has_a ? 1 : -1)
			       : a->at < b->at ? -1
					       : a->at > b->at;
		if (of_a != of_b)
			return of_a < of_b ? -1 : 1;
	}
}

static int collect(struct firefox *firefox)
{
	const struct export_input *input = firefox->input;
	struct export_sample sample;

	firefox->samples = calloc(input->profile->n_counts + 1, sizeof(*firefox->samples));
	if (!firefox->samples)
		return -ENOMEM;
	for (size_t at = 0; export__next(input, &at, &sample);)
		firefox->samples[firefox->n_samples++] = (struct firefox_sample){
			.locations = sample.locations,
			.n_locations = sample.n_frames,
			.thread = sample.count->thread,
			.at = at - 1,
			.function = sample.count->function,
		};
	qsort_r(firefox->samples, firefox->n_samples, sizeof(*firefox->samples), compare_samples,
		firefox);
	return 0;
}

__u32 firefox__walk(struct firefox *firefox, const struct firefox_sample *sample,
		    void (*visit)(struct firefox *firefox, __u32 frame, __u32 prefix))
{
	__u32 prefix = FIREFOX_NONE, frame;

	for (size_t depth = 0; frame_at(firefox, sample, depth, &frame); depth++) {
		if (depth < firefox->n_steps && firefox->steps[depth].frame == frame) {
			prefix = firefox->steps[depth].stack;
			continue;
		}
		if (array__reserve(&firefox->steps, &firefox->steps_room, depth + 1,
				   sizeof(*firefox->steps))) {
			firefox->err = -ENOMEM;
			return prefix;
		}
		if (visit)
			visit(firefox, frame, prefix);
		prefix = firefox->n_stacks++;
		firefox->steps[depth] = (struct firefox_step){ frame, prefix };
		firefox->n_steps = depth + 1;
	}
	return prefix;
}

void firefox__walk_all(struct firefox *firefox, const struct firefox_thread *thread,
		       void (*visit)(struct firefox *firefox, __u32 frame, __u32 prefix))
{
	firefox->n_steps = firefox->n_stacks = 0;
	for (size_t i = 0; i < thread->n && !firefox->err; i++)
		firefox__walk(firefox, &thread->samples[i], visit);
}

/* Writes the identifier by which symbol servers know a file: its build id as a GUID, and an age of
 * 0. */
static void breakpad_id(const char *build_id, char id[34])
{
	static const unsigned char order[] = {
		3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15
	};
	char padded[33] = "00000000000000000000000000000000";
	size_t size = strnlen(build_id, 32);

	memcpy(padded, build_id, size);
	for (size_t i = 0; i < sizeof(order); i++) {
		id[2 * i] = padded[2 * order[i]];
		id[2 * i + 1] = padded[2 * order[i] + 1];
	}
	for (size_t i = 0; i < 32; i++)
		if (id[i] >= 'a' && id[i] <= 'f')
			id[i] -= 'a' - 'A';
	strcpy(id + 32, "0");
}

static void print_libs(struct firefox *firefox)
{
	const struct profile *profile = firefox->input->profile;
	const char *machine = profile__meta(profile, "machine");

	fputs(",\n\"libs\":[", firefox->to);
	for (size_t i = 0; i < profile->n_modules; i++) {
		const struct profile_module *module = &profile->modules[i];
		const char *name = path__name(module->path);
		char id[34] = "";

		if (*module->build_id)
			breakpad_id(module->build_id, id);
		fprintf(firefox->to, "%s{\"breakpadId\":\"%s\",\"codeId\":", i ? ",\n" : "\n", id);
		fprintf(firefox->to, *module->build_id ? "\"%s\"" : "null", module->build_id);
		print_text(firefox, "arch", machine ? machine : "");
		print_text(firefox, "name", name);
		print_text(firefox, "debugName", name);
		print_text(firefox, "path", module->path);
		print_text(firefox, "debugPath", module->path);
		fputc('}', firefox->to);
	}
	fputs("]", firefox->to);
}

static void print_meta(struct firefox *firefox)
{
	const struct export_input *input = firefox->input;
	_cleanup_(free_ptr) char *title = recording_text__title(input->profile), *remarks = NULL;

	firefox->err = title ? recording_text__remarks(input->profile, &remarks) : -ENOMEM;
	if (firefox->err)
		return;
	fprintf(firefox->to,
		"{\"meta\":{\"preprocessedProfileVersion\":%d,\"version\":%d,\"interval\":1,"
		"\"startTime\":%.3f,\"profilingStartTime\":0,\"profilingEndTime\":%.3f,"
		"\"processType\":0,\"stackwalk\":1,\"symbolicated\":true,\"debug\":false,"
		"\"importedFrom\":\"allocprof " ALLOCPROF_VERSION
		"\",\"usesOnlyOneStackType\":true,"
		"\"doesNotUseFrameImplementation\":true,\"sourceCodeIsNotOnSearchfox\":true,"
		"\"markerSchema\":[],\n\"categories\":["
		"{\"name\":\"Other\",\"color\":\"grey\",\"subcategories\":[\"Other\"]},"
		"{\"name\":\"Allocator\",\"color\":\"orange\",\"subcategories\":[\"Other\"]}]",
		VERSION, GECKO_VERSION, export__start_ns(input) / NS_PER_MS,
		input->end_ns / NS_PER_MS);
	print_text(firefox, "product", title);
	if (*remarks) {
		fputs(",\n\"extra\":[{\"label\":\"allocprof\",\"entries\":[{\"label\":\"Remarks\","
		      "\"format\":\"string\"",
		      firefox->to);
		print_text(firefox, "value", remarks);
		fputs("}]}]", firefox->to);
	}
	fputs("}", firefox->to);
}

/* Prints the time line of live bytes; each sample is the difference from the one before it. */
static void print_counter(struct firefox *firefox)
{
	const struct profile *profile = firefox->input->profile;
	size_t n = profile->n_runs > 1 ? 0 : profile->n_timeline;

	if (!n || !profile->n_processes)
		return;
	fprintf(firefox->to,
		",\n\"counters\":[{\"name\":\"malloc\",\"category\":\"Memory\","
		"\"description\":\"Live bytes of all processes\",\"pid\":\"%u\","
		"\"mainThreadIndex\":0,\"samples\":{\"length\":%zu,\"time\":[",
		profile->processes[0].pid, n);
	for (size_t i = 0; i < n; i++)
		fprintf(firefox->to, "%s%.3f", i ? "," : "",
			profile->timeline[i].time_ns / NS_PER_MS);
	fputs("]", firefox->to);
	firefox->in_table = true;
	firefox__list(firefox, "count");
	for (size_t i = 0; i < n; i++)
		firefox__number(firefox, (__s64)(profile->timeline[i].live_bytes -
						 (i ? profile->timeline[i - 1].live_bytes : 0)));
	fputs("]}}]", firefox->to);
}

static void print_threads(struct firefox *firefox)
{
	struct firefox_thread thread = { .samples = firefox->samples };
	const char *comma = "\n";

	fputs(",\n\"threads\":[", firefox->to);
	/* There must be one thread at least: the viewer refuses a profile without threads. */
	do {
		size_t left = firefox->n_samples - (thread.samples - firefox->samples);

		for (thread.n = 0;
		     thread.n < left && thread.samples[thread.n].thread == thread.samples->thread;)
			thread.n++;
		fputs(comma, firefox->to);
		comma = ",\n";
		firefox__print_thread(firefox, &thread);
		thread.samples += thread.n;
	} while (!firefox->err && thread.samples < firefox->samples + firefox->n_samples);
	fputs("]}\n", firefox->to);
}

int export_firefox__write(const struct export_input *input, FILE *to)
{
	const size_t n_functions = AP_FUNCTIONS;
	struct firefox firefox = {
		.input = input,
		.to = to,
		.first_function = input->view->n_locations,
		.no_frame = input->view->n_locations + n_functions,
		.n_ids = input->view->n_locations + n_functions + 1,
		.n_funcs_at_most = input->view->n_labels + n_functions + 1,
	};

	firefox.err = firefox__init_tables(&firefox);
	if (!firefox.err)
		firefox.err = collect(&firefox);
	if (!firefox.err)
		print_meta(&firefox);
	if (!firefox.err)
		print_libs(&firefox);
	if (!firefox.err)
		print_counter(&firefox);
	if (!firefox.err)
		print_threads(&firefox);
	firefox__release_tables(&firefox);
	free(firefox.samples);
	free(firefox.steps);
	return firefox.err;
}
