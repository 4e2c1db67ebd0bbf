// SPDX-License-Identifier: GPL-3.0-or-later
#include "graph_json.h"

#include <errno.h>

#include "graph_data.h"
#include "graph_draw.h"
#include "graph_label.h"
#include "json.h"
#include "profile.h"

static void add(json_object *object, const char *key, json_object *value)
{
	json_object_object_add(object, key, value);
}

static json_object *numbers(const __u64 *values, size_t n)
{
	json_object *array = json_object_new_array();

	for (size_t i = 0; i < n; i++)
		json_object_array_add(array, json_object_new_uint64(values[i]));
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

		add(object, "stack", series->stack ? json_object_new_uint64(series->stack) : NULL);
		add(object, "stacks", json_object_new_uint64(series->n_stacks));
		add(object, "name", json__string(words->labels[i].name));
		add(object, "callers", callers_of(&words->labels[i]));
		add(object, "peak_bytes", json_object_new_uint64(series->peak_bytes));
		add(object, "live", json_object_new_uint64(series->live));
		add(object, "live_bytes", json_object_new_uint64(series->live_bytes));
		add(object, "stays_bytes", numbers(series->stays_bytes, graph->n_points));
		add(object, "freed_bytes", numbers(series->freed_bytes, graph->n_points));
		json_object_array_add(array, object);
	}
	return array;
}

static json_object *rates_of(const struct graph *graph)
{
	json_object *array = json_object_new_array();

	for (size_t i = 0; i < graph->n_spans; i++) {
		json_object *object = json_object_new_object();

		add(object, "start_ns", json_object_new_uint64(i * graph->span_ns));
		add(object, "length_ns", json_object_new_uint64(graph__span_ns(graph, i)));
		add(object, "allocations", json_object_new_uint64(graph->allocations[i]));
		json_object_array_add(array, object);
	}
	return array;
}

static json_object *rss_of(const struct graph *graph)
{
	json_object *array = json_object_new_array();

	for (size_t i = 0; i < graph->n_moments; i++) {
		json_object *object = json_object_new_object();

		add(object, "time_ns", json_object_new_uint64(graph->moments[i].time_ns));
		add(object, "rss_bytes", json_object_new_uint64(graph->moments[i].rss_bytes));
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
	add(root, "schema", json_object_new_string("allocprof-graph/1"));
	add(root, "title", json__string(words->title));
	add(root, "selection", words->selection ? json__string(words->selection) : NULL);
	add(root, "notes", notes_of(words));
	add(root, "end_ns", json_object_new_uint64(graph->end_ns));
	add(root, "epoch_ns", json_object_new_uint64(graph->epoch_ns));
	add(root, "stacks", json_object_new_uint64(graph->n_stacks));
	add(root, "peak_bytes", json_object_new_uint64(graph->peak_bytes));
	add(root, "peak_ns", json_object_new_uint64(graph->peak_ns));
	add(root, "live", json_object_new_uint64(graph->live));
	add(root, "live_bytes", json_object_new_uint64(graph->live_bytes));
	add(root, "times_ns", numbers(graph->times_ns, graph->n_points));
	add(root, "series", series_of(graph, words));
	add(root, "allocations", rates_of(graph));
	add(root, "resident", rss_of(graph));
	err = json__write(root, to);
	json_object_put(root);
	return err;
}
