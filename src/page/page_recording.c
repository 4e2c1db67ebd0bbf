// SPDX-License-Identifier: GPL-3.0-or-later
/* Writes the numbers of a recording's stacks and blocks into the page, a column at a time. */
#include "page_recording_internal.h"

#include <errno.h>
#include <json-c/json.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "cleanup.h"
#include "error.h"
#include "filter.h"
#include "page_blocks.h"
#include "page_data.h"
#include "page_source.h"
#include "profile.h"
#include "report.h"
#include "stack_groups.h"
#include "stack_view.h"

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
	ROW_TYPE,
	ROW_NUMBERS,
};

/* Returns the number of a count, of which the page has a row. */
static __u32 row_number(const struct page_recording *recording, enum row_number what, size_t count)
{
	const struct profile_count *counts = recording->input.profile->counts;

	switch (what) {
	case ROW_NODE:
		return recording->nodes[count];
	case ROW_THREAD:
		return counts[count].thread - 1;
	case ROW_SOURCE:
		return recording->source->nodes[count];
	default:
		return recording->input.view->types[counts[count].stack - 1];
	}
}

static int write_numbers(const struct writer *writer, enum row_number what)
{
	static const char *const names[ROW_NUMBERS] = { "rows.node", "rows.thread", "rows.source",
							"rows.type" };
	const struct profile *profile = writer->recording->input.profile;
	_cleanup_(free_ptr) __u32 *numbers = calloc(writer->n_rows + 1, sizeof(*numbers));

	if (!numbers)
		return -ENOMEM;
	for (size_t i = 0; i < profile->n_counts; i++)
		if (writer->rows[i])
			numbers[writer->rows[i] - 1] = row_number(writer->recording, what, i);
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
	if (!err && stack_view__knows_types(writer->recording->input.view))
		err = write_numbers(writer, ROW_TYPE);
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
	if (page_recording__has_exits(writer->recording->input.profile))
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
		err = page_blocks__write(recording->blocks, &recording->input, recording->nodes,
					 prefix, to);
	free(writer.rows);
	return err;
}
