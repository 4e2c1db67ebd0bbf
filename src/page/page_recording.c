// SPDX-License-Identifier: GPL-3.0-or-later
#include "page_recording.h"

#include <errno.h>
#include <json-c/json.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "completeness.h"
#include "error.h"
#include "filter.h"
#include "finding_text.h"
#include "findings.h"
#include "growth.h"
#include "json.h"
#include "moved.h"
#include "number.h"
#include "page_blocks.h"
#include "page_data.h"
#include "page_source.h"
#include "profile.h"
#include "profile_runs.h"
#include "reasons.h"
#include "recording_text.h"
#include "report.h"
#include "stack_groups.h"

/* Makes the part of a page that describes its recording: title, processes, threads, and what is missing. */

char *page_recording__title(const struct page_recording *recording)
{
	const struct profile *profile = recording->input.profile;

	if (!profile__meta(profile, "command") && !profile__meta(profile, "attached_pid"))
		return strdup(recording->name);
	return recording_text__title(profile);
}

static json_object *text_or_null(const char *text)
{
	return text ? json__string(text) : NULL;
}

static void add_lines(json_object *list, char *text)
{
	char *left = text;

	for (char *line = strtok_r(left, "\n", &left); line; line = strtok_r(NULL, "\n", &left))
		json_object_array_add(list, json__string(line));
}

/* Returns the lines of @text, or an empty list. */
static json_object *lines_of(char *text)
{
	json_object *list = json_object_new_array();

	add_lines(list, text);
	return list;
}

static json_object *missing_of(const struct profile *profile, unsigned int flags)
{
	_cleanup_(free_ptr) char *text = NULL;

	return completeness__lines(profile, flags | COMPLETENESS_TIMES | COMPLETENESS_HISTOGRAMS,
				   &text)
		       ? NULL
		       : lines_of(text);
}

/* Returns notes that a reader should know about the numbers. */
static json_object *notes_of(const struct page_recording *recording)
{
	const struct profile *profile = recording->input.profile;
	const struct filtered *filtered = recording->filtered;
	_cleanup_(free_ptr) char *sampled = completeness__sampled(profile);
	_cleanup_(free_ptr) char *beside = NULL;
	json_object *list = json_object_new_array();
	char text[128];

	if (sampled)
		json_object_array_add(list, json__string(sampled));
	if (!recording_text__beside(profile, false, &beside))
		add_lines(list, beside);
	if (filtered->total.allocations != filtered->whole.allocations) {
		snprintf(text, sizeof(text), "%s of %s allocations are selected",
			 number__count(filtered->total.allocations).text,
			 number__count(filtered->whole.allocations).text);
		json_object_array_add(list, json__string(text));
	}
	if (filtered->total.unsure) {
		snprintf(text, sizeof(text),
			 "%s more blocks may belong here: times are known to %s",
			 number__count(filtered->total.unsure).text,
			 number__time(filtered->epoch_ns).text);
		json_object_array_add(list, json__string(text));
	}
	return list;
}

/* An element is [name, value, meaning or null for entries of later versions]. */
static json_object *ledger_of(const struct profile *profile)
{
	json_object *list = json_object_new_array();

	for (size_t i = 0; i < profile->n_ledger; i++) {
		json_object *entry = json_object_new_array();

		json_object_array_add(entry, json__string(profile->ledger[i].name));
		json_object_array_add(entry, json__count(profile->ledger[i].value));
		json_object_array_add(
			entry, text_or_null(reason__ledger_meaning(profile->ledger[i].name)));
		json_object_array_add(list, entry);
	}
	return list;
}

/* An element is [pid, name, command line, name of the control group]; the last two are null where they are not known. */
static json_object *processes_of(const struct profile *profile)
{
	json_object *list = json_object_new_array();

	for (size_t i = 0; i < profile->n_processes; i++) {
		json_object *entry = json_object_new_array();

		json_object_array_add(entry, json__count(profile->processes[i].pid));
		json_object_array_add(entry, json__string(profile->processes[i].comm));
		json_object_array_add(entry, text_or_null(profile->processes[i].arguments));
		json_object_array_add(entry, text_or_null(profile->processes[i].group_name));
		json_object_array_add(list, entry);
	}
	return list;
}

/* An element is [index of the process, name]. */
static json_object *threads_of(const struct profile *profile)
{
	json_object *list = json_object_new_array();

	for (size_t i = 0; i < profile->n_threads; i++) {
		json_object *entry = json_object_new_array();

		json_object_array_add(entry, json__count(profile->threads[i].process - 1));
		json_object_array_add(entry, json__string(profile->threads[i].name));
		json_object_array_add(list, entry);
	}
	return list;
}

/* Returns why there is no time line, or NULL. */
static const char *no_time_line(const struct page_recording *recording,
				const struct page_epochs *epochs)
{
	if (epochs->n)
		return NULL;
	return "This recording does not say when blocks were freed. Record with --live to see what "
	       "was alive at any time.";
}

static void add_texts(const struct page_recording *recording, json_object *object)
{
	const struct profile *profile = recording->input.profile;
	_cleanup_(free_ptr) char *title = page_recording__title(recording);
	__u64 signal = profile__meta_number(profile, "exit_signal");
	char status[64];
	static const struct {
		const char *key, *meta;
	} texts[] = {
		{ "startTime", "start_time" },	 { "version", "allocprof_version" },
		{ "kernel", "kernel" },		 { "engine", "engine" },
		{ "exitStatus", "exit_status" },
	};

	json__add(object, "title", text_or_null(title));
	json__add(object, "file", json__string(recording->name));
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		json__add(object, texts[i].key,
			  text_or_null(profile__meta(profile, texts[i].meta)));
	if (signal && signal < NSIG && sigabbrev_np((int)signal)) {
		snprintf(status, sizeof(status), "%llu (SIG%s)",
			 profile__meta_number(profile, "exit_status"), sigabbrev_np((int)signal));
		json__add(object, "exitStatus", json__string(status));
	}
}

/* Returns whether a process ended before the recording did, and left blocks live. */
static bool has_exits(const struct profile *profile)
{
	struct profile_lifetime lifetime;
	__u32 at = 0;

	while (profile__next_lifetime(profile, &at, &lifetime))
		if (lifetime.exited != PROFILE_LIVE)
			return true;
	return false;
}

/* Returns the resident memory over time: pairs of a time and bytes. */
static json_object *resident_of(const struct profile *profile)
{
	json_object *list = json_object_new_array();

	for (size_t i = 0; i < profile->n_timeline && profile__n_runs(profile) == 1; i++) {
		json_object *pair = json_object_new_array();

		json_object_array_add(pair, json__count(profile->timeline[i].time_ns));
		json_object_array_add(pair, json__count(profile->timeline[i].rss_bytes));
		json_object_array_add(list, pair);
	}
	return list;
}

/* An element is [time, kind, name]. */
static json_object *marks_of(const struct profile *profile)
{
	json_object *list = json_object_new_array();

	for (size_t i = 0; i < profile->n_marks; i++) {
		json_object *entry = json_object_new_array();

		json_object_array_add(entry, json__count(profile->marks[i].time_ns));
		json_object_array_add(entry, json__string(mark_kind__name(profile->marks[i].kind)));
		json_object_array_add(entry, json__string(profile->marks[i].name));
		json_object_array_add(list, entry);
	}
	return list;
}

/* Returns the node that the stacks have in common that are charged to @function (an index + 1) and
 * have any of @cost: that of the function, if they all come to it the same way. */
static __u32 common_node(const struct page_recording *recording, __u32 function, enum cost cost)
{
	const struct page_input *input = &recording->input;
	const struct charges *charges = &recording->findings->charges;
	const __u32 *parents = recording->trie->parents;
	__u32 common = 0;

	for (size_t i = 0; function && i < input->profile->n_counts; i++) {
		__u32 node = recording->nodes[i];
		__u32 group = input->groups->by_stack[input->profile->counts[i].stack - 1];

		if (!node || charges->of_groups[group] != function ||
		    !cost__of(cost, &input->counts[i]))
			continue;
		/* The stack's node is that of the allocator's function. */
		for (__u32 depth = charges->depths[group] + 1; depth && node; depth--)
			node = parents[node];
		if (!common)
			common = node;
		while (common != node) {
			if (common > node)
				common = parents[common];
			else
				node = parents[node];
		}
		if (!common)
			return 0;
	}
	return common;
}

static enum cost cost_of_finding(const struct finding *finding)
{
	switch (finding->kind) {
	case FINDING_LOST:
	case FINDING_GROWING:
		return COST_LIVE_BYTES;
	case FINDING_PEAK:
		return COST_PEAK;
	default:
		return COST_ALLOCATIONS;
	}
}

static void add_node(json_object *list, size_t at, __u32 node)
{
	json__add(json_object_array_get_idx(list, at), "node", node ? json__count(node) : NULL);
}

static __u32 function_called(const struct page_recording *recording, const char *name)
{
	const struct charges *charges = &recording->findings->charges;

	for (size_t i = 0; name && i < charges->n; i++)
		if (!strcmp(recording->input.groups->labels[charges->functions[i].label].text,
			    name))
			return i + 1;
	return 0;
}

/* Adds the findings, or what moved, and the advice, with the nodes to which the page zooms. */
static void add_findings(const struct page_recording *recording, json_object *object)
{
	const struct findings *findings = recording->findings;
	json_object *list, *advice;

	if (!findings)
		return;
	if (recording->knows_moved) {
		list = moved_text__json(recording->moved, recording->n_moved);
		for (size_t i = 0; i < json_object_array_length(list); i++)
			add_node(list, i,
				 common_node(
					 recording,
					 function_called(recording, recording->moved[i].function),
					 recording->moved[i].cost));
	} else {
		list = findings_text__json(recording->report, findings);
		for (size_t i = 0; i < json_object_array_length(list); i++)
			add_node(list, i,
				 common_node(recording, findings->list[i].function,
					     cost_of_finding(&findings->list[i])));
	}
	json__add(object, "findings", list);
	advice = advice_text__json(recording->report, findings);
	for (size_t i = 0; i < json_object_array_length(advice); i++) {
		const struct report_entry *entry =
			&recording->report->entries[findings->advice[i].entry];

		add_node(advice, i,
			 common_node(recording, findings->charges.of_groups[entry->group],
				     COST_ALLOCATIONS));
	}
	json__add(object, "advice", advice);
}

/* Returns texts about the recording, its ledger, processes and threads; NULL if there is no
 * memory. */
static json_object *page_recording__meta(const struct page_recording *recording,
					 const struct page_epochs *epochs)
{
	const struct profile *profile = recording->input.profile;
	json_object *object = json_object_new_object();

	if (!object)
		return NULL;
	add_texts(recording, object);
	json__add(object, "endNs", json__count(epochs->end_ns));
	json__add(object, "epochNs", json__count(epochs->epoch_ns));
	json__add(object, "nEpochs", json__count(epochs->n));
	json__add(object, "noTimeLine", text_or_null(no_time_line(recording, epochs)));
	json__add(object, "hasLive", json_object_new_boolean(filter__has_live(profile)));
	json__add(object, "hasExits", json_object_new_boolean(has_exits(profile)));
	json__add(object, "peakBytes",
		  recording->filtered->peak_bytes ? json__count(recording->filtered->peak_bytes)
						  : NULL);
	json__add(object, "resident", resident_of(profile));
	json__add(object, "marks", marks_of(profile));
	json__add(object, "residentParts",
		  json__rss_samples(profile->rss_samples, profile->n_rss_samples));
	json__add(object, "isComplete",
		  json_object_new_boolean(completeness__is_complete(profile)));
	json__add(object, "missing", missing_of(profile, 0));
	json__add(object, "missingStrict", missing_of(profile, COMPLETENESS_STRICT));
	json__add(object, "notes", notes_of(recording));
	add_findings(recording, object);
	json__add(object, "ledger", ledger_of(profile));
	json__add(object, "processes", processes_of(profile));
	json__add(object, "threads", threads_of(profile));
	return object;
}

/* Writes the blocks, whose names are "<prefix>.<name>". */
struct writer {
	const struct page_recording *recording;
	const char *prefix;
	FILE *to;
	__u32 *rows; /* indexed by count's id - 1: row + 1; 0: the count is not selected */
	size_t n_rows;
};

struct block_name {
	char text[64];
};

static struct block_name name_of(const struct writer *writer, const char *name)
{
	struct block_name made;

	snprintf(made.text, sizeof(made.text), "%s.%s", writer->prefix, name);
	return made;
}

static struct page_epochs page_recording__epochs(const struct page_recording *recording)
{
	const struct profile *profile = recording->input.profile;
	struct page_epochs epochs = { .end_ns = recording->filtered->end_ns, .per = 1 };
	__u64 length_ns = recording->filtered->epoch_ns, least_ns, last;

	if (!length_ns)
		return epochs;
	last = profile__last_epoch(profile);
	if (profile->n_timeline &&
	    profile->timeline[profile->n_timeline - 1].time_ns > epochs.end_ns)
		epochs.end_ns = profile->timeline[profile->n_timeline - 1].time_ns;
	if (__builtin_mul_overflow(last, length_ns, &least_ns) ||
	    least_ns > PROFILE_MAX - length_ns)
		least_ns = PROFILE_MAX - length_ns;
	/* The last epoch ends with the recording, so it may be shorter than the others. */
	if (epochs.end_ns <= least_ns)
		epochs.end_ns = least_ns + length_ns;
	epochs.n = epochs.end_ns / length_ns + !!(epochs.end_ns % length_ns);
	if (epochs.n <= last)
		epochs.n = last + 1;
	epochs.per = (epochs.n - 1) / PAGE_MAX_EPOCHS + 1;
	epochs.n = (epochs.n - 1) / epochs.per + 1;
	if (__builtin_mul_overflow(length_ns, epochs.per, &epochs.epoch_ns))
		epochs.epoch_ns = PROFILE_MAX;
	return epochs;
}

static int number_rows(struct writer *writer)
{
	const struct profile *profile = writer->recording->input.profile;

	writer->rows = calloc(profile->n_counts + 1, sizeof(*writer->rows));
	if (!writer->rows)
		return -ENOMEM;
	for (size_t i = 0; i < profile->n_counts; i++)
		if (writer->recording->nodes[i])
			writer->rows[i] = ++writer->n_rows;
	return 0;
}

enum row_number {
	ROW_NODE,
	ROW_THREAD,
	ROW_SOURCE,
	ROW_NUMBERS,
};

static int write_numbers(const struct writer *writer, enum row_number what)
{
	static const char *const names[ROW_NUMBERS] = { "rows.node", "rows.thread", "rows.source" };
	const struct page_recording *recording = writer->recording;
	const struct profile *profile = recording->input.profile;
	_cleanup_(free_ptr) __u32 *numbers = calloc(writer->n_rows + 1, sizeof(*numbers));

	if (!numbers)
		return -ENOMEM;
	for (size_t i = 0; i < profile->n_counts; i++)
		if (writer->rows[i])
			numbers[writer->rows[i] - 1] = what == ROW_NODE ? recording->nodes[i]
						       : what == ROW_THREAD
							       ? profile->counts[i].thread - 1
							       : recording->source->nodes[i];
	return page_data__u32(name_of(writer, names[what]).text, numbers, writer->n_rows,
			      writer->to);
}

static __u64 allocations_of(const struct selection *selection)
{
	return selection->allocations;
}

static __u64 bytes_of(const struct selection *selection)
{
	return selection->size_bytes;
}

static __u64 live_of(const struct selection *selection)
{
	return selection->live;
}

static __u64 live_bytes_of(const struct selection *selection)
{
	return selection->live_bytes;
}

static __u64 temporary_of(const struct selection *selection)
{
	return selection->temporary;
}

static __u64 temporary_bytes_of(const struct selection *selection)
{
	return selection->temporary_bytes;
}

static __u64 peak_of(const struct selection *selection)
{
	return selection->peak;
}

static __u64 peak_bytes_of(const struct selection *selection)
{
	return selection->peak_bytes;
}

static __u64 oldest_of(const struct selection *selection)
{
	return selection->oldest_ns;
}

/* Figures of a count as a whole; all but the first two only with --live. */
static const struct row_cost {
	const char *name;
	__u64 (*value)(const struct selection *selection);
	bool needs_whole; /* not known if blocks are selected one by one */
} row_costs[] = {
	{ "rows.allocated", allocations_of },
	{ "rows.allocatedBytes", bytes_of },
	{ "rows.live", live_of },
	{ "rows.liveBytes", live_bytes_of },
	{ "rows.oldestNs", oldest_of },
	{ "rows.temporary", temporary_of, .needs_whole = true },
	{ "rows.temporaryBytes", temporary_bytes_of, .needs_whole = true },
	{ "rows.peak", peak_of, .needs_whole = true },
	{ "rows.peakBytes", peak_bytes_of, .needs_whole = true },
};

#define N_COSTS		     (sizeof(row_costs) / sizeof(row_costs[0]))
#define N_COSTS_WITHOUT_LIVE 2

static int write_cost(const struct writer *writer, const struct row_cost *cost)
{
	const struct page_recording *recording = writer->recording;
	_cleanup_(free_ptr) double *values = calloc(writer->n_rows + 1, sizeof(*values));

	if (!values)
		return -ENOMEM;
	for (size_t i = 0; i < recording->input.profile->n_counts; i++)
		if (writer->rows[i])
			values[writer->rows[i] - 1] = cost->value(&recording->input.counts[i]);
	return page_data__f64(name_of(writer, cost->name).text, values, writer->n_rows, writer->to);
}

static int write_rows(const struct writer *writer)
{
	size_t n =
		filter__has_live(writer->recording->input.profile) ? N_COSTS : N_COSTS_WITHOUT_LIVE;
	int err = write_numbers(writer, ROW_NODE);

	if (!err)
		err = write_numbers(writer, ROW_THREAD);
	if (!err && writer->recording->source)
		err = write_numbers(writer, ROW_SOURCE);
	if (!err && writer->recording->source)
		err = page_source__write(writer->recording->source, writer->prefix, writer->to);
	for (size_t i = 0; i < n && !err; i++)
		if (!row_costs[i].needs_whole || !writer->recording->selects_blocks)
			err = write_cost(writer, &row_costs[i]);
	return err;
}

/* Blocks of one row with the same epochs. */
struct cell {
	__u32 row, born, died;
	__u32 left; /* 1: they were left by a process that ended then, not freed */
	double blocks, bytes;
};

static int compare_cells(const void *left, const void *right)
{
	const struct cell *a = left, *b = right;

	if (a->row != b->row)
		return a->row < b->row ? -1 : 1;
	if (a->born != b->born)
		return a->born < b->born ? -1 : 1;
	if (a->died != b->died)
		return a->died < b->died ? -1 : 1;
	return a->left < b->left ? -1 : a->left > b->left;
}

/* Collects the cells, sorted, with each row and pair of epochs once, which takes less room in the
 * page. */
static int collect_cells(const struct writer *writer, const struct page_epochs *epochs,
			 struct cell **cells, size_t *n)
{
	const struct page_recording *recording = writer->recording;
	const struct profile *profile = recording->input.profile;
	struct cell *made = calloc(profile->n_lifetimes + 1, sizeof(*made));
	struct profile_lifetime lifetime;
	size_t n_made = 0, last = 0;
	__u32 at = 0;

	if (!made)
		return -ENOMEM;
	for (size_t i = 0; profile__next_lifetime(profile, &at, &lifetime); i++) {
		__u32 end = profile_lifetime__end_epoch(&lifetime);

		if (!recording->lifetimes || !recording->lifetimes[i] ||
		    !writer->rows[lifetime.count - 1])
			continue;
		made[n_made++] = (struct cell){
			.row = writer->rows[lifetime.count - 1] - 1,
			.born = lifetime.born / epochs->per,
			/* the epoch after the last one, if the block was never freed */
			.died = end == PROFILE_LIVE ? epochs->n : end / epochs->per,
			.left = end != lifetime.died,
			.blocks = lifetime.blocks,
			.bytes = lifetime.size_bytes,
		};
	}
	qsort(made, n_made, sizeof(*made), compare_cells);
	for (size_t i = 1; i < n_made; i++) {
		if (compare_cells(&made[last], &made[i])) {
			made[++last] = made[i];
		} else {
			made[last].blocks += made[i].blocks;
			made[last].bytes += made[i].bytes;
		}
	}
	*cells = made;
	*n = n_made ? last + 1 : 0;
	return 0;
}

static int write_lifetimes(const struct writer *writer, const struct page_epochs *epochs)
{
	_cleanup_(free_ptr) struct cell *cells = NULL;
	_cleanup_(free_ptr) __u32 *numbers = NULL;
	_cleanup_(free_ptr) double *sums = NULL;
	size_t n = 0;
	int err;

	if (!epochs->n)
		return 0;
	err = collect_cells(writer, epochs, &cells, &n);
	numbers = calloc(n + 1, sizeof(*numbers));
	sums = calloc(n + 1, sizeof(*sums));
	if (err || !numbers || !sums)
		return -ENOMEM;
#define WRITE_COLUMN(type, array, member)                                                          \
	do {                                                                                       \
		for (size_t i = 0; i < n; i++)                                                     \
			(array)[i] = cells[i].member;                                              \
		if (!err)                                                                          \
			err = page_data__##type(name_of(writer, "lifetimes." #member).text, array, \
						n, writer->to);                                    \
	} while (0)
	WRITE_COLUMN(u32, numbers, row);
	WRITE_COLUMN(u32, numbers, born);
	WRITE_COLUMN(u32, numbers, died);
	if (has_exits(writer->recording->input.profile))
		WRITE_COLUMN(u32, numbers, left);
	WRITE_COLUMN(f64, sums, blocks);
	WRITE_COLUMN(f64, sums, bytes);
#undef WRITE_COLUMN
	return err;
}

/* Writes the blocks by thread and bucket, as a list of those that are not 0. */
static int write_buckets(const struct writer *writer, const char *kind, const double *sums,
			 size_t n_threads)
{
	size_t n = 0, all = n_threads * PROFILE_BUCKETS;
	_cleanup_(free_ptr) __u32 *threads = calloc(all + 1, sizeof(*threads));
	_cleanup_(free_ptr) __u32 *buckets = calloc(all + 1, sizeof(*buckets));
	_cleanup_(free_ptr) double *blocks = calloc(all + 1, sizeof(*blocks));
	char name[32];
	int err;

	if (!threads || !buckets || !blocks)
		return -ENOMEM;
	for (size_t i = 0; i < all; i++) {
		if (!sums[i])
			continue;
		threads[n] = i / PROFILE_BUCKETS;
		buckets[n] = i % PROFILE_BUCKETS;
		blocks[n++] = sums[i];
	}
	snprintf(name, sizeof(name), "%s.thread", kind);
	err = page_data__u32(name_of(writer, name).text, threads, n, writer->to);
	snprintf(name, sizeof(name), "%s.bucket", kind);
	if (!err)
		err = page_data__u32(name_of(writer, name).text, buckets, n, writer->to);
	snprintf(name, sizeof(name), "%s.blocks", kind);
	return err ? err : page_data__f64(name_of(writer, name).text, blocks, n, writer->to);
}

/* Writes the histograms of all blocks of the selected counts, as report__histograms() makes them. */
static int write_histograms(const struct writer *writer)
{
	const struct profile *profile = writer->recording->input.profile;
	size_t n = profile->n_threads * PROFILE_BUCKETS + 1;
	_cleanup_(free_ptr) double *sizes = calloc(n, sizeof(*sizes));
	_cleanup_(free_ptr) double *ages = calloc(n, sizeof(*ages));
	struct profile_blocks blocks;
	int err;

	if (!sizes || !ages)
		return -ENOMEM;
	for (size_t i = 0; i < profile->n_counts; i++) {
		size_t first = (profile->counts[i].thread - 1) * (size_t)PROFILE_BUCKETS;

		if (!writer->rows[i] || !writer->recording->input.counts[i].allocations ||
		    !profile__count_blocks(profile, &profile->counts[i], &blocks))
			continue;
		for (int j = 0; j < PROFILE_BUCKETS; j++) {
			sizes[first + j] += blocks.sizes[j];
			ages[first + j] += blocks.lifetimes[j];
		}
	}
	err = write_buckets(writer, "sizes", sizes, profile->n_threads);
	return err ? err : write_buckets(writer, "ages", ages, profile->n_threads);
}

/* Numbers the nodes at which stacks with live blocks end. @groups gets these numbers, from 1, by
 * count's id - 1. */
static __u32 group_leaks(const struct writer *writer, __u32 *groups, __u32 *nodes, __u32 *by_node)
{
	const struct page_recording *recording = writer->recording;
	__u32 n = 0;

	for (size_t i = 0; i < recording->input.profile->n_counts; i++) {
		__u32 node = recording->nodes[i];

		if (!node || !recording->input.counts[i].live)
			continue;
		if (!by_node[node]) {
			nodes[n] = node;
			by_node[node] = ++n;
		}
	}
	/* All counts of a stack contribute to its growth, also those that are not selected. */
	for (size_t i = 0; i < recording->input.profile->n_counts; i++)
		groups[i] = by_node[recording->nodes[i]];
	return n;
}

/* Writes whether stacks were still growing at the end, as report shows it: 0 unknown, 1 no, 2
 * undecided, 3 yes. */
static int write_leaks(const struct writer *writer, size_t n_nodes)
{
	const struct profile *profile = writer->recording->input.profile;
	_cleanup_(free_ptr) __u32 *groups = calloc(profile->n_counts + 1, sizeof(*groups));
	_cleanup_(free_ptr) __u32 *nodes = calloc(writer->n_rows + 1, sizeof(*nodes));
	_cleanup_(free_ptr) __u32 *by_node = calloc(n_nodes + 1, sizeof(*by_node));
	_cleanup_(free_ptr) __u32 *growing = calloc(writer->n_rows + 1, sizeof(*growing));
	_cleanup_(free_ptr) double *rates = calloc(writer->n_rows + 1, sizeof(*rates));
	_cleanup_(free_ptr) struct growth *growths = NULL;
	struct exit_frees frees;
	struct error error;
	__u32 n;
	int err;

	if (!groups || !nodes || !by_node || !growing || !rates)
		return -ENOMEM;
	n = group_leaks(writer, groups, nodes, by_node);
	growths = calloc(n + 1, sizeof(*growths));
	if (!growths)
		return -ENOMEM;
	err = exit_frees__find(profile, &frees, &error);
	if (!err)
		err = growth__measure(profile, groups, n, frees.epoch, growths, &error);
	for (__u32 i = 0; i < n && !err; i++) {
		growing[i] = growths[i].is_known ? 1 + growths[i].verdict : 0;
		rates[i] = growths[i].is_known ? growths[i].bytes_per_second : 0;
	}
	if (!err)
		err = page_data__u32(name_of(writer, "leaks.node").text, nodes, n, writer->to);
	if (!err)
		err = page_data__u32(name_of(writer, "leaks.growing").text, growing, n, writer->to);
	return err ? err
		   : page_data__f64(name_of(writer, "leaks.bytesPerSecond").text, rates, n,
				    writer->to);
}

static size_t count_nodes(const struct page_recording *recording)
{
	__u32 greatest = 0;

	for (size_t i = 0; i < recording->input.profile->n_counts; i++)
		if (recording->nodes[i] > greatest)
			greatest = recording->nodes[i];
	return (size_t)greatest + 1;
}

int page_recording__write(const struct page_recording *recording, const char *prefix, FILE *to)
{
	struct writer writer = { .recording = recording, .prefix = prefix, .to = to };
	struct page_epochs epochs = page_recording__epochs(recording);
	int err = number_rows(&writer);

	if (!err)
		err = page_data__json(name_of(&writer, "meta").text,
				      page_recording__meta(recording, &epochs), to);
	if (!err)
		err = write_rows(&writer);
	if (!err && filter__has_live(recording->input.profile)) {
		err = write_lifetimes(&writer, &epochs);
		if (!err)
			err = write_histograms(&writer);
		if (!err)
			err = write_leaks(&writer, count_nodes(recording));
	}
	if (!err && recording->blocks)
		err = page_blocks__write(recording->blocks, recording->input.profile,
					 recording->nodes, prefix, to);
	free(writer.rows);
	return err;
}
