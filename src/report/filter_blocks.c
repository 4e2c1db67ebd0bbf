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
	if (definition_names__counts(&profile->definitions, count->function))
		*selection = selection_none;
	else
		filter__whole_or_calls(profile, runs, count, selection);
}

void filter__whole_or_calls(const struct profile *profile, const struct filter_runs *runs,
			    const struct profile_count *count, struct selection *selection)
{
	struct profile_blocks blocks;
	bool has_blocks = profile__count_blocks(profile, count, &blocks) &&
			  !definition_names__counts(&profile->definitions, count->function);
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

/* Returns when the oldest live block of a selected lifetime was born: of the count's oldest one that is known, of others
 * the epoch. */
static __u64 oldest_of(const struct block_filter *filter, const struct profile_count *count,
		       const struct profile_blocks *blocks, const struct profile_lifetime *cell)
{
	__u32 run = profile__count_run(filter->profile, count);
	const struct run_clock *clock = &filter->clocks[run - 1];
	__u64 born = run_clock__epoch_start(clock, cell->born);

	if (!filter->exit_frees.epoch && blocks->oldest_ns >= born &&
	    blocks->oldest_ns <= run_clock__epoch_last(clock, cell->born))
		born = blocks->oldest_ns;
	return birth_of(&filter->runs, run, born);
}

/* Returns the answer to the conditions that differ between the lifetimes of one count. */
static enum answer judge(const struct block_filter *filter, const struct profile_lifetime *cell,
			 size_t index)
{
	bool is_freed = cell->died != PROFILE_LIVE;
	enum answer fate = conditions__answer(&filter->conditions, WHERE_FATES,
					      2 * (cell->count - 1) + is_freed);
	enum answer time = conditions__answer(&filter->conditions, WHERE_CELLS, index);

	return fate < time ? fate : time;
}

static void select_cells(const struct block_filter *filter, const struct profile_count *count,
			 const struct profile_blocks *blocks, struct selection *selection)
{
	for (size_t i = filter->starts[count->id - 1]; i < filter->starts[count->id]; i++) {
		struct profile_lifetime cell;
		__u32 at = filter->order[i].at;
		bool live;

		profile__next_lifetime(filter->profile, &at, &cell);
		switch (judge(filter, &cell, filter->order[i].index)) {
		case YES:
			live = exit_frees__leaves(&filter->exit_frees, &cell);
			add_cell(selection, &cell, live,
				 live ? oldest_of(filter, count, blocks, &cell) : UINT64_MAX);
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

void block_filter__set_leaked(const struct block_filter *filter, const struct profile_count *count,
			      struct selection *whole)
{
	struct selection leaked = selection_none;

	for (size_t i = filter->starts[count->id - 1]; i < filter->starts[count->id]; i++) {
		struct profile_lifetime cell;
		__u32 at = filter->order[i].at;

		profile__next_lifetime(filter->profile, &at, &cell);
		if (exit_frees__leaves(&filter->exit_frees, &cell))
			add_cell(&leaked, &cell, true, UINT64_MAX);
	}
	apportion_samples(filter, &leaked, whole);
	whole->live = leaked.live;
	whole->live_bytes = leaked.live_bytes;
	whole->of_live = leaked.of_live;
}

static void keep_live(struct selection *selection)
{
	selection->allocations = selection->live;
	selection->size_bytes = selection->live_bytes;
	selection->temporary = selection->temporary_bytes = 0;
	selection->of_allocations = selection->of_live;
	selection->of_temporary = (struct profile_estimate){ 0 };
	selection->peak = selection->peak_bytes = 0;
}

static void keep_freed(struct selection *selection)
{
	/* This includes blocks that an exec discarded, as the epochs do. */
	selection->allocations -= selection->live;
	selection->size_bytes -= selection->live_bytes;
	profile_estimate__subtract(&selection->of_allocations, &selection->of_live);
	selection->of_live = (struct profile_estimate){ 0 };
	selection->live = selection->live_bytes = 0;
	memset(selection->reached, 0, sizeof(selection->reached));
	selection->oldest_ns = UINT64_MAX;
	selection->peak = selection->peak_bytes = 0;
}

static void select_halves(const struct block_filter *filter, const struct profile_count *count,
			  bool has_blocks, struct selection *selection)
{
	size_t index = 2 * (count->id - 1);
	bool live = conditions__answer(&filter->conditions, WHERE_FATES, index) == YES;
	bool freed = conditions__answer(&filter->conditions, WHERE_FATES, index + 1) == YES;

	if (!has_blocks || (!live && !freed))
		*selection = selection_none;
	else if (!freed)
		keep_live(selection);
	else if (!live)
		keep_freed(selection);
}

void block_filter__select(const struct block_filter *filter, const struct profile_count *count,
			  struct selection *selection)
{
	struct profile_blocks blocks;
	bool has_blocks = profile__count_blocks(filter->profile, count, &blocks);
	struct selection whole;

	*selection = selection_none;
	if (conditions__answer(&filter->conditions, WHERE_COUNTS, count->id - 1) != YES)
		return;
	if (definition_names__counts(&filter->profile->definitions, count->function) &&
	    !filter->has_counted)
		return;
	filter__whole_or_calls(filter->profile, &filter->runs, count, &whole);
	if (filter->level == WHERE_CELLS) {
		if (has_blocks)
			select_cells(filter, count, &blocks, selection);
		apportion_samples(filter, selection, &whole);
		return;
	}
	*selection = whole;
	if (filter->level == WHERE_FATES)
		select_halves(filter, count, has_blocks, selection);
}

bool block_filter__passes(const struct block_filter *filter,
			  const struct profile_lifetime *lifetime, size_t index)
{
	return conditions__answer(&filter->conditions, WHERE_COUNTS, lifetime->count - 1) == YES &&
	       judge(filter, lifetime, index) == YES;
}

static int sort_by_count(struct block_filter *filter)
{
	const struct profile *profile = filter->profile;
	struct profile_lifetime cell;
	__u32 cell_at = 0, next = 0, index = 0;
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
		filter->order[filter->starts[cell.count]++] =
			(struct block_cell){ cell_at, index++ };
	return 0;
}

static __u64 greater(__u64 a, __u64 b)
{
	return a > b ? a : b;
}

static int read_runs(struct block_filter *filter, bool runs_apart, struct error *error)
{
	__u32 n = profile__n_runs(filter->profile);
	int err = run_clocks__read(filter->profile, &filter->clocks, error);

	if (err)
		return err;
	filter->runs.late_ns = calloc(n, sizeof(*filter->runs.late_ns));
	if (!filter->runs.late_ns)
		return error__set(error, -ENOMEM, "cannot filter: out of memory");
	for (__u32 i = 0; i < n; i++) {
		filter->end_ns = greater(filter->end_ns, filter->clocks[i].end_ns);
		filter->epoch_ns = greater(filter->epoch_ns, filter->clocks[i].epoch_ns);
	}
	for (__u32 i = 0; i < n; i++)
		filter->runs.late_ns[i] = filter->end_ns - filter->clocks[i].end_ns;
	if (n > 1 && !runs_apart)
		filter->runs.peak_run = profile__peak_run(filter->profile);
	return 0;
}

static int check_age(const struct block_filter *filter, const struct filter_time *older,
		     struct error *error)
{
	__u64 age_ns = older->is_share ? (__u64)(older->share * filter->end_ns) : older->ns;

	if (!older->is_given || age_ns <= filter->end_ns)
		return 0;
	return error__set(error, -EINVAL,
			  "nothing is that old: the recording took %.3f s; give --older less",
			  filter->end_ns / 1e9);
}

static int evaluate(struct block_filter *filter, const struct stack_groups *groups,
		    struct error *error)
{
	const struct where_data data = { filter->profile, groups, filter->clocks,
					 filter->exit_frees };
	int err = conditions__evaluate(&filter->conditions, &data, error);

	for (size_t i = 0; i < filter->conditions.n && !err; i++)
		if (filter->conditions.list[i].answers.level > filter->level)
			filter->level = filter->conditions.list[i].answers.level;
	if (!err && filter->level == WHERE_CELLS && sort_by_count(filter))
		err = error__set(error, -ENOMEM, "cannot filter: out of memory");
	return err;
}

int block_filter__prepare(struct block_filter *filter, const struct profile *profile,
			  const struct stack_groups *groups, struct filter_options *options,
			  struct error *error)
{
	int err;

	*filter = (struct block_filter){ .profile = profile };
	err = read_runs(filter, options->runs_apart, error);
	if (!err)
		err = check_age(filter, &options->older, error);
	if (!err)
		err = conditions__make(&filter->conditions, profile, groups, options,
				       profile__n_runs(profile) == 1 ? filter->end_ns : 0, error);
	filter->has_counted = !err && !options->no_counted &&
			      conditions__columns(&filter->conditions) & WHERE_BIT(WHERE_FUNCTION);
	if (!err && conditions__columns(&filter->conditions) & WHERE_BIT(WHERE_LEAKED))
		err = exit_frees__find(profile, &filter->exit_frees, error);
	return err;
}

int block_filter__init(struct block_filter *filter, const struct profile *profile,
		       const struct stack_groups *groups, struct filter_options *options,
		       struct error *error)
{
	int err = block_filter__prepare(filter, profile, groups, options, error);

	return err ?: evaluate(filter, groups, error);
}

void block_filter__release(struct block_filter *filter)
{
	conditions__release(&filter->conditions);
	free(filter->clocks);
	free(filter->runs.late_ns);
	free(filter->order);
	free(filter->starts);
}
