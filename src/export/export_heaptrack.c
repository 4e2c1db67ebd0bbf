// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * heaptrack's file, version 3, compressed: src/analyze/accumulatedtracedata.cpp of heaptrack reads it.
 *
 * It is a list of events, and a recording has sums. So events are made up that have these sums: first
 * the blocks that were neither live at the peak nor at the end, one after the other, then all that
 * were live at the peak, then the end of those that were not live at the end, and last the others that
 * were. Blocks of one group have the same size, or sizes that differ by one byte. The peak has the time of the sample of
 * the time line at which most was live.
 *
 * The reader takes a free for that of a temporary block if the event before it is an allocation of the
 * same allocation info. Between the two of any other block that ends at once there is a free of an info
 * that has no size and is allocated by nobody.
 *
 * heaptrack_gui crashes where the first allocations of infos do not come in the order of the infos, from
 * 0 on. And the reader remembers 0 for "no allocation": a free of info 0 that follows another free is that
 * of a temporary block. So info 0 is that of a temporary block, and if there is none, that of a block of no
 * bytes that is not freed.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "cleanup.h"
#include "clock.h"
#include "error.h"
#include "export_internal.h"
#include "gzip.h"
#include "hash_table.h"
#include "stack_view.h"
#include "text.h"

/* Largest number of blocks: each takes a line or two, so that so many take a minute, and longer in
 * viewers. Numbers of a damaged file go up to 2^63. */
#define MOST_BLOCKS 1000000000ULL

#define PAGE_BYTES 4096

/* What became of a block. */
enum fate {
	FATE_TEMPORARY,
	FATE_PASSED,  /* freed, and not live at the peak */
	FATE_AT_PEAK, /* live at the peak, and freed later */
	FATE_STAYED,  /* live at the peak and at the end */
	FATE_AT_END,  /* live at the end, and not at the peak */
	FATES,
};

struct blocks {
	__u64 n, size_bytes;
};

static __u64 least(__u64 a, __u64 b)
{
	return a < b ? a : b;
}

/* Takes up to so many blocks and bytes from @rest. */
static struct blocks take(struct blocks *rest, __u64 n, __u64 size_bytes)
{
	struct blocks taken = { least(n, rest->n), least(size_bytes, rest->size_bytes) };

	rest->n -= taken.n;
	rest->size_bytes -= taken.size_bytes;
	return taken;
}

/*
 * Divides a sample's blocks by their fate. A recording does not say which blocks of the peak were
 * still live at the end. As many as possible are taken for the same, and one less if their bytes
 * cannot fit both sums.
 */
static void divide(const struct selection *selected, struct blocks fates[FATES])
{
	struct blocks peak = { selected->peak, selected->peak_bytes };
	struct blocks end = { selected->live, selected->live_bytes };
	struct blocks rest = { selected->allocations, selected->size_bytes };
	__u64 n = least(peak.n, end.n), size_bytes = least(peak.size_bytes, end.size_bytes);

	if (n && ((n == peak.n && size_bytes < peak.size_bytes) ||
		  (n == end.n && size_bytes < end.size_bytes)))
		n--;
	if (!n)
		size_bytes = 0;
	fates[FATE_STAYED] = take(&rest, n, size_bytes);
	fates[FATE_AT_PEAK] = take(&rest, peak.n - n, peak.size_bytes - size_bytes);
	fates[FATE_AT_END] = take(&rest, end.n - n, end.size_bytes - size_bytes);
	fates[FATE_TEMPORARY] = take(&rest, selected->temporary, selected->temporary_bytes);
	fates[FATE_PASSED] = rest;
}

/* Neighbouring locations of one frame, for which one address of the file stands. */
struct location_range {
	__u32 first, n;
};

/* A frame of the last written stack, and the number of the stack that ends there. */
struct step {
	struct location_range locations;
	__u32 trace;
};

/* A sample, and the locations by which stacks are sorted. */
struct sorted {
	const __u32 *locations; /* locations, innermost first */
	__u32 n_locations;
	__u32 at; /* the count's id - 1 */
};

struct heaptrack {
	const struct export_input *input;
	struct gzip gzip;
	struct string_ids strings;
	struct location_range *ranges; /* ranges by number - 1 */
	size_t n_ranges, ranges_room;
	struct hash_table range_index;
	__u64 seed;
	struct sorted *sorted;
	size_t n_sorted;
	struct step *steps; /* steps from the outermost frame on */
	size_t n_steps, steps_room;
	__u32 n_traces;
	__u32 *trace_of;   /* stacks by count's id - 1 */
	__u64 *at_peak_of; /* by count's id - 1: the first info of FATE_AT_PEAK */
	__u64 n_infos;
	__u64 no_info; /* an info without size and stack, of which no block begins */
	int err;       /* the first error, after which nothing is written */
};

/* A line that is being made. There is a line for each block, and printf(3) would take most of the
 * time. */
struct line {
	char text[96];
	size_t size;
};

static void add_text(struct line *line, const char *text)
{
	size_t size = strlen(text);

	memcpy(line->text + line->size, text, size);
	line->size += size;
}

static void add_hex(struct line *line, const char *before, __u64 value)
{
	int shift = value ? (63 - __builtin_clzll(value)) & ~3 : 0;

	add_text(line, before);
	for (; shift >= 0; shift -= 4)
		line->text[line->size++] = "0123456789abcdef"[value >> shift & 15];
}

static void print(struct heaptrack *track, const char *text, size_t size)
{
	if (!track->err)
		track->err = gzip__write(&track->gzip, text, size);
}

/* Prints lines that have no variable part. */
static void print_fixed(struct heaptrack *track, const char *text)
{
	print(track, text, strlen(text));
}

static void print_line(struct heaptrack *track, struct line *line)
{
	add_text(line, "\n");
	print(track, line->text, line->size);
}

/* Prints a line of one or two numbers. */
static void print_number(struct heaptrack *track, const char *kind, __u64 value)
{
	struct line line = { .size = 0 };

	add_hex(&line, kind, value);
	print_line(track, &line);
}

static void print_numbers(struct heaptrack *track, const char *kind, __u64 first, __u64 second)
{
	struct line line = { .size = 0 };

	add_hex(&line, kind, first);
	add_hex(&line, " ", second);
	print_line(track, &line);
}

/* Prints @text with its length, and truncates it at a newline, since lines end there. */
static void print_text(struct heaptrack *track, const char *prefix, const char *text, bool sized)
{
	_cleanup_(free_ptr) char *safe = utf8__from_bytes(text);
	struct line line = { .size = 0 };

	if (!safe) {
		track->err = -ENOMEM;
		return;
	}
	utf8__clean(safe);
	add_text(&line, prefix);
	if (sized)
		add_hex(&line, " ", strlen(safe));
	add_text(&line, " ");
	print(track, line.text, line.size);
	print(track, safe, strlen(safe));
	print_fixed(track, "\n");
}

static __u32 string_of(struct heaptrack *track, const char *text)
{
	size_t before = track->strings.n;
	__u32 id = 0;

	if (!track->err)
		track->err = string_ids__add(&track->strings, text, &id);
	if (track->strings.n > before)
		print_text(track, "s", text, true);
	return id;
}

static __u32 name_of(struct heaptrack *track, __u32 location)
{
	const struct stack_view *view = track->input->view;

	return string_of(track, view->labels[view->locations[location].label].text);
}

static __u32 file_of(struct heaptrack *track, __u32 location)
{
	const struct profile_line *line = export__line(track->input, location);

	return line && line->file
		       ? string_of(track, track->input->profile->files[line->file - 1].path)
		       : 0;
}

static void print_locations(struct heaptrack *track, const struct location_range *range)
{
	const struct export_input *input = track->input;
	const struct profile *profile = input->profile;
	const struct stack_view *view = input->view;
	const struct profile_frame *frame =
		&profile->frames[view->locations[range->first].frame - 1];
	__u32 module = 0;

	/* A string is written where it occurs first, and not within the line that refers to it. */
	if (frame->module)
		module = string_of(track, profile->modules[frame->module - 1].path);
	for (__u32 i = range->first; i < range->first + range->n; i++) {
		name_of(track, i);
		file_of(track, i);
	}
	for (__u32 i = range->first; i < range->first + range->n; i++) {
		const struct profile_line *location = export__line(input, i);
		struct line line = { .size = 0 };

		if (i == range->first) {
			add_hex(&line, "i ", export__address(frame));
			add_hex(&line, " ", module);
		}
		add_hex(&line, " ", name_of(track, i));
		add_hex(&line, " ", file_of(track, i));
		add_hex(&line, " ", location ? location->line : 0);
		print(track, line.text, line.size);
	}
	print_fixed(track, "\n");
}

static bool match_range(const void *owner, __u32 id, const void *key)
{
	const struct location_range *range = &((const struct heaptrack *)owner)->ranges[id - 1];

	return !memcmp(range, key, sizeof(*range));
}

/* Returns the number of the range; a new one gets its line printed. Returns 0 with the error set
 * if that fails. */
static __u32 range_of(struct heaptrack *track, const struct location_range *range)
{
	__u64 hash = hash_mix(hash_mix(track->seed, range->first), range->n);
	__u32 id = hash_table__find(&track->range_index, hash, match_range, track, range);

	if (id || track->err)
		return id;
	if (array__reserve(&track->ranges, &track->ranges_room, track->n_ranges + 1,
			   sizeof(*track->ranges)) ||
	    hash_table__insert(&track->range_index, hash, track->n_ranges + 1)) {
		track->err = -ENOMEM;
		return 0;
	}
	track->ranges[track->n_ranges++] = *range;
	print_locations(track, range);
	return track->n_ranges;
}

/* Returns the range that ends before @end, which must not be 0. */
static struct location_range range_before(const struct heaptrack *track, const __u32 *locations,
					  size_t end)
{
	const struct stack_location *of = track->input->view->locations;
	size_t first = end - 1;

	while (first && locations[first - 1] + 1 == locations[first] &&
	       of[locations[first - 1]].frame == of[locations[first]].frame)
		first--;
	return (struct location_range){ locations[first], end - first };
}

/*
 * Returns the number of the sample's stack. Stacks come sorted from the outermost frame on, so the
 * frames that a stack shares with any earlier one it shares with the last one.
 */
static __u32 trace_of(struct heaptrack *track, const struct sorted *sample)
{
	__u32 trace = 0;
	size_t depth = 0;

	for (size_t end = sample->n_locations; end && !track->err; depth++) {
		struct location_range range = range_before(track, sample->locations, end);

		end -= range.n;
		if (depth < track->n_steps &&
		    !memcmp(&track->steps[depth].locations, &range, sizeof(range))) {
			trace = track->steps[depth].trace;
			continue;
		}
		print_numbers(track, "t ", range_of(track, &range), trace);
		if (array__reserve(&track->steps, &track->steps_room, depth + 1,
				   sizeof(*track->steps))) {
			track->err = -ENOMEM;
			return 0;
		}
		trace = ++track->n_traces;
		track->steps[depth] = (struct step){ range, trace };
		track->n_steps = depth + 1;
	}
	return trace;
}

static int compare_sorted(const void *left, const void *right)
{
	const struct sorted *a = left, *b = right;
	__u32 i = a->n_locations, j = b->n_locations;

	while (i && j) {
		__u32 of_a = a->locations[--i], of_b = b->locations[--j];

		if (of_a != of_b)
			return of_a < of_b ? -1 : 1;
	}
	if (i || j)
		return i ? 1 : -1;
	return a->at < b->at ? -1 : a->at > b->at;
}

static void sort(struct heaptrack *track)
{
	struct export_sample sample;

	for (size_t at = 0; export__next(track->input, &at, &sample);)
		track->sorted[track->n_sorted++] = (struct sorted){
			.locations = sample.locations,
			.n_locations = sample.n_frames,
			.at = at - 1,
		};
	qsort(track->sorted, track->n_sorted, sizeof(*track->sorted), compare_sorted);
}

/* Returns the number of infos of a group, one for each size that occurs. */
static __u64 count_infos(const struct blocks *blocks)
{
	return !blocks->n ? 0 : blocks->size_bytes % blocks->n ? 2 : 1;
}

/* Returns the info of block @at; those of larger blocks come first. */
static __u64 info_at(const struct blocks *blocks, __u64 first, __u64 at)
{
	__u64 n_larger = blocks->size_bytes % blocks->n;

	return n_larger && at >= n_larger ? first + 1 : first;
}

static void print_infos(struct heaptrack *track, __u32 trace, const struct blocks *blocks)
{
	__u64 n = count_infos(blocks), size = n ? blocks->size_bytes / blocks->n : 0;

	if (n == 2)
		print_numbers(track, "a ", size + 1, trace);
	if (n)
		print_numbers(track, "a ", size, trace);
	track->n_infos += n;
}

/* Returns whether a block of no bytes must have info 0, since no temporary block does. */
static bool needs_first(const struct heaptrack *track)
{
	struct blocks fates[FATES];

	for (size_t i = 0; i < track->n_sorted; i++) {
		divide(&track->input->counts[track->sorted[i].at], fates);
		if (fates[FATE_TEMPORARY].n)
			return false;
	}
	return track->n_sorted;
}

/* Prints stacks and infos, in the order in which the first blocks of infos begin, as heaptrack_gui
 * expects. */
static void print_tables(struct heaptrack *track)
{
	struct blocks fates[FATES];
	__u32 first;

	for (size_t i = 0; i < track->n_sorted && !track->err; i++)
		track->trace_of[track->sorted[i].at] = trace_of(track, &track->sorted[i]);
	/* Infos without blocks must name a stack that the file has: heaptrack_gui reports a file
	 * as corrupt if their trace is 0. */
	first = track->n_sorted ? track->trace_of[track->sorted[0].at] : 0;
	if (needs_first(track))
		print_infos(track, first, &(struct blocks){ .n = 1 });
	for (enum fate fate = 0; fate < FATES; fate++) {
		for (size_t i = 0; i < track->n_sorted && !track->err; i++) {
			__u32 at = track->sorted[i].at;

			divide(&track->input->counts[at], fates);
			print_infos(track, track->trace_of[at], &fates[fate]);
		}
	}
	print_numbers(track, "a ", 0, first);
	track->no_info = track->n_infos;
	track->n_infos = 0;
}

/* Prints an event between the begin and the end of a block, so that the block does not count as
 * temporary. */
static void print_nothing(struct heaptrack *track)
{
	print_number(track, "- ", track->no_info);
}

/* Begins the blocks of one fate. Those that are live neither at the peak nor at the end also end
 * at once. */
static void print_fate(struct heaptrack *track, enum fate fate)
{
	struct blocks fates[FATES];

	for (size_t i = 0; i < track->n_sorted && !track->err; i++) {
		__u32 at = track->sorted[i].at;
		__u64 first = track->n_infos;

		divide(&track->input->counts[at], fates);
		track->n_infos += count_infos(&fates[fate]);
		if (fate == FATE_AT_PEAK)
			track->at_peak_of[at] = first;
		for (__u64 j = 0; j < fates[fate].n && !track->err; j++) {
			__u64 info = info_at(&fates[fate], first, j);

			print_number(track, "+ ", info);
			if (fate == FATE_PASSED)
				print_nothing(track);
			if (fate == FATE_PASSED || fate == FATE_TEMPORARY)
				print_number(track, "- ", info);
		}
	}
}

static void end_peak(struct heaptrack *track)
{
	struct blocks fates[FATES];

	if (track->n_sorted)
		print_nothing(track);
	for (size_t i = 0; i < track->n_sorted && !track->err; i++) {
		__u32 at = track->sorted[i].at;

		divide(&track->input->counts[at], fates);
		for (__u64 j = 0; j < fates[FATE_AT_PEAK].n && !track->err; j++)
			print_number(track, "- ",
				     info_at(&fates[FATE_AT_PEAK], track->at_peak_of[at], j));
	}
}

/* Prints the sample's time, and its resident memory in pages of the size that print_all() writes. */
static void print_sample(struct heaptrack *track, const struct timeline_sample *sample)
{
	print_number(track, "c ", sample->time_ns / NS_PER_MS);
	print_number(track, "R ", sample->rss_bytes / PAGE_BYTES);
}

/* The samples in which most was live, and most memory was resident. Samples of several runs are in
 * no order. */
struct peaks {
	const struct timeline_sample *live, *resident; /* NULL: unknown */
};

static struct peaks find_peaks(const struct profile *profile)
{
	struct peaks peaks = { NULL, NULL };

	for (size_t i = 0; i < profile->n_timeline && profile->n_runs <= 1; i++) {
		const struct timeline_sample *sample = &profile->timeline[i];

		if (!peaks.live || sample->live_bytes > peaks.live->live_bytes)
			peaks.live = sample;
		if (!peaks.resident || sample->rss_bytes > peaks.resident->rss_bytes)
			peaks.resident = sample;
	}
	return peaks;
}

static void print_all(struct heaptrack *track)
{
	const struct peaks peaks = find_peaks(track->input->profile);
	_cleanup_(free_ptr) char *headline = NULL;

	track->err = export__headline(track->input, &headline);
	if (track->err)
		return;
	sort(track);
	print_fixed(track, "v 10400 3\n");
	print_text(track, "X", headline, false);
	/* The size of a page; and how many pages the machine has, which a recording does not know. */
	print_numbers(track, "I ", PAGE_BYTES, 0);
	print_fixed(track, "c 0\n");
	print_tables(track);
	if (needs_first(track))
		print_number(track, "+ ", track->n_infos++);
	print_fate(track, FATE_TEMPORARY);
	print_fate(track, FATE_PASSED);
	if (peaks.live && peaks.resident->time_ns < peaks.live->time_ns)
		print_sample(track, peaks.resident);
	if (peaks.live)
		print_sample(track, peaks.live);
	print_fate(track, FATE_AT_PEAK);
	print_fate(track, FATE_STAYED);
	if (peaks.live && peaks.resident->time_ns > peaks.live->time_ns)
		print_sample(track, peaks.resident);
	end_peak(track);
	print_fate(track, FATE_AT_END);
	print_number(track, "c ", track->input->end_ns / NS_PER_MS);
}

int export_heaptrack__check(const struct export_input *input, struct error *error)
{
	if (input->total->allocations <= MOST_BLOCKS)
		return 0;
	return error__set(
		error, -EFBIG,
		"cannot export %llu blocks for heaptrack, whose files have a line for each; "
		"select stacks with %llu at the most, or take --format=dhat, which has sums",
		input->total->allocations, MOST_BLOCKS);
}

int export_heaptrack__write(const struct export_input *input, FILE *to)
{
	struct heaptrack track = { .input = input, .seed = hash_seed() };
	size_t n = input->profile->n_counts + 1;

	track.sorted = calloc(n, sizeof(*track.sorted));
	track.trace_of = calloc(n, sizeof(*track.trace_of));
	track.at_peak_of = calloc(n, sizeof(*track.at_peak_of));
	/* The fastest level is used, since the file has ten times as many lines as other formats. */
	track.err = gzip__open(&track.gzip, to, Z_BEST_SPEED);
	if (!track.sorted || !track.trace_of || !track.at_peak_of)
		track.err = -ENOMEM;
	if (!track.err)
		print_all(&track);
	if (!track.err)
		track.err = gzip__finish(&track.gzip);
	gzip__close(&track.gzip);
	string_ids__release(&track.strings);
	free(track.ranges);
	hash_table__release(&track.range_index);
	free(track.sorted);
	free(track.steps);
	free(track.trace_of);
	free(track.at_peak_of);
	return track.err;
}
