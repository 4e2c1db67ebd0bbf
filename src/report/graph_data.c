// SPDX-License-Identifier: GPL-3.0-or-later
#include "graph_data.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "error.h"
#include "profile.h"
#include "stack_groups.h"

/* The largest number of bars of the rate; more could not be told apart. */
#define MAX_SPANS 200

/* The percentage of a group's freed blocks that have been freed at its usual age. A group with
 * fewer than 100 freed blocks has no usual age. */
#define USUALLY	  99
#define MIN_FREED 100
/* Usual age of a group of which too few blocks were freed. */
#define NO_AGE UINT32_MAX

/* A birth or a death. Sums wrap modulo 2^64 in between; live sums are right. */
struct event {
	__u32 group, epoch;
	__u64 delta_bytes;
};

struct peak {
	__u32 group;
	__u64 bytes;
};

struct graph_source {
	const struct profile *profile;
	const struct stack_groups *groups;
	const bool *selected; /* NULL: all */
	const struct graph_choice
		*choice; /* its series are the groups, and another one the rest; or NULL */
};

struct epochs {
	__u64 n;
	__u64 per_point, per_span;
};

void graph__free(struct graph *graph)
{
	if (!graph)
		return;
	for (size_t i = 0; i < graph->n_series; i++) {
		free(graph->series[i].stays_bytes);
		free(graph->series[i].freed_bytes);
	}
	free(graph->series);
	free(graph->times_ns);
	free(graph->allocations);
	free(graph);
}

static void free_graph(struct graph **graph)
{
	graph__free(*graph);
}

/* Returns @a * @b, which saturates at PROFILE_MAX. */
static __u64 multiply(__u64 a, __u64 b)
{
	__u64 product;

	return __builtin_mul_overflow(a, b, &product) || product > PROFILE_MAX ? PROFILE_MAX
									       : product;
}

static bool is_selected(const struct graph_source *source, size_t lifetime)
{
	return !source->selected || source->selected[lifetime];
}

static size_t n_groups(const struct graph_source *source)
{
	return source->choice ? source->choice->n + 1 : source->groups->n_groups;
}

static __u32 group_of(const struct graph_source *source, const struct profile_lifetime *lifetime,
		      size_t index)
{
	const struct graph_choice *choice = source->choice;

	for (size_t i = 0; choice && i < choice->n; i++)
		if (choice->lifetimes[i][index])
			return i;
	if (choice)
		return choice->n;
	return source->groups->by_stack[source->profile->counts[lifetime->count - 1].stack - 1];
}

static int read_epoch_ns(const struct profile *profile, __u64 *epoch_ns, struct error *error)
{
	const char *text = profile__meta(profile, "epoch_ns");
	char *end;
	__u64 value;

	if (!text)
		return error__set(
			error, -ENODATA,
			"the recording does not say what was freed, and when; record with "
			"--live to draw a time line");
	value = strtoull(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || !value || value > PROFILE_MAX)
		return error__set(
			error, -EINVAL,
			"the data file's epochs are '%.32s' nanoseconds long, which cannot "
			"be; record again",
			text);
	*epoch_ns = value;
	return 0;
}

static __u64 elapsed_ns(const struct profile *profile)
{
	const char *text = profile__meta(profile, "elapsed_seconds");
	double ns = text ? strtod(text, NULL) * 1e9 : 0;

	return ns > 0 && ns < (double)PROFILE_MAX ? ns : 0;
}

static void set_time(const struct profile *profile, struct graph *graph, struct epochs *epochs)
{
	__u64 last = profile__last_epoch(profile);

	graph->samples = profile->timeline;
	graph->n_samples = profile->n_timeline;
	graph->rss_samples = profile->rss_samples;
	graph->n_rss_samples = profile->n_rss_samples;
	graph->end_ns = elapsed_ns(profile);
	if (graph->n_samples && graph->samples[graph->n_samples - 1].time_ns > graph->end_ns)
		graph->end_ns = graph->samples[graph->n_samples - 1].time_ns;
	/* When no process is left, nothing is resident, and the zeros were not measured. */
	while (graph->n_samples && !graph->samples[graph->n_samples - 1].rss_bytes)
		graph->n_samples--;
	/* The last epoch ends with the recording, so it may be shorter than the others. */
	if (graph->end_ns <= multiply(last, graph->epoch_ns))
		graph->end_ns = multiply(last + 1, graph->epoch_ns);
	epochs->n = graph->end_ns / graph->epoch_ns + !!(graph->end_ns % graph->epoch_ns);
	if (epochs->n <= last)
		epochs->n = last + 1;
	epochs->per_point = (epochs->n - 1) / GRAPH_MAX_POINTS + 1;
	epochs->per_span = (epochs->n - 1) / MAX_SPANS + 1;
	graph->n_points = (epochs->n - 1) / epochs->per_point + 2;
	graph->n_spans = (epochs->n - 1) / epochs->per_span + 1;
	graph->span_ns = multiply(epochs->per_span, graph->epoch_ns);
	/* A short last span would show a rate of hardly any data. */
	if (graph->n_spans > 1 && graph__span_ns(graph, graph->n_spans - 1) < graph->span_ns / 2)
		graph->n_spans--;
}

static int fill_times(struct graph *graph, const struct epochs *epochs)
{
	graph->times_ns = calloc(graph->n_points, sizeof(*graph->times_ns));
	if (!graph->times_ns)
		return -ENOMEM;
	for (size_t i = 1; i < graph->n_points; i++) {
		__u64 time_ns = multiply(multiply(i, epochs->per_point), graph->epoch_ns);

		graph->times_ns[i] = time_ns < graph->end_ns ? time_ns : graph->end_ns;
	}
	graph->times_ns[graph->n_points - 1] = graph->end_ns;
	return 0;
}

static int fill_spans(const struct graph_source *source, struct graph *graph,
		      const struct epochs *epochs)
{
	struct profile_lifetime lifetime;
	__u32 at = 0;

	graph->allocations = calloc(graph->n_spans, sizeof(*graph->allocations));
	if (!graph->allocations)
		return -ENOMEM;
	for (size_t i = 0; profile__next_lifetime(source->profile, &at, &lifetime); i++) {
		size_t span = lifetime.born / epochs->per_span;

		if (!is_selected(source, i))
			continue;
		if (span >= graph->n_spans)
			span = graph->n_spans - 1;
		graph->allocations[span] =
			profile__add_up(graph->allocations[span], lifetime.blocks);
	}
	return 0;
}

__u64 graph__span_ns(const struct graph *graph, size_t span)
{
	__u64 start_ns = multiply(span, graph->span_ns);

	if (span + 1 < graph->n_spans)
		return graph->span_ns;
	return graph->end_ns > start_ns ? graph->end_ns - start_ns : 1;
}

static int compare_events(const void *left, const void *right)
{
	const struct event *a = left, *b = right;

	if (a->group != b->group)
		return a->group < b->group ? -1 : 1;
	return a->epoch < b->epoch ? -1 : a->epoch > b->epoch;
}

static int compare_epochs(const void *left, const void *right)
{
	const struct event *a = left, *b = right;

	return a->epoch < b->epoch ? -1 : a->epoch > b->epoch;
}

static int compare_peaks(const void *left, const void *right)
{
	const struct peak *a = left, *b = right;

	if (a->bytes != b->bytes)
		return a->bytes > b->bytes ? -1 : 1;
	return a->group < b->group ? -1 : a->group > b->group;
}

/* Blocks of a group that were freed at @age, in epochs. */
struct freed {
	__u32 group, age;
	__u64 blocks;
};

static int compare_freed(const void *left, const void *right)
{
	const struct freed *a = left, *b = right;

	if (a->group != b->group)
		return a->group < b->group ? -1 : 1;
	return a->age < b->age ? -1 : a->age > b->age;
}

static size_t collect_freed(const struct graph_source *source, struct freed *freed, __u64 *live)
{
	struct profile_lifetime lifetime;
	__u32 at = 0;
	size_t n = 0;

	for (size_t i = 0; profile__next_lifetime(source->profile, &at, &lifetime); i++) {
		__u32 group = group_of(source, &lifetime, i);

		if (!is_selected(source, i))
			continue;
		if (lifetime.died == PROFILE_LIVE)
			live[group] = profile__add_up(live[group], lifetime.blocks);
		else
			freed[n++] = (struct freed){ group, lifetime.died - lifetime.born,
						     lifetime.blocks };
	}
	return n;
}

/* Returns the usual age of a group, whose @n entries are sorted, and of which @live blocks are
 * live at the end. */
static __u32 usual_age(const struct freed *freed, size_t n, __u64 live)
{
	__u64 all = 0, wanted, sum = 0;

	for (size_t i = 0; i < n; i++)
		all = profile__add_up(all, freed[i].blocks);
	wanted = all / 100 * USUALLY + all % 100 * USUALLY / 100;
	if (all < MIN_FREED || all < live)
		return NO_AGE;
	for (size_t i = 0; i < n; i++) {
		sum = profile__add_up(sum, freed[i].blocks);
		if (sum >= wanted)
			return freed[i].age;
	}
	return NO_AGE;
}

/*
 * Sets the usual ages of groups. Blocks that the end has found live and younger than this, such as
 * those of a cache, would have been freed, too. Returns 0 or -ENOMEM.
 */
static int find_usual_ages(const struct graph_source *source, __u32 *ages)
{
	_cleanup_(free_ptr) struct freed *freed =
		calloc(source->profile->n_lifetimes + 1, sizeof(*freed));
	_cleanup_(free_ptr) __u64 *live = calloc(n_groups(source) + 1, sizeof(*live));
	size_t n, first = 0;

	if (!freed || !live)
		return -ENOMEM;
	for (size_t i = 0; i < n_groups(source); i++)
		ages[i] = NO_AGE;
	n = collect_freed(source, freed, live);
	qsort(freed, n, sizeof(*freed), compare_freed);
	for (size_t i = 0; i < n; i++) {
		__u32 group = freed[i].group;

		if (i + 1 < n && freed[i + 1].group == group)
			continue;
		ages[group] = usual_age(freed + first, i + 1 - first, live[group]);
		first = i + 1;
	}
	return 0;
}

static size_t collect_events(const struct graph_source *source, struct event *events)
{
	struct profile_lifetime lifetime;
	__u32 at = 0;
	size_t n = 0;

	for (size_t i = 0; profile__next_lifetime(source->profile, &at, &lifetime); i++) {
		__u32 group = group_of(source, &lifetime, i), end;

		if (!is_selected(source, i))
			continue;
		events[n++] = (struct event){ group, lifetime.born, lifetime.size_bytes };
		end = profile_lifetime__end_epoch(&lifetime);
		if (end != PROFILE_LIVE)
			events[n++] = (struct event){ group, end, -lifetime.size_bytes };
	}
	return n;
}

/* Returns the greatest sum at the end of an epoch. The @n events are sorted by epoch. */
static __u64 find_peak(const struct event *events, size_t n, __u32 *epoch)
{
	__u64 live_bytes = 0, peak_bytes = 0;

	for (size_t i = 0; i < n; i++) {
		live_bytes += events[i].delta_bytes;
		if (i + 1 < n && events[i + 1].epoch == events[i].epoch)
			continue;
		if (live_bytes > peak_bytes) {
			peak_bytes = live_bytes;
			*epoch = events[i].epoch;
		}
	}
	return peak_bytes < PROFILE_MAX ? peak_bytes : PROFILE_MAX;
}

/* Finds the peak of each group that has events. Returns how many there are. */
static size_t find_peaks(struct event *events, size_t n_events, struct peak *peaks)
{
	size_t n = 0, first = 0;
	__u32 epoch;

	qsort(events, n_events, sizeof(*events), compare_events);
	for (size_t i = 0; i < n_events; i++) {
		if (i + 1 < n_events && events[i + 1].group == events[i].group)
			continue;
		peaks[n++] = (struct peak){
			.group = events[i].group,
			.bytes = find_peak(events + first, i + 1 - first, &epoch),
		};
		first = i + 1;
	}
	qsort(peaks, n, sizeof(*peaks), compare_peaks);
	return n;
}

/* Adds a series for the group of @peak; NULL: for the rest. */
static int add_series(struct graph *graph, const struct graph_source *source,
		      const struct peak *peak, size_t n_stacks)
{
	struct graph_series *series = &graph->series[graph->n_series++];

	if (peak) {
		series->group = peak->group;
		if (source->choice)
			series->name = source->choice->names[peak->group];
		else
			series->stack = source->groups->groups[peak->group].id;
		series->peak_bytes = peak->bytes;
	}
	series->n_stacks = n_stacks;
	series->is_rest = !peak;
	series->stays_bytes = calloc(graph->n_points, sizeof(*series->stays_bytes));
	series->freed_bytes = calloc(graph->n_points, sizeof(*series->freed_bytes));
	return series->stays_bytes && series->freed_bytes ? 0 : -ENOMEM;
}

/* Turns the changes that add_lifetime() stored at each point into sums. */
static void settle_sums(__u64 *sums, size_t n_points)
{
	__u64 sum = 0;

	for (size_t i = 0; i < n_points; i++) {
		sum += sums[i];
		sums[i] = sum < PROFILE_MAX ? sum : PROFILE_MAX;
	}
}

static void add_lifetime(struct graph_series *series, const struct profile_lifetime *lifetime,
			 __u32 usual_age, const struct epochs *epochs)
{
	bool is_freed = lifetime->died != PROFILE_LIVE;
	__u32 end = profile_lifetime__end_epoch(lifetime);
	__u64 age = (end == PROFILE_LIVE ? epochs->n - 1 : end) - lifetime->born;
	bool stays = !is_freed && (usual_age == NO_AGE || age > usual_age);
	__u64 *changes = stays ? series->stays_bytes : series->freed_bytes;
	__u64 size_bytes = lifetime->size_bytes;

	changes[lifetime->born / epochs->per_point + 1] += size_bytes;
	if (end != PROFILE_LIVE)
		changes[end / epochs->per_point + 1] -= size_bytes;
	if (!is_freed) {
		series->live = profile__add_up(series->live, lifetime->blocks);
		series->live_bytes = profile__add_up(series->live_bytes, size_bytes);
	}
}

/* Returns the peak of the groups without a series of their own, for which @series_of has 0. */
static __u64 find_others_peak(struct event *events, size_t n_events, const __u32 *series_of)
{
	size_t n = 0;
	__u32 epoch;

	for (size_t i = 0; i < n_events; i++) {
		if (!series_of[events[i].group])
			events[n++] = events[i];
	}
	return find_peak(events, n, &epoch);
}

/* Puts the peak of group @rest behind the others. Returns how many peaks it has: 1, or 0 without a block. */
static size_t put_rest_last(struct peak *peaks, size_t n, __u32 rest)
{
	for (size_t i = 0; i < n; i++) {
		struct peak found = peaks[i];

		if (found.group != rest)
			continue;
		memmove(&peaks[i], &peaks[i + 1], (n - 1 - i) * sizeof(*peaks));
		peaks[n - 1] = found;
		return 1;
	}
	return 0;
}

static int fill_series(const struct graph_source *source, size_t top, struct graph *graph,
		       const struct epochs *epochs)
{
	const struct profile *profile = source->profile;
	_cleanup_(free_ptr) struct event *events = NULL;
	_cleanup_(free_ptr) struct peak *peaks = NULL;
	/* Index of the series + 1; 0: the series of the others. */
	_cleanup_(free_ptr) __u32 *series_of = NULL;
	_cleanup_(free_ptr) __u32 *ages = NULL;
	struct profile_lifetime lifetime;
	size_t n_events, n_top = 0, n_rest;
	__u32 epoch = 0, at = 0;
	int err = 0;

	events = calloc(2 * profile->n_lifetimes + 1, sizeof(*events));
	peaks = calloc(profile->n_lifetimes + 1, sizeof(*peaks));
	series_of = calloc(n_groups(source) + 1, sizeof(*series_of));
	ages = calloc(n_groups(source) + 1, sizeof(*ages));
	graph->series = calloc(top + 1, sizeof(*graph->series));
	if (!events || !peaks || !series_of || !ages || !graph->series)
		return -ENOMEM;
	n_events = collect_events(source, events);
	graph->n_stacks = find_peaks(events, n_events, peaks);
	n_rest = source->choice ? put_rest_last(peaks, graph->n_stacks, source->choice->n) : 0;
	for (; n_top < top && n_top < graph->n_stacks - n_rest && peaks[n_top].bytes && !err;
	     n_top++) {
		err = add_series(graph, source, &peaks[n_top], source->choice ? 0 : 1);
		series_of[peaks[n_top].group] = n_top + 1;
	}
	if (!source->choice)
		n_rest = graph->n_stacks - n_top;
	/* Stacks with no live byte at the end of any epoch get no band. */
	if (n_rest && peaks[graph->n_stacks - n_rest].bytes && !err)
		err = add_series(graph, source, NULL, source->choice ? 0 : n_rest);
	if (err)
		return err;
	err = find_usual_ages(source, ages);
	if (err)
		return err;
	for (size_t i = 0; profile__next_lifetime(profile, &at, &lifetime); i++) {
		__u32 group = group_of(source, &lifetime, i), series = series_of[group];

		if (!is_selected(source, i))
			continue;
		if (series || graph->n_series > n_top)
			add_lifetime(&graph->series[series ? series - 1 : n_top], &lifetime,
				     ages[group], epochs);
		if (lifetime.died == PROFILE_LIVE) {
			graph->live = profile__add_up(graph->live, lifetime.blocks);
			graph->live_bytes = profile__add_up(graph->live_bytes, lifetime.size_bytes);
		}
	}
	for (size_t i = 0; i < graph->n_series; i++) {
		settle_sums(graph->series[i].stays_bytes, graph->n_points);
		settle_sums(graph->series[i].freed_bytes, graph->n_points);
	}
	qsort(events, n_events, sizeof(*events), compare_epochs);
	graph->peak_bytes = find_peak(events, n_events, &epoch);
	if (graph->n_series > n_top)
		graph->series[n_top].peak_bytes = find_others_peak(events, n_events, series_of);
	graph->peak_ns = multiply((__u64)epoch + 1, graph->epoch_ns);
	if (graph->peak_ns > graph->end_ns)
		graph->peak_ns = graph->end_ns;
	return 0;
}

int graph__new(const struct profile *profile, const struct stack_groups *groups,
	       const bool *selected, const struct graph_choice *choice, size_t top,
	       struct graph **graph, struct error *error)
{
	const struct graph_source source = { profile, groups, selected, choice };
	_cleanup_(free_graph) struct graph *made = calloc(1, sizeof(*made));
	struct epochs epochs;
	int err;

	if (!made)
		return error__set(error, -ENOMEM, "no memory for the time line; free some");
	err = read_epoch_ns(profile, &made->epoch_ns, error);
	if (err)
		return err;
	set_time(profile, made, &epochs);
	err = fill_times(made, &epochs);
	if (!err)
		err = fill_spans(&source, made, &epochs);
	if (!err)
		err = fill_series(&source, choice ? choice->n : top, made, &epochs);
	if (err)
		return error__set(error, err, "no memory for the time line; free some");
	*graph = made;
	made = NULL;
	return 0;
}
