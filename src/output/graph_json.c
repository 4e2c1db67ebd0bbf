// SPDX-License-Identifier: GPL-3.0-or-later
#include "graph_json.h"

#include <errno.h>

#include "graph_data.h"
#include "graph_draw.h"
#include "graph_label.h"
#include "json.h"
#include "profile.h"

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
		json__add(object, "stacks", json__count(series->n_stacks));
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

	for (size_t i = 0; i < graph->n_moments; i++) {
		json_object *object = json_object_new_object();

		json__add(object, "time_ns", json__count(graph->moments[i].time_ns));
		json__add(object, "rss_bytes", json__count(graph->moments[i].rss_bytes));
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

int graph_json__write(const struct graph *graph, const struct graph_words *words, FILE *to)
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
	err = json__write(root, to);
	json_object_put(root);
	return err;
}
