// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Writes the file of valgrind's DHAT, version 2, which its dh_view.html reads; dhat/dh_main.c of
 * valgrind describes the fields. DHAT asserts that no two of its program points have the same
 * frames, so samples are sorted by them and added up.
 */
#include <errno.h>
#include <stdlib.h>

#include "cleanup.h"
#include "error.h"
#include "export_internal.h"
#include "json.h"
#include "profile_runs.h"
#include "stack_view.h"

/* The unit of time. */
#define UNIT_NS 1000

struct point {
	size_t at;	/* position of the sample for export__next() */
	__u32 function; /* number of the function's name */
};

struct dhat {
	const struct export_input *input;
	FILE *to;
	__u32 *frames; /* numbers of frames by location */
	size_t n_frames;
	struct string_ids names; /* names of functions, which the frames follow */
	struct point *points;
	size_t n_points;
	double *lifetimes; /* lifetimes in units of time by count's id - 1; NULL without bklt */
};

/* Returns whether the file has lifetimes, and what was live at the peak and at the end ("bklt"). */
static bool has_lifetimes(const struct dhat *dhat)
{
	return export__has_live(dhat->input) && !dhat->input->selects_blocks;
}

static struct export_sample sample_of(const struct dhat *dhat, const struct point *point)
{
	struct export_sample sample = { 0 };
	size_t at = point->at;

	export__next(dhat->input, &at, &sample);
	return sample;
}

static int compare_points(const void *left, const void *right, void *context)
{
	const struct point *a = left, *b = right;
	const struct dhat *dhat = context;
	struct export_sample of_a, of_b;

	if (a->function != b->function)
		return a->function < b->function ? -1 : 1;
	of_a = sample_of(dhat, a);
	of_b = sample_of(dhat, b);
	for (size_t i = 0; i < of_a.n_frames && i < of_b.n_frames; i++)
		if (of_a.locations[i] != of_b.locations[i])
			return of_a.locations[i] < of_b.locations[i] ? -1 : 1;
	return of_a.n_frames < of_b.n_frames ? -1 : of_a.n_frames > of_b.n_frames;
}

static int collect_points(struct dhat *dhat)
{
	size_t at = 0;
	struct export_sample sample;
	int err = 0;

	dhat->points = calloc(dhat->input->profile->n_counts + 1, sizeof(*dhat->points));
	if (!dhat->points)
		return -ENOMEM;
	while (!err && export__next(dhat->input, &at, &sample)) {
		struct point *point = &dhat->points[dhat->n_points++];

		point->at = at - 1;
		err = string_ids__add(&dhat->names, sample.function, &point->function);
	}
	if (!err)
		qsort_r(dhat->points, dhat->n_points, sizeof(*dhat->points), compare_points, dhat);
	return err;
}

/* Computes how long the blocks of each count lived, by the epochs of their birth and death. */
static int sum_lifetimes(struct dhat *dhat)
{
	const struct profile *profile = dhat->input->profile;
	_cleanup_(free_ptr) struct run_clock *clocks = NULL;
	struct profile_lifetime cell;
	struct error error;
	__u32 at = 0;
	int err;

	if (!has_lifetimes(dhat))
		return 0;
	dhat->lifetimes = calloc(profile->n_counts + 1, sizeof(*dhat->lifetimes));
	if (!dhat->lifetimes)
		return -ENOMEM;
	err = run_clocks__read(profile, &clocks, &error);
	while (!err && profile__next_lifetime(profile, &at, &cell)) {
		const struct profile_count *count = &profile->counts[cell.count - 1];
		const struct run_clock *clock = &clocks[profile__count_run(profile, count) - 1];
		double born_ns = (double)cell.born * clock->epoch_ns;
		__u32 last = profile_lifetime__end_epoch(&cell);
		double died_ns = last == PROFILE_LIVE ? (double)clock->end_ns
						      : (double)last * clock->epoch_ns;

		if (died_ns > born_ns)
			dhat->lifetimes[cell.count - 1] +=
				(died_ns - born_ns) / UNIT_NS * cell.blocks;
	}
	return err;
}

/* Returns the time of the sample of the time line in which most was live, in units of time. */
static __u64 peak_time(const struct profile *profile)
{
	__u32 run = profile__peak_run(profile);
	__u64 most = 0, time_ns = 0;

	for (size_t i = 0; i < profile->n_timeline; i++) {
		const struct timeline_sample *sample = &profile->timeline[i];

		if ((profile->n_runs && sample->run != run) || sample->live_bytes <= most)
			continue;
		most = sample->live_bytes;
		time_ns = sample->time_ns;
	}
	return time_ns / UNIT_NS;
}

static int print_head(const struct dhat *dhat)
{
	const struct profile *profile = dhat->input->profile;
	_cleanup_(free_ptr) char *headline = NULL;
	int err = export__headline(dhat->input, &headline);

	if (err)
		return err;
	fprintf(dhat->to,
		"{\"dhatFileVersion\":2,\"mode\":\"allocprof\",\"verb\":\"Allocated\",\"bklt\":%s,"
		"\"bkacc\":false,\n\"tu\":\"\302\265s\",\"Mtu\":\"s\",\"tuth\":10,\n\"cmd\":",
		has_lifetimes(dhat) ? "true" : "false");
	err = json__print_string(headline, dhat->to);
	fprintf(dhat->to, ",\"pid\":%u,\n\"te\":%llu",
		profile->n_processes ? profile->processes[0].pid : 0,
		dhat->input->end_ns / UNIT_NS);
	if (has_lifetimes(dhat))
		fprintf(dhat->to, ",\"tg\":%llu", peak_time(profile));
	return err;
}

static __u64 greater(__u64 a, __u64 b)
{
	return a > b ? a : b;
}

static void print_frames(const struct dhat *dhat, const struct point *point)
{
	struct export_sample sample = sample_of(dhat, point);

	/* Frame 0 is the root. */
	fprintf(dhat->to, "\"fs\":[%zu", dhat->n_frames + point->function);
	for (size_t i = 0; i < sample.n_frames; i++)
		fprintf(dhat->to, ",%u", dhat->frames[sample.locations[i]] + 1);
	fputs("]}", dhat->to);
}

static void print_point(const struct dhat *dhat, const struct point *point,
			const struct selection *sum, double lifetimes)
{
	fprintf(dhat->to, "{\"tb\":%llu,\"tbk\":%llu,", sum->size_bytes, sum->allocations);
	if (has_lifetimes(dhat)) {
		/* The largest value that each stack had by itself is not recorded, so the larger
		 * of the two values that are known is written. */
		bool at_end = sum->live_bytes > sum->peak_bytes;

		fprintf(dhat->to,
			"\"tl\":%.0f,\"mb\":%llu,\"mbk\":%llu,\"gb\":%llu,\"gbk\":%llu,"
			"\"eb\":%llu,\"ebk\":%llu,",
			lifetimes, greater(sum->live_bytes, sum->peak_bytes),
			at_end ? sum->live : sum->peak, sum->peak_bytes, sum->peak, sum->live_bytes,
			sum->live);
	}
	print_frames(dhat, point);
}

static void print_points(const struct dhat *dhat)
{
	const char *comma = "\n";

	fputs(",\n\"pps\":[", dhat->to);
	for (size_t i = 0, next; i < dhat->n_points; i = next) {
		struct selection sum = selection_none;
		double lifetimes = 0;

		for (next = i; next < dhat->n_points &&
			       !compare_points(&dhat->points[i], &dhat->points[next], (void *)dhat);
		     next++) {
			struct export_sample sample = sample_of(dhat, &dhat->points[next]);

			selection__add(&sum, sample.selected);
			if (dhat->lifetimes)
				lifetimes += dhat->lifetimes[sample.count->id - 1];
		}
		fputs(comma, dhat->to);
		comma = ",\n";
		print_point(dhat, &dhat->points[i], &sum, lifetimes);
	}
	fputs("]", dhat->to);
}

/* Returns the frame's text in valgrind's form: "0x1234: name (file.c:12)", "0x1234: ??? (in
 * /usr/lib/libfoo.so.1)". */
static char *frame_text(const struct dhat *dhat, __u32 location)
{
	const struct export_input *input = dhat->input;
	const struct profile *profile = input->profile;
	const struct stack_location *at = &input->view->locations[location];
	const struct profile_frame *frame = &profile->frames[at->frame - 1];
	const struct profile_line *line = export__line(input, location);
	const char *name = line ? input->view->labels[at->label].text : "???";
	__u64 address = export__address(frame);
	char *text;
	int len;

	if (line && line->file && line->line)
		len = asprintf(&text, "0x%llX: %s (%s:%u)", address, name,
			       profile->files[line->file - 1].path, line->line);
	else if (frame->module)
		len = asprintf(&text, "0x%llX: %s (in %s)", address, name,
			       profile->modules[frame->module - 1].path);
	else
		len = asprintf(&text, "0x%llX: %s", address, name);
	return len < 0 ? NULL : text;
}

static int print_table(const struct dhat *dhat)
{
	int err = 0;

	fputs(",\n\"ftbl\":[\"[root]\"", dhat->to);
	for (size_t i = 0; i < dhat->input->view->n_locations && !err; i++) {
		_cleanup_(free_ptr) char *text = NULL;

		if (dhat->frames[i] == EXPORT_UNUSED)
			continue;
		text = frame_text(dhat, i);
		fputs(",\n", dhat->to);
		err = text ? json__print_string(text, dhat->to) : -ENOMEM;
	}
	for (size_t i = 0; i < dhat->names.n && !err; i++) {
		fputs(",\n", dhat->to);
		err = json__print_string(dhat->names.texts[i], dhat->to);
	}
	fputs("]}\n", dhat->to);
	return err;
}

int export_dhat__write(const struct export_input *input, FILE *to)
{
	struct dhat dhat = { .input = input, .to = to };
	int err = export__number_locations(input, &dhat.frames, &dhat.n_frames);

	if (!err)
		err = collect_points(&dhat);
	if (!err)
		err = sum_lifetimes(&dhat);
	if (!err)
		err = print_head(&dhat);
	if (!err) {
		print_points(&dhat);
		err = print_table(&dhat);
	}
	free(dhat.frames);
	string_ids__release(&dhat.names);
	free(dhat.points);
	free(dhat.lifetimes);
	return err;
}
