// SPDX-License-Identifier: GPL-3.0-or-later
/* Applies the options of a filter to a profile. */
#include "filter.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "cleanup.h"
#include "error.h"
#include "filter_internal.h"
#include "pattern.h"
#include "profile.h"
#include "profile_runs.h"
#include "suppressions.h"

bool filter__has_live(const struct profile *profile)
{
	return profile__has_blocks(profile) || profile__meta(profile, "epoch_ns");
}

static bool asks_for_live(const struct filter_options *options)
{
	return options->leaks || options->older.is_given;
}

static bool asks_for_freed(const struct filter_options *options)
{
	return options->freed || options->freed_after.is_given || options->max_lifetime.is_given;
}

/* Returns the columns that the user's expressions read. */
static __u32 columns_of(const struct filter_options *options)
{
	__u32 columns = 0;

	for (size_t i = 0; i < options->n_where; i++)
		columns |= options->where[i].columns;
	return columns;
}

static bool asks_for_blocks(const struct filter_options *options)
{
	return asks_for_live(options) || asks_for_freed(options) ||
	       options->min_lifetime.is_given || columns_of(options) & WHERE_BLOCK_COLUMNS;
}

static int fail_without_live(const char *what, struct error *error)
{
	return error__set(error, -ENODATA,
			  "this recording does not know %s; record with --live for that", what);
}

static int check_patterns(const struct filter_options *options, struct error *error)
{
	for (size_t i = 0; i < options->n_rules; i++) {
		struct pattern pattern;
		int err;

		if (options->rules[i].kind == FILTER_STACK)
			continue;
		err = pattern__parse(&pattern, options->rules[i].text, error);
		if (err)
			return err;
		pattern__release(&pattern);
	}
	return 0;
}

int filter__check_options(const struct filter_options *options, enum cost cost, struct error *error)
{
	if (asks_for_live(options) && asks_for_freed(options))
		return error__set(
			error, -EINVAL,
			"--leaks and --older select live blocks, --freed, --freed-after and "
			"--max-lifetime freed ones; give options of one kind");
	if (options->at_exit && !options->leaks)
		return error__set(error, -EINVAL, "--at-exit is about leaks; add --leaks");
	if (options->suppressions && !asks_for_live(options))
		return error__set(error, -EINVAL, "suppressions hide leaks; add --leaks");
	if (cost__is_of_stacks(cost) && asks_for_blocks(options))
		return error__set(
			error, -EINVAL,
			"which blocks were %s is known for whole stacks only; ask for "
			"another number, or leave out the options that select blocks by their fate",
			cost == COST_PEAK	 ? "there at the peak"
			: cost == COST_TEMPORARY ? "temporary"
			: cost == COST_LOST	 ? "lost"
						 : "resident");
	return check_patterns(options, error);
}

static int fail_without_resident(const struct profile *profile, struct error *error)
{
	for (size_t i = 0; i < profile->n_gaps; i++)
		if (profile->gaps[i].kind == GAP_RESIDENT_UNREAD)
			return error__set(
				error, -ENODATA, "what was resident at the end is not known: %s%s",
				profile->gaps[i].detail,
				profile->n_rss_samples
					? "; allocprof graph and html show what was at the copies that were "
					  "made before, and a copy at the peak has it by stack (record "
					  "--dump-at=peak)"
					: "");
	return error__set(error, -ENODATA,
			  "this recording does not know what is resident; record with "
			  "--resident for that");
}

int filter__check_cost(const struct profile *profile, enum cost cost, struct error *error)
{
	if (cost__needs_live(cost) && !filter__has_live(profile))
		return fail_without_live("when blocks were freed", error);
	if (cost__needs_resident(cost) && !profile->n_rss)
		return fail_without_resident(profile, error);
	if (cost__needs_reach(cost) && !profile__has_reach(profile))
		return error__set(error, -ENODATA,
				  "this recording does not know what can be reached; record with "
				  "--reachable for that");
	return 0;
}

static void hide(struct suppressions *suppressions, int by, struct selection *selection)
{
	struct suppression *suppression = &suppressions->list[by];

	suppression->blocks = profile__add_up(suppression->blocks, selection->live);
	suppression->size_bytes = profile__add_up(suppression->size_bytes, selection->live_bytes);
	*selection = selection_none;
}

static int select_all(const struct profile *profile, const struct block_filter *blocks,
		      struct suppressions *suppressions, struct filtered *filtered)
{
	_cleanup_(free_ptr) int *suppressed = NULL;

	if (suppressions) {
		suppressed = filter__suppressed_stacks(profile, suppressions);
		if (!suppressed)
			return -ENOMEM;
	}
	for (size_t i = 0; i < profile->n_counts; i++) {
		const struct profile_count *count = &profile->counts[i];
		struct selection *selection = &filtered->counts[i], whole;

		*selection = selection_none;
		if (profile__function_frees(count->function))
			continue;
		filter__whole(profile, &blocks->runs, count, &whole);
		filtered->left = profile__add_up(filtered->left, whole.live);
		filtered->left_bytes = profile__add_up(filtered->left_bytes, whole.live_bytes);
		profile_estimate__add(&filtered->of_left, &whole.of_live);
		block_filter__select(blocks, count, selection);
		if (blocks->exit_frees.epoch)
			block_filter__set_leaked(blocks, count, &whole);
		selection__add(&filtered->whole, &whole);
		if (suppressed && suppressed[count->stack - 1] >= 0)
			hide(suppressions, suppressed[count->stack - 1], selection);
		selection__add(&filtered->total, selection);
	}
	return 0;
}

int filter__apply(const struct profile *profile, const struct stack_groups *groups,
		  struct filter_options *options, struct filtered *filtered, struct error *error)
{
	struct filtered result = { .total = selection_none, .whole = selection_none };
	struct block_filter blocks = { 0 };
	int err;

	if (asks_for_blocks(options) && !filter__has_live(profile))
		return fail_without_live("what became of the blocks", error);
	err = block_filter__init(&blocks, profile, groups, options, error);
	if (err)
		goto out;
	result.end_ns = blocks.end_ns;
	result.epoch_ns = blocks.epoch_ns;
	options->exit_frees = result.exit_frees = blocks.exit_frees;
	/* The peaks of blocks and of mappings are those of two moments. */
	if (filter__selects_all(options) && !profile__meta(profile, "mappings_peak_bytes"))
		result.peak_bytes = profile__meta_number(profile, "peak_bytes");
	result.counts = calloc(profile->n_counts + 1, sizeof(*result.counts));
	err = result.counts ? select_all(profile, &blocks, options->suppressions, &result)
			    : -ENOMEM;
	result.runs = blocks.runs;
	blocks.runs.late_ns = NULL;
	if (err)
		error__set(error, err, "cannot filter: out of memory");
out:
	block_filter__release(&blocks);
	if (err)
		filtered__release(&result);
	else
		*filtered = result;
	return err;
}

static int select_lifetimes(const struct profile *profile, const struct block_filter *blocks,
			    const struct suppressions *suppressions, bool **selected)
{
	_cleanup_(free_ptr) int *suppressed = NULL;
	struct profile_lifetime lifetime;
	__u32 at = 0;
	bool *result;

	if (suppressions) {
		suppressed = filter__suppressed_stacks(profile, suppressions);
		if (!suppressed)
			return -ENOMEM;
	}
	result = calloc(profile->n_lifetimes + 1, sizeof(*result));
	if (!result)
		return -ENOMEM;
	for (size_t i = 0; profile__next_lifetime(profile, &at, &lifetime); i++) {
		const struct profile_count *count = &profile->counts[lifetime.count - 1];

		result[i] = !profile__function_frees(count->function) &&
			    !(suppressed && suppressed[count->stack - 1] >= 0) &&
			    block_filter__passes(blocks, &lifetime, i);
	}
	*selected = result;
	return 0;
}

int filter__select_lifetimes(const struct profile *profile, const struct stack_groups *groups,
			     struct filter_options *options, bool **selected, struct error *error)
{
	struct block_filter blocks = { 0 };
	int err;

	err = block_filter__init(&blocks, profile, groups, options, error);
	if (!err) {
		err = select_lifetimes(profile, &blocks, options->suppressions, selected);
		if (err)
			error__set(error, err, "cannot filter: out of memory");
	}
	block_filter__release(&blocks);
	return err;
}

void filtered__release(struct filtered *filtered)
{
	free(filtered->counts);
	free(filtered->runs.late_ns);
	*filtered = (struct filtered){ 0 };
}

bool filter__selects_blocks(const struct filter_options *options)
{
	return asks_for_blocks(options);
}

static bool has_rule(const struct filter_options *options, enum filter_kind kind)
{
	for (size_t i = 0; i < options->n_rules; i++) {
		if (options->rules[i].kind == kind)
			return true;
	}
	return false;
}

bool filter__names_stacks(const struct filter_options *options)
{
	return has_rule(options, FILTER_STACK) || columns_of(options) & WHERE_BIT(WHERE_STACK);
}

bool filter__needs_groups(const struct filter_options *options)
{
	return has_rule(options, FILTER_STACK) || columns_of(options) & WHERE_GROUP_COLUMNS;
}

bool filter__needs_times(const struct filter_options *options)
{
	return options->min_lifetime.is_given || options->max_lifetime.is_given ||
	       options->freed_after.is_given || columns_of(options) & WHERE_TIME_COLUMNS;
}

bool filter__selects_all(const struct filter_options *options)
{
	return !filter__selects_blocks(options) && !options->min_size_bytes &&
	       !options->has_max_size && !options->n_rules && !options->n_where &&
	       !options->suppressions;
}
