// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * heaptrack's file, version 3, compressed: src/analyze/accumulatedtracedata.cpp of heaptrack reads it.
 *
 * It is a list of events, and a recording has sums. So events are made up that have these sums: first
 * the blocks that were neither live at the peak nor at the end, one after the other, then all that
 * were live at the peak, then the end of those that were not live at the end, and last the others that
 * were. Blocks of one group have the same size, or sizes that differ by one byte.
 *
 * The reader takes a free for that of a temporary block if the event before it is an allocation of the
 * same allocation info. Between the two of any other block that ends at once there is a free of info 0,
 * which has no size and no trace and is allocated by nobody. It must not follow a free: the reader
 * remembers 0 for "no allocation".
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "cleanup.h"
#include "export_formats.h"
#include "export_samples.h"
#include "gzip.h"
#include "hash_table.h"
#include "stack_view.h"
#include "string_ids.h"
#include "utf8.h"

/* What became of a block. */
enum fate {
	FATE_TEMPORARY,
	FATE_PASSED,  /* freed, and not live at the peak */
	FATE_AT_PEAK, /* and freed later */
	FATE_STAYED,  /* live at the peak and at the end */
	FATE_AT_END,  /* and not at the peak */
	FATES,
};

struct blocks {
	__u64 n, size_bytes;
};

static __u64 least(__u64 a, __u64 b)
{
	return a < b ? a : b;
}

/* Takes what fits from @rest. */
static struct blocks take(struct blocks *rest, __u64 n, __u64 size_bytes)
{
	struct blocks taken = { least(n, rest->n), least(size_bytes, rest->size_bytes) };

	rest->n -= taken.n;
	rest->size_bytes -= taken.size_bytes;
	return taken;
}

/*
 * A recording does not say which blocks of the peak were still live at the end. This takes as many as
 * possible for the same, and one less if their bytes cannot fit both sums.
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

/* Neighbouring places of one frame, and a frame of a stack: its caller is the number of another. */
struct pair {
	__u32 a, b;
};

struct pairs {
	struct pair *list; /* by number - 1 */
	size_t n, room;
	struct hash_table index;
};

struct heaptrack {
	const struct export_input *input;
	struct gzip gzip;
	struct string_ids strings;
	struct pairs places; /* first place and number of places */
	struct pairs traces; /* number in @places, caller */
	__u64 seed;
	__u32 *trace_of;   /* by count's id - 1 */
	__u64 *at_peak_of; /* the same: the first info of FATE_AT_PEAK */
	__u64 n_infos;
	__u64 n_begun; /* blocks that were live at the peak or at the end, until now */
	int err;       /* the first; nothing is written after it */
};

static void print(struct heaptrack *track, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void print(struct heaptrack *track, const char *fmt, ...)
{
	char line[128];
	va_list args;
	int len;

	va_start(args, fmt);
	len = vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	if (!track->err)
		track->err = gzip__write(&track->gzip, line, len);
}

/* Prints @text with its length; lines end where it does. */
static void print_text(struct heaptrack *track, const char *prefix, const char *text, bool sized)
{
	_cleanup_(free_ptr) char *safe = utf8__from_bytes(text);

	if (!safe) {
		track->err = -ENOMEM;
		return;
	}
	utf8__clean(safe);
	if (sized)
		print(track, "%s %zx ", prefix, strlen(safe));
	else
		print(track, "%s ", prefix);
	if (!track->err)
		track->err = gzip__write(&track->gzip, safe, strlen(safe));
	print(track, "\n");
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

static bool match_pair(const void *owner, __u32 id, const void *key)
{
	return !memcmp(&((const struct pairs *)owner)->list[id - 1], key, sizeof(struct pair));
}

/* The number of the pair; *@is_new: it had none. 0 with the error set. */
static __u32 pair_of(struct heaptrack *track, struct pairs *pairs, __u32 a, __u32 b, bool *is_new)
{
	const struct pair pair = { a, b };
	__u64 hash = hash_mix(hash_mix(track->seed, a), b);
	__u32 id = hash_table__find(&pairs->index, hash, match_pair, pairs, &pair);

	*is_new = !id;
	if (id || track->err)
		return id;
	if (array__reserve(&pairs->list, &pairs->room, pairs->n + 1, sizeof(*pairs->list)) ||
	    hash_table__insert(&pairs->index, hash, pairs->n + 1)) {
		track->err = -ENOMEM;
		return 0;
	}
	pairs->list[pairs->n++] = pair;
	return pairs->n;
}

static __u32 name_of(struct heaptrack *track, __u32 place)
{
	const struct stack_view *view = track->input->view;

	return string_of(track, view->labels[view->places[place].label].text);
}

static __u32 file_of(struct heaptrack *track, __u32 place)
{
	const struct profile_line *line = export__line(track->input, place);

	return line && line->file
		       ? string_of(track, track->input->profile->files[line->file - 1].path)
		       : 0;
}

static void print_places(struct heaptrack *track, __u32 first, __u32 n)
{
	const struct export_input *input = track->input;
	const struct profile *profile = input->profile;
	const struct stack_view *view = input->view;
	const struct profile_frame *frame = &profile->frames[view->places[first].frame - 1];
	__u32 module = 0;

	/* A string is written where it occurs first, and not within the line that refers to it. */
	if (frame->module)
		module = string_of(track, profile->modules[frame->module - 1].path);
	for (__u32 i = 0; i < n; i++) {
		name_of(track, first + i);
		file_of(track, first + i);
	}
	print(track, "i %llx %x", export__address(frame), module);
	for (__u32 i = 0; i < n; i++) {
		const struct profile_line *line = export__line(input, first + i);

		print(track, " %x %x %x", name_of(track, first + i), file_of(track, first + i),
		      line ? line->line : 0);
	}
	print(track, "\n");
}

static __u32 trace_of(struct heaptrack *track, const struct export_sample *sample)
{
	const struct stack_place *places = track->input->view->places;
	const __u32 *at = sample->places;
	__u32 trace = 0;
	bool is_new;

	for (size_t end = sample->n_frames, first; end && !track->err; end = first) {
		__u32 frame;

		for (first = end - 1; first && at[first - 1] + 1 == at[first] &&
				      places[at[first - 1]].frame == places[at[first]].frame;
		     first--)
			;
		frame = pair_of(track, &track->places, at[first], end - first, &is_new);
		if (is_new && !track->err)
			print_places(track, at[first], end - first);
		trace = pair_of(track, &track->traces, frame, trace, &is_new);
		if (is_new)
			print(track, "t %x %x\n", frame, track->traces.list[trace - 1].b);
	}
	return trace;
}

/* The infos of a group, one for each size. The number of the first. */
static __u64 print_infos(struct heaptrack *track, __u32 trace, const struct blocks *blocks)
{
	__u64 first = track->n_infos, size = blocks->size_bytes / blocks->n;

	print(track, "a %llx %x\na %llx %x\n", size, trace, size + 1, trace);
	track->n_infos += 2;
	return first;
}

/* The info of block @at. */
static __u64 info_at(const struct blocks *blocks, __u64 first, __u64 at)
{
	return first + (at < blocks->size_bytes % blocks->n ? 1 : 0);
}

/* Blocks that end before the next begins. */
static void print_passed(struct heaptrack *track, __u32 trace, const struct blocks *blocks,
			 bool temporary)
{
	__u64 first = blocks->n ? print_infos(track, trace, blocks) : 0;

	for (__u64 i = 0; i < blocks->n && !track->err; i++) {
		__u64 info = info_at(blocks, first, i);

		print(track, temporary ? "+ %llx\n- %llx\n" : "+ %llx\n- 0\n- %llx\n", info, info);
	}
}

static __u64 print_begins(struct heaptrack *track, __u32 trace, const struct blocks *blocks)
{
	__u64 first = blocks->n ? print_infos(track, trace, blocks) : 0;

	for (__u64 i = 0; i < blocks->n && !track->err; i++) {
		print(track, "+ %llx\n", info_at(blocks, first, i));
		track->n_begun++;
	}
	return first;
}

enum phase {
	PHASE_PASSED,
	PHASE_AT_PEAK,
	PHASE_STAYED,
	PHASE_FREED,
	PHASE_AT_END,
	PHASES,
};

static void print_phase(struct heaptrack *track, enum phase phase)
{
	struct blocks fates[FATES];
	struct export_sample sample;

	for (size_t at = 0; !track->err && export__next(track->input, &at, &sample);) {
		__u32 trace = track->trace_of[at - 1];
		__u64 *first = &track->at_peak_of[at - 1];

		divide(sample.selected, fates);
		switch (phase) {
		case PHASE_PASSED:
			trace = track->trace_of[at - 1] = trace_of(track, &sample);
			print_passed(track, trace, &fates[FATE_TEMPORARY], true);
			print_passed(track, trace, &fates[FATE_PASSED], false);
			break;
		case PHASE_AT_PEAK:
			*first = print_begins(track, trace, &fates[FATE_AT_PEAK]);
			break;
		case PHASE_STAYED:
			print_begins(track, trace, &fates[FATE_STAYED]);
			break;
		case PHASE_FREED:
			for (__u64 i = 0; i < fates[FATE_AT_PEAK].n && !track->err; i++)
				print(track, "- %llx\n", info_at(&fates[FATE_AT_PEAK], *first, i));
			break;
		case PHASE_AT_END:
			print_begins(track, trace, &fates[FATE_AT_END]);
			break;
		case PHASES:
			break;
		}
	}
}

static void print_all(struct heaptrack *track)
{
	_cleanup_(free_ptr) char *headline = NULL;

	track->err = export__headline(track->input, &headline);
	if (track->err)
		return;
	print(track, "v 10400 3\n");
	print_text(track, "X", headline, false);
	print(track, "c 0\na 0 0\n");
	track->n_infos = 1;
	for (enum phase phase = 0; phase < PHASES; phase++) {
		if (phase == PHASE_FREED && track->n_begun)
			print(track, "- 0\n");
		print_phase(track, phase);
	}
	print(track, "c %llx\n", track->input->end_ns / 1000000);
}

int export_heaptrack__write(const struct export_input *input, FILE *to)
{
	struct heaptrack track = { .input = input, .seed = hash_seed() };
	size_t n = input->profile->n_counts + 1;

	track.trace_of = calloc(n, sizeof(*track.trace_of));
	track.at_peak_of = calloc(n, sizeof(*track.at_peak_of));
	track.err = gzip__open(&track.gzip, to);
	if (!track.trace_of || !track.at_peak_of)
		track.err = -ENOMEM;
	if (!track.err)
		print_all(&track);
	if (!track.err)
		track.err = gzip__finish(&track.gzip);
	gzip__close(&track.gzip);
	string_ids__release(&track.strings);
	free(track.places.list);
	free(track.traces.list);
	hash_table__release(&track.places.index);
	hash_table__release(&track.traces.index);
	free(track.trace_of);
	free(track.at_peak_of);
	return track.err;
}
