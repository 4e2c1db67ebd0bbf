// SPDX-License-Identifier: GPL-3.0-or-later
/* Selects blocks by time, age, size and whether they were freed. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "error.h"
#include "filter_internal.h"
#include "profile_runs.h"

enum answer {
	NO,
	UNSURE,
	YES,
};

/* Returns the start of an epoch, at most the end of the recording. */
static __u64 epoch_start(const struct run_clock *clock, __u64 epoch)
{
	__u64 start;

	if (__builtin_mul_overflow(epoch, clock->epoch_ns, &start) || start > clock->end_ns)
		return clock->end_ns;
	return start;
}

/* Returns the last nanosecond of an epoch. */
static __u64 epoch_last(const struct run_clock *clock, __u64 epoch)
{
	__u64 start = epoch_start(clock, epoch), next = epoch_start(clock, epoch + 1);

	return next > start ? next - 1 : start;
}

/* Returns whether a value between @least and @most is at least @limit. */
static enum answer is_from(__u64 least, __u64 most, __u64 limit)
{
	return least >= limit ? YES : most >= limit ? UNSURE : NO;
}

static enum answer both(enum answer a, enum answer b)
{
	return a < b ? a : b;
}

static const struct block_limits *limits_of(const struct block_filter *filter, __u32 count)
{
	const struct profile *profile = filter->profile;

	return &filter->limits[profile__count_run(profile, &profile->counts[count - 1]) - 1];
}

static bool is_live(const struct block_filter *filter, const struct profile_lifetime *cell)
{
	if (!filter->exit_frees.epoch)
		return cell->died == PROFILE_LIVE;
	return cell->born < filter->exit_frees.epoch &&
	       (cell->died == PROFILE_LIVE || cell->died >= filter->exit_frees.epoch);
}

static enum answer judge(const struct block_filter *filter, const struct profile_lifetime *cell)
{
	const struct filter_options *options = filter->options;
	const struct block_limits *limits = limits_of(filter, cell->count);
	const struct run_clock *clock = &limits->clock;
	bool live = is_live(filter, cell);
	__u64 born = epoch_start(clock, cell->born);
	__u64 born_until = epoch_last(clock, cell->born);
	__u64 died = live ? clock->end_ns : epoch_start(clock, cell->died);
	__u64 died_until = live ? clock->end_ns : epoch_last(clock, cell->died);
	__u64 shortest = died > born_until ? died - born_until : 0;
	__u64 longest = died_until - born;
	enum answer answer = YES;

	if (live ? options->freed || options->freed_after.is_given || options->max_lifetime.is_given
		 : options->leaks || options->older.is_given)
		return NO;
	if (options->older.is_given)
		answer = both(answer, YES - is_from(born, born_until, limits->born_before_ns));
	if (options->min_lifetime.is_given)
		answer = both(answer, is_from(shortest, longest, limits->min_ns));
	if (options->max_lifetime.is_given)
		answer = both(answer, YES - is_from(shortest, longest, limits->max_ns + 1));
	if (options->freed_after.is_given)
		answer = both(answer, is_from(died, died_until, limits->freed_from_ns));
	return answer;
}

static void add_estimates(const struct profile *profile, const struct profile_count *count,
			  struct selection *selection)
{
	const struct profile_samples *samples = profile__count_samples(profile, count);

	if (!samples)
		return;
	selection->of_allocations =
		samples->of[count->blocks ? PROFILE_SAMPLED_ALLOCATIONS : PROFILE_SAMPLED_CALLS];
	selection->of_live = samples->of[PROFILE_SAMPLED_LIVE];
	selection->of_temporary = samples->of[PROFILE_SAMPLED_TEMPORARY];
}

/* Returns when a block was born that was born @time_ns after the start of @run. */
static __u64 birth_of(const struct filter_runs *runs, __u32 run, __u64 time_ns)
{
	return runs ? profile__add_up(time_ns, runs->late_ns[run - 1]) : time_ns;
}

void filter__whole(const struct profile *profile, const struct filter_runs *runs,
		   const struct profile_count *count, struct selection *selection)
{
	struct profile_blocks blocks;
	bool has_blocks = profile__count_blocks(profile, count, &blocks);
	__u32 run = profile__count_run(profile, count);

	*selection = selection_none;
	add_estimates(profile, count, selection);
	if (!has_blocks) {
		selection->allocations = count->calls;
		selection->size_bytes = count->size_bytes;
		return;
	}
	selection->allocations = blocks.allocations;
	selection->size_bytes = blocks.size_bytes;
	selection->live = profile_blocks__live(&blocks);
	selection->live_bytes = profile_blocks__live_bytes(&blocks);
	selection->temporary = blocks.temporary;
	selection->temporary_bytes = blocks.temporary_bytes;
	selection->resident_bytes = blocks.resident_bytes;
	selection->unique_pages = blocks.unique_pages;
	selection->unique_slack_bytes = blocks.unique_slack_bytes;
	memcpy(selection->reached, blocks.reached, sizeof(selection->reached));
	if (!runs || !runs->peak_run || runs->peak_run == run) {
		selection->peak = blocks.peak;
		selection->peak_bytes = blocks.peak_bytes;
	}
	if (selection->live)
		selection->oldest_ns = birth_of(runs, run, blocks.oldest_ns);
}

static void add_cell(struct selection *selection, const struct profile_lifetime *cell, bool live,
		     __u64 oldest_ns)
{
	selection__add(selection, &(struct selection){
					  .allocations = cell->blocks,
					  .size_bytes = cell->size_bytes,
					  .live = live ? cell->blocks : 0,
					  .live_bytes = live ? cell->size_bytes : 0,
					  .oldest_ns = live ? oldest_ns : UINT64_MAX,
				  });
}

static void select_by_time(const struct block_filter *filter, const struct profile_count *count,
			   const struct profile_blocks *blocks, struct selection *selection)
{
	__u64 oldest_ns = birth_of(&filter->runs, profile__count_run(filter->profile, count),
				   blocks->oldest_ns);

	for (size_t i = filter->starts[count->id - 1]; i < filter->starts[count->id]; i++) {
		struct profile_lifetime cell;
		__u32 at = filter->order[i];

		profile__next_lifetime(filter->profile, &at, &cell);
		switch (judge(filter, &cell)) {
		case YES:
			/* Filters by age always select the oldest block. For blocks that the end
			 * freed only the epoch is known. */
			if (filter->exit_frees.epoch)
				oldest_ns = epoch_start(&limits_of(filter, count->id)->clock,
							cell.born);
			add_cell(selection, &cell, is_live(filter, &cell), oldest_ns);
			break;
		case UNSURE:
			selection->unsure = profile__add_up(selection->unsure, cell.blocks);
			selection->unsure_bytes =
				profile__add_up(selection->unsure_bytes, cell.size_bytes);
			break;
		case NO:
			break;
		}
	}
}

static double ratio(__u64 part, __u64 whole)
{
	return whole ? (double)part / whole : 0;
}

/* Scales an estimate to a part of its blocks and bytes, since samples are not kept by epoch. */
static struct profile_estimate apportion(const struct profile_estimate *whole, double blocks,
					 double bytes)
{
	return (struct profile_estimate){
		.samples = ceil(whole->samples * blocks),
		.variance = whole->variance * blocks,
		.bytes_variance = whole->bytes_variance * bytes,
	};
}

static void apportion_samples(const struct block_filter *filter, struct selection *selection,
			      const struct selection *whole)
{
	selection->of_allocations =
		apportion(&whole->of_allocations, ratio(selection->allocations, whole->allocations),
			  ratio(selection->size_bytes, whole->size_bytes));
	selection->of_live =
		filter->exit_frees.epoch
			? selection->of_allocations
			: apportion(&whole->of_live, ratio(selection->live, whole->live),
				    ratio(selection->live_bytes, whole->live_bytes));
}

/* Returns whether the average size passes, since single sizes are known only by bucket. */
static bool has_size(const struct filter_options *options, const struct selection *whole)
{
	unsigned __int128 bytes = whole->size_bytes;

	if (bytes < (unsigned __int128)options->min_size_bytes * whole->allocations)
		return false;
	return !options->has_max_size ||
	       bytes <= (unsigned __int128)options->max_size_bytes * whole->allocations;
}

void block_filter__select(const struct block_filter *filter, const struct profile_count *count,
			  struct selection *selection)
{
	struct profile_blocks blocks;
	bool has_blocks = profile__count_blocks(filter->profile, count, &blocks);
	struct selection whole;

	filter__whole(filter->profile, &filter->runs, count, &whole);
	*selection = selection_none;
	if (!has_size(filter->options, &whole))
		return;
	if (filter->by_time) {
		if (has_blocks)
			select_by_time(filter, count, &blocks, selection);
		apportion_samples(filter, selection, &whole);
		return;
	}
	*selection = whole;
	if (filter->options->leaks) {
		selection->allocations = whole.live;
		selection->size_bytes = whole.live_bytes;
		selection->temporary = selection->temporary_bytes = 0;
		selection->of_allocations = whole.of_live;
		selection->of_temporary = (struct profile_estimate){ 0 };
	} else if (filter->options->freed) {
		/* This includes blocks that an exec discarded, as the epochs do. */
		selection->allocations = has_blocks ? whole.allocations - whole.live : 0;
		selection->size_bytes = has_blocks ? whole.size_bytes - whole.live_bytes : 0;
		profile_estimate__subtract(&selection->of_allocations, &whole.of_live);
		selection->of_live = (struct profile_estimate){ 0 };
		selection->live = selection->live_bytes = 0;
		memset(selection->reached, 0, sizeof(selection->reached));
		selection->oldest_ns = UINT64_MAX;
	}
	if (filter->options->leaks || filter->options->freed)
		selection->peak = selection->peak_bytes = 0;
}

bool block_filter__passes(const struct block_filter *filter,
			  const struct profile_lifetime *lifetime)
{
	struct selection whole;

	filter__whole(filter->profile, &filter->runs, &filter->profile->counts[lifetime->count - 1],
		      &whole);
	return has_size(filter->options, &whole) && judge(filter, lifetime) == YES;
}

static int sort_by_count(struct block_filter *filter)
{
	const struct profile *profile = filter->profile;
	struct profile_lifetime cell;
	__u32 cell_at = 0, next = 0;
	size_t at = 0;

	filter->order = calloc(profile->n_lifetimes + 1, sizeof(*filter->order));
	filter->starts = calloc(profile->n_counts + 2, sizeof(*filter->starts));
	if (!filter->order || !filter->starts)
		return -ENOMEM;
	while (profile__next_lifetime(profile, &next, &cell))
		filter->starts[cell.count]++;
	/* Counting sort: turns numbers into start offsets, which advance while cells are placed. */
	for (size_t id = 0; id <= profile->n_counts; id++) {
		size_t n = filter->starts[id];

		filter->starts[id] = at;
		at += n;
	}
	for (next = 0; profile__next_lifetime(profile, &next, &cell); cell_at = next)
		filter->order[filter->starts[cell.count]++] = cell_at;
	return 0;
}

static __u64 resolve(const struct filter_time *time, __u64 end_ns)
{
	return time->is_share ? (__u64)(time->share * end_ns) : time->ns;
}

static void set_limits(const struct filter_options *options, struct block_limits *limits)
{
	__u64 end_ns = limits->clock.end_ns, older_ns = resolve(&options->older, end_ns);

	limits->born_before_ns = older_ns > end_ns ? 0 : end_ns - older_ns + 1;
	limits->min_ns = resolve(&options->min_lifetime, end_ns);
	limits->max_ns = resolve(&options->max_lifetime, end_ns);
	limits->freed_from_ns = resolve(&options->freed_after, end_ns);
}

static __u64 greater(__u64 a, __u64 b)
{
	return a > b ? a : b;
}

/* Reads the limits that differ between runs. */
static int read_runs(struct block_filter *filter, struct error *error)
{
	__u32 n = profile__n_runs(filter->profile);
	_cleanup_(free_ptr) struct run_clock *clocks = NULL;
	int err = run_clocks__read(filter->profile, &clocks, error);

	if (err)
		return err;
	filter->limits = calloc(n, sizeof(*filter->limits));
	filter->runs.late_ns = calloc(n, sizeof(*filter->runs.late_ns));
	if (!filter->limits || !filter->runs.late_ns)
		return error__set(error, -ENOMEM, "cannot filter: out of memory");
	for (__u32 i = 0; i < n; i++) {
		filter->limits[i].clock = clocks[i];
		filter->end_ns = greater(filter->end_ns, clocks[i].end_ns);
		filter->epoch_ns = greater(filter->epoch_ns, clocks[i].epoch_ns);
		set_limits(filter->options, &filter->limits[i]);
	}
	for (__u32 i = 0; i < n; i++)
		filter->runs.late_ns[i] = filter->end_ns - clocks[i].end_ns;
	if (n > 1 && !filter->options->runs_apart)
		filter->runs.peak_run = profile__peak_run(filter->profile);
	return 0;
}

int block_filter__init(struct block_filter *filter, const struct profile *profile,
		       const struct filter_options *options, struct error *error)
{
	int err;

	*filter = (struct block_filter){ .profile = profile, .options = options };
	err = read_runs(filter, error);
	if (err)
		return err;
	filter->by_time = options->older.is_given || options->min_lifetime.is_given ||
			  options->max_lifetime.is_given || options->freed_after.is_given;
	if (options->older.is_given && resolve(&options->older, filter->end_ns) > filter->end_ns)
		return error__set(
			error, -EINVAL,
			"nothing is that old: the recording took %.3f s; give --older less",
			filter->end_ns / 1e9);
	if (options->leaks && !options->at_exit)
		err = exit_frees__find(profile, &filter->exit_frees, error);
	if (err)
		return err;
	filter->by_time = filter->by_time || filter->exit_frees.epoch;
	if (filter->by_time && sort_by_count(filter))
		return error__set(error, -ENOMEM, "cannot filter: out of memory");
	return 0;
}

void block_filter__release(struct block_filter *filter)
{
	free(filter->limits);
	free(filter->runs.late_ns);
	free(filter->order);
	free(filter->starts);
}
