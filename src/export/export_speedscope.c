// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Writes the file format of https://www.speedscope.app, as
 * https://www.speedscope.app/file-format-schema.json describes it: a profile for each kind of
 * number, with the same frames. speedscope has no labels, so a stack begins with the name of the
 * process and ends with the allocator's function, like folded stacks.
 */
#include <errno.h>
#include <stdlib.h>

#include "array.h"
#include "cleanup.h"
#include "export_internal.h"
#include "json.h"
#include "stack_view.h"

static const struct {
	const char *name, *unit;
	enum cost cost;
} kinds[] = {
	{ "bytes allocated", "bytes", COST_BYTES },
	{ "allocations", "none", COST_ALLOCATIONS },
	/* The following ones exist only with --live; the last two only if blocks are not selected
	 * one by one. */
	{ "live bytes", "bytes", COST_LIVE_BYTES },
	{ "live blocks", "none", COST_LIVE },
	{ "temporary allocations", "none", COST_TEMPORARY },
	{ "bytes at the peak", "bytes", COST_PEAK },
};

struct speedscope {
	const struct export_input *input;
	FILE *to;
	__u32 *labels;		 /* indexes of frames, by label */
	size_t n_labels;	 /* number of labels that are used; frames of other names follow */
	__u32 *locations;	 /* the first location of each label */
	struct string_ids names; /* names of processes and functions */
};

static size_t n_kinds(const struct speedscope *scope)
{
	if (!export__has_live(scope->input))
		return 2;
	return scope->input->selects_blocks ? 4 : ARRAY_SIZE(kinds);
}

/* Prints ,"@key":"@text". */
static int print_member(const struct speedscope *scope, const char *key, const char *text)
{
	fprintf(scope->to, ",\"%s\":", key);
	return json__print_string(text, scope->to);
}

static int print_label(const struct speedscope *scope, __u32 label)
{
	const struct stack_view *view = scope->input->view;
	const struct profile *profile = scope->input->profile;
	const struct profile_line *line = export__line(scope->input, scope->locations[label]);
	__u32 module = view->labels[label].module;
	int err;

	fputs("{\"name\":", scope->to);
	err = json__print_string(view->labels[label].text, scope->to);
	if (!err && line && line->file)
		err = print_member(scope, "file", profile->files[line->file - 1].path);
	else if (!err && module)
		err = print_member(scope, "file", profile->modules[module - 1].path);
	fputc('}', scope->to);
	return err;
}

static int print_frames(const struct speedscope *scope)
{
	const char *comma = "\n";
	int err = 0;

	for (size_t i = 0; i < scope->input->view->n_labels && !err; i++) {
		if (scope->labels[i] == EXPORT_UNUSED)
			continue;
		fputs(comma, scope->to);
		comma = ",\n";
		err = print_label(scope, i);
	}
	for (size_t i = 0; i < scope->names.n && !err; i++) {
		fprintf(scope->to, "%s{\"name\":", comma);
		comma = ",\n";
		err = json__print_string(scope->names.texts[i], scope->to);
		fputc('}', scope->to);
	}
	return err;
}

/* Prints a frame for a process or a function; the table already has all of them. */
static int print_name(struct speedscope *scope, const char *name)
{
	__u32 id;
	int err = string_ids__add(&scope->names, name, &id);

	if (!err)
		fprintf(scope->to, "%zu", scope->n_labels + id - 1);
	return err;
}

static int print_stack(struct speedscope *scope, const struct export_sample *sample)
{
	int err;

	fputc('[', scope->to);
	err = print_name(scope, sample->process->comm);
	if (!err && !sample->n_frames) {
		fputc(',', scope->to);
		err = print_name(scope, EXPORT_NO_FRAME);
	}
	for (size_t i = sample->n_frames; i; i--)
		fprintf(scope->to, ",%u", scope->labels[sample->labels[i - 1]]);
	fputc(',', scope->to);
	if (!err)
		err = print_name(scope, sample->function);
	fputc(']', scope->to);
	return err;
}

static int print_profile(struct speedscope *scope, size_t kind)
{
	enum cost cost = kinds[kind].cost;
	struct export_sample sample;
	const char *comma = "\n";
	int err = 0;

	fprintf(scope->to,
		"{\"type\":\"sampled\",\"name\":\"%s\",\"unit\":\"%s\",\"startValue\":0,"
		"\"endValue\":%llu,\n\"samples\":[",
		kinds[kind].name, kinds[kind].unit, cost__of(cost, scope->input->total));
	for (size_t at = 0; !err && export__next(scope->input, &at, &sample);) {
		if (!cost__of(cost, sample.selected))
			continue;
		fputs(comma, scope->to);
		comma = ",\n";
		err = print_stack(scope, &sample);
	}
	fputs("],\n\"weights\":[", scope->to);
	comma = "";
	for (size_t at = 0; !err && export__next(scope->input, &at, &sample);) {
		if (!cost__of(cost, sample.selected))
			continue;
		fprintf(scope->to, "%s%llu", comma, cost__of(cost, sample.selected));
		comma = ",";
	}
	fputs("]}", scope->to);
	return err;
}

static int print_all(struct speedscope *scope)
{
	_cleanup_(free_ptr) char *headline = NULL;
	int err = export__headline(scope->input, &headline);

	if (err)
		return err;
	fputs("{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\","
	      "\"exporter\":\"allocprof@" ALLOCPROF_VERSION "\"",
	      scope->to);
	err = print_member(scope, "name", headline);
	fputs(",\n\"shared\":{\"frames\":[", scope->to);
	if (!err)
		err = print_frames(scope);
	fputs("]},\n\"profiles\":[", scope->to);
	for (size_t i = 0; i < n_kinds(scope) && !err; i++) {
		fputs(i ? ",\n" : "\n", scope->to);
		err = print_profile(scope, i);
	}
	fputs("]}\n", scope->to);
	return err;
}

static int collect_names(struct speedscope *scope)
{
	struct export_sample sample;
	int err = 0;
	__u32 id;

	for (size_t at = 0; !err && export__next(scope->input, &at, &sample);) {
		err = string_ids__add(&scope->names, sample.process->comm, &id);
		if (!err)
			err = string_ids__add(&scope->names, sample.function, &id);
		if (!err && !sample.n_frames)
			err = string_ids__add(&scope->names, EXPORT_NO_FRAME, &id);
	}
	return err;
}

static int find_locations(struct speedscope *scope)
{
	const struct stack_view *view = scope->input->view;

	scope->locations = calloc(view->n_labels + 1, sizeof(*scope->locations));
	if (!scope->locations)
		return -ENOMEM;
	for (size_t i = view->n_locations; i; i--)
		scope->locations[view->locations[i - 1].label] = i - 1;
	return 0;
}

int export_speedscope__write(const struct export_input *input, FILE *to)
{
	struct speedscope scope = { .input = input, .to = to };
	int err = export__number_labels(input, &scope.labels, &scope.n_labels);

	if (!err)
		err = find_locations(&scope);
	if (!err)
		err = collect_names(&scope);
	if (!err)
		err = print_all(&scope);
	free(scope.labels);
	free(scope.locations);
	string_ids__release(&scope.names);
	return err;
}
