// SPDX-License-Identifier: GPL-3.0-or-later
#include <errno.h>
#include <stdlib.h>

#include "error.h"
#include "filter_internal.h"
#include "profile.h"

enum answer {
	NO,
	UNSURE,
	YES,
};

/* The start of an epoch, no later than the end of the recording. */
static __u64 epoch_start(const struct block_filter *filter, __u64 epoch)
{
	__u64 start;

	if (__builtin_mul_overflow(epoch, filter->epoch_ns, &start) || start > filter->end_ns)
		return filter->end_ns;
	return start;
}

/* Its last moment. */
static __u64 epoch_last(const struct block_filter *filter, __u64 epoch)
{
	__u64 start = epoch_start(filter, epoch), next = epoch_start(filter, epoch + 1);

	return next > start ? next - 1 : start;
}

/* What is at least @least and at most @most, against "at least @limit". */
static enum answer is_from(__u64 least, __u64 most, __u64 limit)
{
	return least >= limit ? YES : most >= limit ? UNSURE : NO;
}

static enum answer both(enum answer a, enum answer b)
{
	return a < b ? a : b;
}

static enum answer judge(const struct block_filter *filter, const struct profile_lifetime *cell)
{
	const struct filter_options *options = filter->options;
	bool live = cell->died == PROFILE_LIVE;
	__u64 born = epoch_start(filter, cell->born);
	__u64 born_until = epoch_last(filter, cell->born);
	__u64 died = live ? filter->end_ns : epoch_start(filter, cell->died);
	__u64 died_until = live ? filter->end_ns : epoch_last(filter, cell->died);
	__u64 shortest = died > born_until ? died - born_until : 0;
	__u64 longest = died_until - born;
	enum answer answer = YES;

	if (live ? options->freed || options->freed_after.is_given || options->max_lifetime.is_given
		 : options->leaks || options->older.is_given)
		return NO;
	if (options->older.is_given)
		answer = both(answer, YES - is_from(born, born_until, filter->born_until_ns + 1));
	if (options->min_lifetime.is_given)
		answer = both(answer, is_from(shortest, longest, filter->min_ns));
	if (options->max_lifetime.is_given)
		answer = both(answer, YES - is_from(shortest, longest, filter->max_ns + 1));
	if (options->freed_after.is_given)
		answer = both(answer, is_from(died, died_until, filter->freed_from_ns));
	return answer;
}

void filter__whole(const struct profile *profile, const struct profile_count *count,
		   struct selection *selection)
{
	const struct profile_blocks *blocks = profile__count_blocks(profile, count);

	*selection = selection_none;
	if (!blocks) {
		selection->allocations = count->calls;
		selection->size_bytes = count->size_bytes;
		return;
	}
	selection->allocations = blocks->allocations;
	selection->size_bytes = blocks->size_bytes;
	selection->live = profile_blocks__live(blocks);
	selection->live_bytes = profile_blocks__live_bytes(blocks);
	selection->temporary = blocks->temporary;
	selection->temporary_bytes = blocks->temporary_bytes;
	selection->peak = blocks->peak;
	selection->peak_bytes = blocks->peak_bytes;
	if (selection->live)
		selection->oldest_ns = blocks->oldest_ns;
}

static void add_cell(struct selection *selection, const struct profile_lifetime *cell,
		     __u64 oldest_ns)
{
	selection__add(selection,
		       &(struct selection){
			       .allocations = cell->blocks,
			       .size_bytes = cell->size_bytes,
			       .live = cell->died == PROFILE_LIVE ? cell->blocks : 0,
			       .live_bytes = cell->died == PROFILE_LIVE ? cell->size_bytes : 0,
			       .oldest_ns = cell->died == PROFILE_LIVE ? oldest_ns : UINT64_MAX,
		       });
}

static void select_by_time(const struct block_filter *filter, const struct profile_count *count,
			   const struct profile_blocks *blocks, struct selection *selection)
{
	const struct profile_lifetime *lifetimes = filter->profile->lifetimes;

	for (size_t i = filter->starts[count->id - 1]; i < filter->starts[count->id]; i++) {
		const struct profile_lifetime *cell = &lifetimes[filter->order[i]];

		switch (judge(filter, cell)) {
		case YES:
			/* Whatever asks for age takes the oldest first. */
			add_cell(selection, cell, blocks->oldest_ns);
			break;
		case UNSURE:
			selection->unsure = profile__add_up(selection->unsure, cell->blocks);
			selection->unsure_bytes =
				profile__add_up(selection->unsure_bytes, cell->size_bytes);
			break;
		case NO:
			break;
		}
	}
}

/* By the average: of which size each block is only buckets tell. */
static bool has_size(const struct filter_options *options, const struct selection *whole)
{
	unsigned __int128 bytes = whole->size_bytes;

	if (bytes < (unsigned __int128)options->min_size_bytes * whole->allocations)
		return false;
	return !options->max_size_bytes ||
	       bytes <= (unsigned __int128)options->max_size_bytes * whole->allocations;
}

void block_filter__select(const struct block_filter *filter, const struct profile_count *count,
			  struct selection *selection)
{
	const struct profile_blocks *blocks = profile__count_blocks(filter->profile, count);
	struct selection whole;

	filter__whole(filter->profile, count, &whole);
	*selection = selection_none;
	if (!has_size(filter->options, &whole))
		return;
	if (filter->by_time) {
		if (blocks)
			select_by_time(filter, count, blocks, selection);
		return;
	}
	*selection = whole;
	if (filter->options->leaks) {
		selection->allocations = whole.live;
		selection->size_bytes = whole.live_bytes;
		selection->temporary = selection->temporary_bytes = 0;
	} else if (filter->options->freed) {
		/* What an exec discarded is among them, as it is in the epochs. */
		selection->allocations = blocks ? whole.allocations - whole.live : 0;
		selection->size_bytes = blocks ? whole.size_bytes - whole.live_bytes : 0;
		selection->live = selection->live_bytes = 0;
		selection->oldest_ns = UINT64_MAX;
	}
	if (filter->options->leaks || filter->options->freed)
		selection->peak = selection->peak_bytes = 0;
}

bool block_filter__passes(const struct block_filter *filter,
			  const struct profile_lifetime *lifetime)
{
	struct selection whole;

	filter__whole(filter->profile, &filter->profile->counts[lifetime->count - 1], &whole);
	return has_size(filter->options, &whole) && judge(filter, lifetime) == YES;
}

static int sort_by_count(struct block_filter *filter)
{
	const struct profile *profile = filter->profile;
	size_t at = 0;

	filter->order = calloc(profile->n_lifetimes + 1, sizeof(*filter->order));
	filter->starts = calloc(profile->n_counts + 2, sizeof(*filter->starts));
	if (!filter->order || !filter->starts)
		return -ENOMEM;
	for (size_t i = 0; i < profile->n_lifetimes; i++)
		filter->starts[profile->lifetimes[i].count]++;
	/* starts[id] is the number of the cells of count id: make it where those of id begin, and let
	 * each move on to where those of the next one do. */
	for (size_t id = 0; id <= profile->n_counts; id++) {
		size_t n = filter->starts[id];

		filter->starts[id] = at;
		at += n;
	}
	for (size_t i = 0; i < profile->n_lifetimes; i++)
		filter->order[filter->starts[profile->lifetimes[i].count]++] = i;
	return 0;
}

static __u64 resolve(const struct filter_time *time, __u64 end_ns)
{
	return time->is_share ? (__u64)(time->share * end_ns) : time->ns;
}

/* How long the recording was, and its epochs; from a file that may say anything. */
static int read_clock(struct block_filter *filter, struct error *error)
{
	const char *epoch = profile__meta(filter->profile, "epoch_ns");
	const char *elapsed = profile__meta(filter->profile, "elapsed_seconds");
	double seconds = elapsed ? strtod(elapsed, NULL) : 0;
	__u64 last = 0;

	filter->epoch_ns = epoch ? strtoull(epoch, NULL, 10) : 0;
	if (epoch && !filter->epoch_ns)
		return error__set(error, -EINVAL,
				  "the data file is damaged: its epoch_ns is '%.32s'; record again",
				  epoch);
	if (seconds > 0 && seconds < 9e9)
		filter->end_ns = seconds * 1e9;
	for (size_t i = 0; i < filter->profile->n_lifetimes; i++) {
		const struct profile_lifetime *cell = &filter->profile->lifetimes[i];
		__u64 epochs = cell->died == PROFILE_LIVE ? cell->born : cell->died;

		if (epochs > last)
			last = epochs;
	}
	/* Nothing happens after the end: where that is not known, or rounded, it is the last epoch's. */
	if (__builtin_mul_overflow(last + !filter->end_ns, filter->epoch_ns, &last))
		last = INT64_MAX;
	if (last > filter->end_ns)
		filter->end_ns = last;
	return 0;
}

int block_filter__init(struct block_filter *filter, const struct profile *profile,
		       const struct filter_options *options, struct error *error)
{
	__u64 older;
	int err;

	*filter = (struct block_filter){ .profile = profile, .options = options };
	err = read_clock(filter, error);
	if (err)
		return err;
	filter->by_time = options->older.is_given || options->min_lifetime.is_given ||
			  options->max_lifetime.is_given || options->freed_after.is_given;
	older = resolve(&options->older, filter->end_ns);
	filter->min_ns = resolve(&options->min_lifetime, filter->end_ns);
	filter->max_ns = resolve(&options->max_lifetime, filter->end_ns);
	filter->freed_from_ns = resolve(&options->freed_after, filter->end_ns);
	if (options->older.is_given && older > filter->end_ns)
		return error__set(
			error, -EINVAL,
			"nothing is that old: the recording took %.3f s; give --older less",
			filter->end_ns / 1e9);
	filter->born_until_ns = filter->end_ns - older;
	if (filter->by_time && sort_by_count(filter))
		return error__set(error, -ENOMEM, "cannot filter: out of memory");
	return 0;
}

void block_filter__release(struct block_filter *filter)
{
	free(filter->order);
	free(filter->starts);
}
