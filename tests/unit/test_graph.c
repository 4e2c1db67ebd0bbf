// SPDX-License-Identifier: GPL-3.0-or-later
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cairo_library.h"
#include "error.h"
#include "fixture.h"
#include "fixture_live.h"
#include "graph_data.h"
#include "graph_draw.h"
#include "graph_internal.h"
#include "stack_groups.h"
#include "stack_view.h"

struct names {
	struct stack_view *view;
	struct stack_groups *groups;
};

static struct names name(const struct profile *profile)
{
	struct names names;

	assert_int_equal(stack_view__new(profile, &(struct stack_view_options){ 0 }, &names.view),
			 0);
	names.groups = stack_groups__new(profile, names.view);
	assert_non_null(names.groups);
	return names;
}

static void release(const struct names *names)
{
	stack_groups__free(names->groups);
	stack_view__free(names->view);
}

static struct graph *make_selected(const struct profile *profile, const bool *selected, size_t top)
{
	struct names names = name(profile);
	struct error error = { 0 };
	struct graph *graph = NULL;
	int err = graph__new(profile, names.groups, selected, NULL, top, &graph, &error);

	release(&names);
	if (err)
		fail_msg("%s (%d)", error.text, err);
	return graph;
}

static struct graph *make(const struct profile *profile, size_t top)
{
	return make_selected(profile, NULL, top);
}

/* A profile of @n_stacks counts, each of a stack of its own; lifetimes are for the caller. */
static struct profile *with_stacks(__u32 n_stacks, const char *epoch_ns)
{
	struct profile *profile = profile__new();
	__u32 id, stack;

	assert_int_equal(profile__add_process(profile, 0, 1, 0, "c", &id), 0);
	assert_int_equal(profile__add_thread(profile, 1, "c", &id), 0);
	assert_int_equal(profile__add_module(profile, "/app", "", &id), 0);
	for (__u32 i = 0; i < n_stacks; i++) {
		assert_int_equal(profile__add_frame(profile, 1, i, false, &id), 0);
		assert_int_equal(profile__add_stack(profile, &id, 1, AP_END_COMPLETE, &stack), 0);
		assert_int_equal(profile__add_count(profile, 1, stack, AP_MALLOC, 1, 1, &id), 0);
	}
	assert_int_equal(profile__set_meta(profile, "epoch_ns", epoch_ns), 0);
	return profile;
}

static void add(struct profile *profile, __u32 count, __u32 born, __u32 died, __u64 size_bytes)
{
	assert_int_equal(fixture__add_lifetime(profile, count, born, died, 1, size_bytes), 0);
}

static __u64 sum_at(const struct graph *graph, size_t point)
{
	__u64 sum = 0;

	for (size_t i = 0; i < graph->n_series; i++)
		sum += graph->series[i].stays_bytes[point] + graph->series[i].freed_bytes[point];
	return sum;
}

/* What the end has left of a cache is drawn as what was freed of it; what is older than that, and what is hardly ever freed, is
 * not. */
static void test_rest_of_a_cache(void **state)
{
	enum {
		CACHE = 1,
		KEPT_LONGER,
		LEAK
	};
	struct profile *profile = with_stacks(3, "1000000");
	struct graph *graph;
	size_t last;

	for (__u32 i = 0; i < 300; i++)
		add(profile, CACHE, i, i + 50 < 300 ? i + 50 : PROFILE_LIVE, 10);
	for (__u32 i = 0; i < 300; i++)
		add(profile, KEPT_LONGER, i, i && i + 50 < 300 ? i + 50 : PROFILE_LIVE, 100);
	for (__u32 i = 0; i < 300; i++)
		add(profile, LEAK, i, i % 3 ? PROFILE_LIVE : i, 1000);
	graph = make(profile, GRAPH_DEFAULT_TOP);
	last = graph->n_points - 1;
	assert_int_equal(graph->series[0].stack, LEAK);
	assert_int_equal(graph->series[0].stays_bytes[last], 200 * 1000);
	assert_int_equal(graph->series[0].freed_bytes[last], 0);
	assert_int_equal(graph->series[1].stays_bytes[last], 1 * 100);
	assert_int_equal(graph->series[1].freed_bytes[last], 50 * 100);
	assert_int_equal(graph->series[2].stays_bytes[last], 0);
	assert_int_equal(graph->series[2].freed_bytes[last], 50 * 10);
	assert_int_equal(graph->series[2].live_bytes, 50 * 10);
	graph__free(graph);
	profile__free(profile);
}

static void test_behaviours(void **state)
{
	enum {
		END_ONLY,
		LEAK,
		MIXTURE,
		CACHE
	};
	struct profile *profile = fixture__live("behaviours");
	struct graph *graph = make(profile, GRAPH_DEFAULT_TOP);
	const struct graph_series *series = graph->series;

	assert_int_equal(graph->n_series, 4);
	assert_int_equal(graph->n_points, 1001);
	assert_int_equal(graph->end_ns, 2000000000);
	for (size_t i = 0; i < graph->n_points; i++) {
		assert_int_equal(graph->times_ns[i], i * 2000000);
		assert_int_equal(series[LEAK].stays_bytes[i], i * 1024);
		assert_int_equal(series[LEAK].freed_bytes[i], 0);
		assert_int_equal(series[END_ONLY].stays_bytes[i], 0);
		assert_int_equal(series[CACHE].stays_bytes[i], 0);
		assert_true(series[CACHE].freed_bytes[i] <= 150 * 4096);
		if (i >= 150 && i < 999)
			assert_int_equal(series[CACHE].freed_bytes[i], 150 * 4096);
		assert_true(sum_at(graph, i) <= graph->peak_bytes);
	}
	assert_int_equal(series[LEAK].live_bytes, 1000 * 1024);
	assert_int_equal(series[LEAK].live, 2000);
	assert_int_equal(series[END_ONLY].peak_bytes, 980 * 2100);
	assert_int_equal(series[END_ONLY].freed_bytes[998], 980 * 2100);
	assert_int_equal(series[END_ONLY].freed_bytes[999], 490 * 2100);
	assert_int_equal(series[END_ONLY].freed_bytes[1000], 0);
	assert_true(series[MIXTURE].live_bytes &&
		    series[MIXTURE].live_bytes < series[MIXTURE].peak_bytes);
	assert_int_equal(graph->peak_bytes, sum_at(graph, graph->peak_ns / 2000000));
	assert_int_equal(graph->live_bytes, sum_at(graph, 1000));
	assert_int_equal(graph->n_spans, 200);
	graph__free(graph);
	profile__free(profile);
}

static __u64 random_state = 1;

static __u32 random_below(__u32 limit)
{
	random_state = random_state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (random_state >> 33) % limit;
}

/* Against adding up what is alive, epoch by epoch, for few and many stacks of their own. */
static void test_against_plain_sums(void **state)
{
	for (int round = 0; round < 20; round++) {
		__u32 n_epochs = 1 + random_below(3000);
		struct profile *profile = with_stacks(30, "7");
		__u64 *live = calloc(n_epochs, sizeof(*live)), peak = 0;
		size_t tops[] = { 1, 8, 16 }, per_point;

		for (int i = 0; i < 2000; i++) {
			__u32 born = random_below(n_epochs), size = random_below(5000);
			__u32 died = born + random_below(n_epochs - born);

			if (!random_below(4))
				died = PROFILE_LIVE;
			add(profile, 1 + random_below(30), born, died, size);
			for (__u32 at = born; at < died && at < n_epochs; at++)
				live[at] += size;
		}
		for (__u32 i = 0; i < n_epochs; i++)
			peak = live[i] > peak ? live[i] : peak;
		for (size_t i = 0; i < ARRAY_SIZE(tops); i++) {
			struct graph *graph = make(profile, tops[i]);
			__u64 others = 0;

			assert_true(graph->n_points <= GRAPH_MAX_POINTS + 1);
			assert_int_equal(graph->peak_bytes, peak);
			assert_int_equal(graph->n_series, tops[i] + 1);
			per_point = graph->times_ns[1] / 7;
			assert_int_equal(sum_at(graph, 0), 0);
			for (size_t at = 1; at < graph->n_points; at++) {
				size_t last = graph->times_ns[at] / 7 - 1;

				assert_int_equal(sum_at(graph, at), live[last]);
				if (at + 1 < graph->n_points)
					assert_int_equal(last + 1, at * per_point);
			}
			for (size_t j = 1; j < tops[i]; j++)
				assert_true(graph->series[j - 1].peak_bytes >=
					    graph->series[j].peak_bytes);
			for (size_t at = 0; at < graph->n_points; at++) {
				const struct graph_series *last = &graph->series[tops[i]];

				others = last->stays_bytes[at] + last->freed_bytes[at];
				assert_true(others <= last->peak_bytes);
			}
			graph__free(graph);
		}
		free(live);
		profile__free(profile);
	}
}

/* Stacks that print alike are one, and what is not selected is nowhere. */
static void test_groups_and_selection(void **state)
{
	struct profile *profile = with_stacks(4, "1000");
	const bool selected[] = { true, true, true, false };
	struct graph *graph;

	fixture__name_frame(profile, 1, "f");
	fixture__name_frame(profile, 3, "f");
	add(profile, 1, 0, PROFILE_LIVE, 100);
	add(profile, 2, 1, 3, 150);
	add(profile, 3, 2, 4, 70);
	add(profile, 4, 0, PROFILE_LIVE, 1000);
	graph = make_selected(profile, selected, 8);
	assert_int_equal(graph->n_series, 2);
	assert_int_equal(graph->n_stacks, 2);
	assert_int_equal(graph->series[0].stack, 1);
	assert_int_equal(graph->series[0].peak_bytes, 170);
	assert_int_equal(graph->series[0].live_bytes, 100);
	assert_int_equal(graph->series[1].stack, 2);
	assert_int_equal(graph->peak_bytes, 320);
	assert_int_equal(graph->live_bytes, 100);
	assert_int_equal(graph->allocations[0], 1);
	graph__free(graph);
	profile__free(profile);
}

/* The graph draws what a process leaves as what stays, until the process ends. */
static void test_exits(void **state)
{
	struct profile *profile = with_stacks(2, "1000");
	const struct profile_lifetime left = { 1, 2, PROFILE_LIVE, 5, 1, 100 };
	const __u64 stays_bytes[] = { 0, 0, 0, 100, 100, 100, 0, 40, 40, 40, 40 };
	struct graph *graph;

	assert_int_equal(profile__add_lifetime(profile, &left), 0);
	add(profile, 1, 6, PROFILE_LIVE, 40);
	add(profile, 2, 0, 9, 7);
	graph = make(profile, 8);
	assert_int_equal(graph->n_points, ARRAY_SIZE(stays_bytes));
	for (size_t at = 0; at < graph->n_points; at++)
		assert_int_equal(graph->series[0].stays_bytes[at], stays_bytes[at]);
	assert_int_equal(graph->series[0].peak_bytes, 100);
	assert_int_equal(graph->series[0].live_bytes, 140);
	assert_int_equal(graph->peak_bytes, 107);
	assert_int_equal(graph->live_bytes, 140);
	graph__free(graph);
	profile__free(profile);
}

/* Blocks that a process leaves in the epoch of its end are in no band, and count as not freed nevertheless. */
static void test_short_exits(void **state)
{
	struct profile *profile = with_stacks(1, "1000");
	const struct profile_lifetime left = { 1, 5, PROFILE_LIVE, 5, 3, 300 };
	struct graph *graph;

	assert_int_equal(profile__add_lifetime(profile, &left), 0);
	graph = make(profile, 8);
	assert_int_equal(graph->n_series, 0);
	assert_int_equal(graph->peak_bytes, 0);
	assert_int_equal(graph->live, 3);
	assert_int_equal(graph->live_bytes, 300);
	graph__free(graph);
	profile__free(profile);
}

static void test_spans(void **state)
{
	static const __u32 epochs[] = { 1, 2, 199, 200, 201, 399, 401, 1000, 100000 };

	for (size_t i = 0; i < ARRAY_SIZE(epochs); i++) {
		struct profile *profile = with_stacks(1, "1000");
		__u64 allocations = 0, length_ns = 0;
		struct graph *graph;
		char elapsed[64];

		/* The last epoch is nearly over, or has only begun. */
		for (__u32 at = 0; at < epochs[i]; at++)
			add(profile, 1, at, at, 1);
		snprintf(elapsed, sizeof(elapsed), "%.9f",
			 (epochs[i] * 1000.0 - (i % 2 ? 1 : 999)) / 1e9);
		profile__set_meta(profile, "elapsed_seconds", elapsed);
		graph = make(profile, 1);
		assert_true(graph->n_spans >= 1 && graph->n_spans <= 200);
		for (size_t at = 0; at < graph->n_spans; at++) {
			allocations += graph->allocations[at];
			length_ns += graph__span_ns(graph, at);
		}
		assert_int_equal(allocations, epochs[i]);
		assert_int_equal(length_ns, graph->end_ns);
		if (graph->n_spans > 1)
			assert_true(graph__span_ns(graph, graph->n_spans - 1) >=
				    graph->span_ns / 2);
		graph__free(graph);
		profile__free(profile);
	}
}

static void test_no_live_data(void **state)
{
	static const char *const bad[] = { "", "0", "-1", "x", "1x", "99999999999999999999" };
	struct profile *profile = fixture__live("no_live");
	struct names names = name(profile);
	struct error error = { 0 };
	struct graph *graph = NULL;

	assert_int_equal(graph__new(profile, names.groups, NULL, NULL, 8, &graph, &error),
			 -ENODATA);
	assert_non_null(strstr(error.text, "--live"));
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		profile__set_meta(profile, "epoch_ns", bad[i]);
		assert_int_equal(graph__new(profile, names.groups, NULL, NULL, 8, &graph, &error),
				 -EINVAL);
	}
	assert_null(graph);
	release(&names);
	profile__free(profile);
}

static void test_nothing_live(void **state)
{
	struct profile *profile = fixture__live("short_lived");
	struct graph *graph = make(profile, 8);

	assert_int_equal(graph->n_series, 0);
	assert_int_equal(graph->n_stacks, 1);
	assert_int_equal(graph->peak_bytes, 0);
	graph__free(graph);
	profile__free(profile);
	profile = fixture__live("empty");
	graph = make(profile, 8);
	assert_int_equal(graph->n_stacks, 0);
	assert_int_equal(graph->end_ns, 1500000);
	graph__free(graph);
	profile__free(profile);
}

/* A sample that was taken after the exit is no resident memory; a gap between two processes is. */
static void test_resident_until_the_exit(void **state)
{
	static const __u64 rss_bytes[] = { 4096, 0, 8192, 0, 0 };
	struct profile *profile = with_stacks(1, "1000");
	struct graph *graph;

	profile__set_meta(profile, "elapsed_seconds", "0.000004");
	add(profile, 1, 0, PROFILE_LIVE, 100);
	for (size_t i = 0; i < ARRAY_SIZE(rss_bytes); i++) {
		struct timeline_sample sample = { .time_ns = (i + 1) * 1000,
						  .rss_bytes = rss_bytes[i] };

		profile__add_timeline_sample(profile, &sample);
	}
	graph = make(profile, 8);
	assert_int_equal(graph->n_samples, 3);
	assert_int_equal(graph->samples[2].rss_bytes, 8192);
	/* The recording goes on. */
	assert_int_equal(graph->end_ns, 5000);
	graph__free(graph);
	profile__free(profile);
}

static int draw(const struct profile *profile, enum graph_format format, FILE *to)
{
	struct graph *graph = make(profile, GRAPH_MAX_TOP);
	struct names names = name(profile);
	struct graph_words words = { .title = "t\x01\xff \xe2\x82\xac", .start_time = "never" };
	struct graph_label *labels;
	struct cairo_library *cairo;
	int err;

	assert_int_equal(cairo_library__open(&cairo, NULL), 0);
	assert_int_equal(graph_label__new(names.groups, graph, &labels), 0);
	words.labels = labels;
	err = graph__draw(cairo, graph, &words, format, to);
	cairo_library__close(cairo);
	graph_label__free(labels, graph->n_series);
	graph__free(graph);
	release(&names);
	return err;
}

/* The line of resident memory, the only one with dashes, runs under the discs that bands' numbers are on, the only white areas
 * with curves. */
static void test_numbers_over_the_line(void **state)
{
	struct profile *profile = with_stacks(1, "1000");
	char *text = NULL, *dashes, *disc = NULL;
	size_t size;
	FILE *file = open_memstream(&text, &size);

	profile__set_meta(profile, "elapsed_seconds", "0.000004");
	add(profile, 1, 0, PROFILE_LIVE, 8192);
	for (size_t i = 1; i <= 4; i++) {
		struct timeline_sample sample = { .time_ns = i * 1000, .rss_bytes = 8192 };

		profile__add_timeline_sample(profile, &sample);
	}
	assert_int_equal(draw(profile, GRAPH_SVG, file), 0);
	fclose(file);
	dashes = strstr(text, "stroke-dasharray");
	for (char *rest = text, *line; (line = strsep(&rest, "\n"));)
		if (strstr(line, "fill-rule") && strstr(line, "rgb(100%") && strstr(line, " C ") &&
		    !disc)
			disc = line;
	assert_non_null(dashes);
	assert_non_null(disc);
	assert_true(disc > dashes);
	free(text);
	profile__free(profile);
}

/* Whatever a file says, there is a picture. */
static void test_hostile(void **state)
{
	static const char *const elapsed[] = { "nan", "1e300", "-5", "inf", "", "9223372036" };
	static const char *const epochs[] = { "1", "9223372036854775807", "1000000" };

	for (size_t i = 0; i < ARRAY_SIZE(elapsed) * ARRAY_SIZE(epochs); i++) {
		struct profile *profile = with_stacks(3, epochs[i % ARRAY_SIZE(epochs)]);
		FILE *file = fopen("/dev/null", "w");
		struct timeline_sample sample = { .time_ns = PROFILE_MAX,
						  .rss_bytes = PROFILE_MAX };

		profile__set_meta(profile, "elapsed_seconds", elapsed[i / ARRAY_SIZE(epochs)]);
		add(profile, 1, 0, PROFILE_LIVE - 1, PROFILE_MAX);
		add(profile, 2, 0, PROFILE_LIVE, PROFILE_MAX);
		add(profile, 3, PROFILE_LIVE, PROFILE_LIVE, PROFILE_MAX);
		add(profile, 3, 5, 6, PROFILE_MAX);
		add(profile, 3, 6, 6, 1);
		if (i % 2)
			profile__add_timeline_sample(profile, &sample);
		assert_int_equal(draw(profile, i % 3, file), 0);
		fclose(file);
		profile__free(profile);
	}
}

static void test_hostile_names(void **state)
{
	struct profile *profile = with_stacks(3, "1000");
	char *name = malloc(1 << 20);
	FILE *file = fopen("/dev/null", "w");

	memset(name, 'x', 1 << 20);
	for (size_t i = 0; i + 3 < 1 << 20; i += 3)
		memcpy(name + i, "\xe2\x82\xac", 3);
	name[(1 << 20) - 1] = '\0';
	assert_int_equal(fixture__name_frame(profile, 1, name), 0);
	assert_int_equal(fixture__name_frame(profile, 2, "\xff\xe2\x82\n\x7f\x1b[2J"), 0);
	for (__u32 count = 1; count <= 3; count++)
		add(profile, count, 0, PROFILE_LIVE, 100);
	for (int format = GRAPH_SVG; format <= GRAPH_PDF; format++)
		assert_int_equal(draw(profile, format, file), 0);
	free(name);
	fclose(file);
	profile__free(profile);
}

static void test_full_device(void **state)
{
	struct profile *profile = fixture__live("one");

	for (int format = GRAPH_SVG; format <= GRAPH_PDF; format++) {
		FILE *file = fopen("/dev/full", "w");

		assert_int_equal(draw(profile, format, file), -ENOSPC);
		fclose(file);
	}
	profile__free(profile);
}

static void test_labels(void **state)
{
	static const struct {
		const char *frames[4]; /* innermost first */
		const char *label;
	} cases[] = {
		{ { "f", "g<int, long>", "main" }, "f<g<int, long><main" },
		{ { "f" }, "f" },
		{ { NULL }, "[no frames]" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct profile *profile = with_stacks(4, "1000");
		__u32 frames[4], n = 0, stack, count;
		struct graph_label *labels;
		struct names names;
		struct graph *graph;
		char text[256];

		for (; n < 4 && cases[i].frames[n]; n++) {
			frames[n] = n + 1;
			fixture__name_frame(profile, n + 1, cases[i].frames[n]);
		}
		assert_int_equal(profile__add_stack(profile, frames, n, AP_END_COMPLETE, &stack),
				 0);
		assert_int_equal(profile__add_count(profile, 1, stack, AP_MALLOC, 1, 1, &count), 0);
		add(profile, count, 0, PROFILE_LIVE, 1);
		graph = make(profile, 1);
		names = name(profile);
		assert_int_equal(graph_label__new(names.groups, graph, &labels), 0);
		snprintf(text, sizeof(text), "%s", labels->name);
		for (size_t j = 0; j < labels->n_callers; j++)
			snprintf(text + strlen(text), sizeof(text) - strlen(text), "<%s",
				 labels->callers[j]);
		assert_string_equal(text, cases[i].label);
		graph_label__free(labels, graph->n_series);
		graph__free(graph);
		release(&names);
		profile__free(profile);
	}
}

static void assert_ticks(struct graph_axis axis, const char *expected, double value)
{
	char text[512] = "", label[64];

	for (size_t i = 0; i < graph_axis__ticks(&axis); i++) {
		graph_axis__label(&axis, i, label, sizeof(label));
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s", i ? " | " : "",
			 label);
	}
	if (strcmp(text, expected))
		fail_msg("ticks up to %g: expected %s, got %s", value, expected, text);
	assert_true(axis.end >= value * (1 - 1e-9));
}

static void test_ticks(void **state)
{
	static const struct {
		__u64 max;
		const char *ticks;
	} bytes[] = {
		{ 0, "0 | 1 KiB" },
		{ 1, "0 | 1 bytes" },
		{ 3, "0 | 1 bytes | 2 bytes | 3 bytes" },
		{ 1024, "0 | 0.2 KiB | 0.4 KiB | 0.6 KiB | 0.8 KiB | 1 KiB" },
		{ 5300000, "0 | 1 MiB | 2 MiB | 3 MiB | 4 MiB | 5 MiB | 6 MiB" },
		{ 1000ULL << 20, "0 | 200 MiB | 400 MiB | 600 MiB | 800 MiB | 1000 MiB" },
		{ PROFILE_MAX, "0 | 2000 PiB | 4000 PiB | 6000 PiB | 8000 PiB | 10000 PiB" },
	}, times[] = {
		{ 1, "0 | 0.1 ns | 0.2 ns | 0.3 ns | 0.4 ns | 0.5 ns | 0.6 ns | 0.7 ns | 0.8 ns | "
		     "0.9 ns | 1 ns" },
		{ 5000000, "0 | 0.5 ms | 1 ms | 1.5 ms | 2 ms | 2.5 ms | 3 ms | 3.5 ms | 4 ms | "
			   "4.5 ms | 5 ms" },
		{ 9990000000, "0 | 1 s | 2 s | 3 s | 4 s | 5 s | 6 s | 7 s | 8 s | 9 s" },
		{ 1000000000000, "0 | 2 min | 4 min | 6 min | 8 min | 10 min | 12 min | 14 min | "
				 "16 min" },
		{ 6000000000000, "0 | 10 min | 20 min | 30 min | 40 min | 50 min | 60 min | "
				 "70 min | 80 min | 90 min | 100 min" },
		{ 36000000000000, "0 | 1 h | 2 h | 3 h | 4 h | 5 h | 6 h | 7 h | 8 h | 9 h | 10 h" },
	}, counts[] = {
		{ 0, "0 | 1" },
		{ 9300, "0 | 5,000 | 10,000" },
		{ 25000, "0 | 10 k | 20 k | 30 k" },
		{ 1499000, "0 | 0.5 M | 1 M | 1.5 M" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(bytes); i++)
		assert_ticks(graph_axis__bytes(bytes[i].max, 6), bytes[i].ticks, bytes[i].max);
	for (size_t i = 0; i < ARRAY_SIZE(times); i++)
		assert_ticks(graph_axis__time(times[i].max, 10), times[i].ticks, times[i].max);
	for (size_t i = 0; i < ARRAY_SIZE(counts); i++)
		assert_ticks(graph_axis__count(counts[i].max, 3), counts[i].ticks, counts[i].max);
	for (int bit = 0; bit < 63; bit++) {
		struct graph_axis axes[] = { graph_axis__bytes(1ULL << bit, 6),
					     graph_axis__time(1ULL << bit, 10),
					     graph_axis__count(1ULL << bit, 3) };

		for (size_t i = 0; i < ARRAY_SIZE(axes); i++) {
			if (graph_axis__ticks(&axes[i]) > 12 || graph_axis__ticks(&axes[i]) < 2)
				fail_msg("%zu ticks up to 2^%d", graph_axis__ticks(&axes[i]), bit);
		}
	}
}

static void test_quantities(void **state)
{
	static const struct {
		__u64 value;
		const char *bytes, *time, *count;
	} cases[] = {
		{ 0, "0 bytes", "0 ns", "0" },
		{ 1, "1 byte", "1 ns", "1" },
		{ 1023, "1023 bytes", "1.023 \302\265s", "1,023" },
		{ 1024 * 1000, "1000 KiB", "1.024 ms", "1,024,000" },
		{ 1996000000, "1.86 GiB", "1.996 s", "1,996,000,000" },
		{ 185000000000, "172 GiB", "3 min 5 s", "185,000,000,000" },
		{ 35999999999999, "32.7 TiB", "9 h 59 min", "35,999,999,999,999" },
		{ PROFILE_MAX, "8192 PiB", "106751 days 23 h", "9,223,372,036,854,775,807" },
	};
	char text[64];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		graph_axis__print_bytes(cases[i].value, text, sizeof(text));
		assert_string_equal(text, cases[i].bytes);
		graph_axis__print_time(cases[i].value, text, sizeof(text));
		assert_string_equal(text, cases[i].time);
		graph_axis__print_count(cases[i].value, text, sizeof(text));
		assert_string_equal(text, cases[i].count);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_behaviours),
		cmocka_unit_test(test_rest_of_a_cache),
		cmocka_unit_test(test_against_plain_sums),
		cmocka_unit_test(test_exits),
		cmocka_unit_test(test_short_exits),
		cmocka_unit_test(test_spans),
		cmocka_unit_test(test_groups_and_selection),
		cmocka_unit_test(test_no_live_data),
		cmocka_unit_test(test_resident_until_the_exit),
		cmocka_unit_test(test_nothing_live),
		cmocka_unit_test(test_numbers_over_the_line),
		cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_hostile_names),
		cmocka_unit_test(test_full_device),
		cmocka_unit_test(test_labels),
		cmocka_unit_test(test_ticks),
		cmocka_unit_test(test_quantities),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
