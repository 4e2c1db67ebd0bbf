// SPDX-License-Identifier: GPL-3.0-or-later
#include "graph_output.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "completeness.h"
#include "filter.h"
#include "graph_data.h"
#include "graph_draw.h"
#include "graph_internal.h"
#include "json.h"
#include "number.h"
#include "profile.h"
#include "recording_text.h"
#include "stack_groups.h"
#include "text.h"

static int label_group(const struct stack_groups *groups, const struct stack_group *group,
		       struct graph_label *label)
{
	for (__u32 i = 0; i < group->n_frames && label->n_callers < GRAPH_LABEL_CALLERS; i++) {
		char *name = strdup(groups->labels[group->frames[i]].text);

		if (!name)
			return -ENOMEM;
		if (i)
			label->callers[label->n_callers++] = name;
		else
			label->name = name;
	}
	return 0;
}

static int label_series(const struct stack_groups *groups, const struct graph_series *series,
			struct graph_label *label)
{
	char count[32];

	if (series->name || !series->n_stacks) {
		label->name = strdup(series->name ?: "all else");
		return label->name ? 0 : -ENOMEM;
	}
	if (series->stack)
		return label_group(groups, &groups->groups[series->group], label);
	graph_axis__print_count(series->n_stacks, count, sizeof(count));
	if (asprintf(&label->name, "%s %s", count,
		     plural__of("other stack{|s}", series->n_stacks).text) < 0)
		label->name = NULL;
	return label->name ? 0 : -ENOMEM;
}

int graph_label__new(const struct stack_groups *groups, const struct graph *graph,
		     struct graph_label **labels)
{
	struct graph_label *made = calloc(graph->n_series + 1, sizeof(*made));
	int err = made ? 0 : -ENOMEM;

	for (size_t i = 0; i < graph->n_series && !err; i++)
		err = label_series(groups, &graph->series[i], &made[i]);
	if (err) {
		graph_label__free(made, graph->n_series);
		return err;
	}
	*labels = made;
	return 0;
}

void graph_label__free(struct graph_label *labels, size_t n)
{
	for (size_t i = 0; labels && i < n; i++) {
		free(labels[i].name);
		for (size_t j = 0; j < labels[i].n_callers; j++)
			free(labels[i].callers[j]);
	}
	free(labels);
}

static json_object *numbers(const __u64 *values, size_t n)
{
	json_object *array = json_object_new_array();

	for (size_t i = 0; i < n; i++)
		json_object_array_add(array, json__count(values[i]));
	return array;
}

static json_object *callers_of(const struct graph_label *label)
{
	json_object *array = json_object_new_array();

	for (size_t i = 0; i < label->n_callers; i++)
		json_object_array_add(array, json__string(label->callers[i]));
	return array;
}

static json_object *series_of(const struct graph *graph, const struct graph_words *words)
{
	json_object *array = json_object_new_array();

	for (size_t i = 0; i < graph->n_series; i++) {
		const struct graph_series *series = &graph->series[i];
		json_object *object = json_object_new_object();

		json__add(object, "stack", series->stack ? json__count(series->stack) : NULL);
		json__add(object, "stacks",
			  series->n_stacks ? json__count(series->n_stacks) : NULL);
		json__add(object, "name", json__string(words->labels[i].name));
		json__add(object, "callers", callers_of(&words->labels[i]));
		json__add(object, "peak_bytes", json__count(series->peak_bytes));
		json__add(object, "live", json__count(series->live));
		json__add(object, "live_bytes", json__count(series->live_bytes));
		json__add(object, "stays_bytes", numbers(series->stays_bytes, graph->n_points));
		json__add(object, "freed_bytes", numbers(series->freed_bytes, graph->n_points));
		json_object_array_add(array, object);
	}
	return array;
}

static json_object *rates_of(const struct graph *graph)
{
	json_object *array = json_object_new_array();

	for (size_t i = 0; i < graph->n_spans; i++) {
		json_object *object = json_object_new_object();

		json__add(object, "start_ns", json__count(i * graph->span_ns));
		json__add(object, "length_ns", json__count(graph__span_ns(graph, i)));
		json__add(object, "allocations", json__count(graph->allocations[i]));
		json_object_array_add(array, object);
	}
	return array;
}

static json_object *rss_of(const struct graph *graph)
{
	json_object *array = json_object_new_array();

	for (size_t i = 0; i < graph->n_samples; i++) {
		json_object *object = json_object_new_object();

		json__add(object, "time_ns", json__count(graph->samples[i].time_ns));
		json__add(object, "rss_bytes", json__count(graph->samples[i].rss_bytes));
		json_object_array_add(array, object);
	}
	return array;
}

static json_object *notes_of(const struct graph_words *words)
{
	json_object *array = json_object_new_array();

	for (size_t i = 0; i < words->n_notes; i++)
		json_object_array_add(array, json__string(words->notes[i]));
	return array;
}

/* Writes the graph as JSON. Returns 0, -ENOMEM or the negative errno of the write. */
static int graph_json__write(const struct graph *graph, const struct graph_words *words, FILE *to)
{
	json_object *root = json_object_new_object();
	int err;

	if (!root)
		return -ENOMEM;
	json__add(root, "schema", json_object_new_string("allocprof-graph/1"));
	json__add(root, "title", json__string(words->title));
	json__add(root, "selection", words->selection ? json__string(words->selection) : NULL);
	json__add(root, "notes", notes_of(words));
	json__add(root, "end_ns", json__count(graph->end_ns));
	json__add(root, "epoch_ns", json__count(graph->epoch_ns));
	json__add(root, "stacks", json__count(graph->n_stacks));
	json__add(root, "peak_bytes",
		  json__count(words->peak_bytes ? words->peak_bytes : graph->peak_bytes));
	json__add(root, "drawn_peak_bytes", json__count(graph->peak_bytes));
	json__add(root, "peak_ns", json__count(graph->peak_ns));
	json__add(root, "live", json__count(graph->live));
	json__add(root, "live_bytes", json__count(graph->live_bytes));
	json__add(root, "times_ns", numbers(graph->times_ns, graph->n_points));
	json__add(root, "series", series_of(graph, words));
	json__add(root, "allocations", rates_of(graph));
	json__add(root, "resident", rss_of(graph));
	if (graph->n_rss_samples)
		json__add(root, "rss_samples",
			  json__rss_samples(graph->rss_samples, graph->n_rss_samples));
	err = json__write(root, to);
	json_object_put(root);
	return err;
}

#define MAX_NOTES 8

/* Prints how many blocks the filters selected, or "" if all. */
static void print_selection(const struct filtered *filtered, char *text, size_t size)
{
	*text = '\0';
	if (filtered->total.allocations != filtered->whole.allocations)
		snprintf(text, size, "%s of %s blocks selected",
			 number__count(filtered->total.allocations).text,
			 number__count(filtered->whole.allocations).text);
}

/* Splits @lines into @notes. */
static size_t split_lines(char *lines, const char **notes, size_t max)
{
	size_t n = 0;

	for (char *line = strtok_r(lines, "\n", &lines); line && n < max;
	     line = strtok_r(NULL, "\n", &lines))
		notes[n++] = line;
	return n;
}

static void print_unsure(const struct filtered *filtered, char *text, size_t size)
{
	*text = '\0';
	if (filtered->total.unsure)
		snprintf(text, size, "%s more blocks may belong here: times are known to %s",
			 number__count(filtered->total.unsure).text,
			 number__time(filtered->epoch_ns).text);
}

int graph_output__write(const struct graph_output *output, FILE *to)
{
	const struct profile *profile = output->profile;
	_cleanup_(free_ptr) char *title = recording_text__title(profile);
	_cleanup_(free_ptr) char *lines = NULL;
	_cleanup_(free_ptr) char *sampled = completeness__sampled(profile);
	struct graph_label *labels = NULL;
	const char *notes[MAX_NOTES];
	char selection[128], unsure[128];
	struct graph_words words = {
		.title = title,
		.peak_bytes = output->filtered->peak_bytes,
		.start_time = profile__meta(profile, "start_time"),
		.notes = notes,
	};
	unsigned int flags = COMPLETENESS_BRIEF | COMPLETENESS_TIMES |
			     (output->strict ? COMPLETENESS_STRICT : 0);
	int err;

	err = title ? completeness__lines(profile, flags, &lines) : -ENOMEM;
	if (!err)
		err = graph_label__new(output->groups, output->graph, &labels);
	if (err)
		return err;
	words.labels = labels;
	print_selection(output->filtered, selection, sizeof(selection));
	words.selection = *selection ? selection : NULL;
	words.n_notes = split_lines(lines, notes, MAX_NOTES - 2);
	if (sampled)
		notes[words.n_notes++] = sampled;
	print_unsure(output->filtered, unsure, sizeof(unsure));
	if (*unsure)
		notes[words.n_notes++] = unsure;
	err = output->json ? graph_json__write(output->graph, &words, to)
			   : graph__draw(output->cairo, output->graph, &words, output->format, to);
	graph_label__free(labels, output->graph->n_series);
	return err;
}
