// SPDX-License-Identifier: GPL-3.0-or-later
/* Keeps the ledger and the gaps of a profile: what happened to each event, what is lacking, and
 * whether figures that must agree do. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "cleanup.h"
#include "gaps.h"
#include "profile.h"
#include "profile_internal.h"

static void sum_ends(const struct profile *profile, __u64 calls[AP_STACK_ENDS])
{
	memset(calls, 0, AP_STACK_ENDS * sizeof(*calls));
	for (size_t i = 0; i < profile->n_counts; i++) {
		const struct profile_count *count = &profile->counts[i];
		enum ap_stack_end end = profile->stacks[count->stack - 1].end;

		calls[end] = profile__add_up(calls[end], count->calls);
	}
}

int profile__settle_ledger(struct profile *profile, __u64 events, const __u64 lost[AP_LOST_REASONS])
{
	__u64 calls[AP_STACK_ENDS], incomplete = 0, all_lost = 0;
	char name[64];
	int err;

	sum_ends(profile, calls);
	for (int i = 0; i < AP_LOST_REASONS; i++) {
		snprintf(name, sizeof(name), "lost_%s", profile__lost_name(i));
		err = profile__set_ledger(profile, name, lost[i]);
		if (err)
			return err;
		all_lost = profile__add_up(all_lost, lost[i]);
	}
	for (int i = AP_END_COMPLETE + 1; i < AP_STACK_ENDS; i++) {
		snprintf(name, sizeof(name), "incomplete_%s", profile__stack_end_name(i));
		err = profile__set_ledger(profile, name, calls[i]);
		if (err)
			return err;
		incomplete = profile__add_up(incomplete, calls[i]);
	}
	err = profile__set_ledger(profile, "events", events);
	if (!err)
		err = profile__set_ledger(profile, "lost", all_lost);
	if (!err)
		err = profile__set_ledger(profile, "complete", calls[AP_END_COMPLETE]);
	if (!err)
		err = profile__set_ledger(profile, "incomplete", incomplete);
	if (!err)
		err = profile__set_ledger(profile, "attributed",
					  profile__add_up(calls[AP_END_COMPLETE], incomplete));
	return err;
}

__u64 profile__lost(const struct profile *profile, enum ap_lost reason)
{
	char name[64];

	snprintf(name, sizeof(name), "lost_%s", profile__lost_name(reason));
	return profile__ledger(profile, name);
}

/* Returns the sum of all entries whose names begin with @prefix. */
static __u64 sum_ledger(const struct profile *profile, const char *prefix)
{
	size_t len = strlen(prefix);
	__u64 sum = 0;

	for (size_t i = 0; i < profile->n_ledger; i++) {
		if (!strncmp(profile->ledger[i].name, prefix, len))
			sum = profile__add_up(sum, profile->ledger[i].value);
	}
	return sum;
}

/* Returns the sum of the calls of all counts. */
static __u64 counted_calls(const struct profile *profile)
{
	__u64 samples = 0;

	if (!profile__sample_bytes(profile))
		return profile__ledger(profile, "attributed");
	for (size_t i = 0; i < profile->n_samples; i++)
		samples = profile__add_up(samples,
					  profile->samples[i].of[PROFILE_SAMPLED_CALLS].samples);
	return samples;
}

int profile__settle_samples(struct profile *profile, __u64 not_sampled)
{
	int err = profile__set_ledger(profile, "sampled", counted_calls(profile));

	return err ? err : profile__set_ledger(profile, "not_sampled", not_sampled);
}

static bool has_entry(const struct profile *profile, const char *name)
{
	for (size_t i = 0; i < profile->n_ledger; i++)
		if (!strcmp(profile->ledger[i].name, name))
			return true;
	return false;
}

static bool has_sums(const struct profile *profile)
{
	return has_entry(profile, "events") && has_entry(profile, "lost") &&
	       has_entry(profile, "attributed") && has_entry(profile, "complete") &&
	       has_entry(profile, "incomplete");
}

bool profile__ledger_adds_up(const struct profile *profile)
{
	__u64 counted =
		profile__add_up(counted_calls(profile), profile__ledger(profile, "not_sampled"));
	__u64 attributed = profile__ledger(profile, "attributed");
	__u64 complete = profile__ledger(profile, "complete");
	__u64 incomplete = profile__ledger(profile, "incomplete");
	__u64 lost = profile__ledger(profile, "lost");
	__u64 calls[AP_STACK_ENDS], not_complete = 0;
	char name[64];

	if (!has_sums(profile))
		return false;
	if (profile->index->is_without_stacks)
		return profile->index->ledger_adds_up;
	sum_ends(profile, calls);
	for (int i = AP_END_COMPLETE + 1; i < AP_STACK_ENDS; i++) {
		snprintf(name, sizeof(name), "incomplete_%s", profile__stack_end_name(i));
		if (profile__ledger(profile, name) != calls[i])
			return false;
		not_complete = profile__add_up(not_complete, calls[i]);
	}
	return calls[AP_END_COMPLETE] == complete && not_complete == incomplete &&
	       sum_ledger(profile, "incomplete_") == incomplete &&
	       attributed == profile__add_up(complete, incomplete) &&
	       lost == sum_ledger(profile, "lost_") &&
	       profile__ledger(profile, "events") == profile__add_up(counted, lost) &&
	       (!profile__sample_bytes(profile) ||
		profile__ledger(profile, "sampled") == counted_calls(profile));
}

static __u64 hash_gap(const struct profile *profile, const struct profile_gap *gap)
{
	__u64 hash = hash_string(profile->index->seed, gap->object);

	return hash_mix(hash_mix(hash_string(hash, gap->detail), gap->kind), gap->run);
}

static bool match_gap(const void *profile, __u32 id, const void *key)
{
	const struct profile_gap *gap = &((const struct profile *)profile)->gaps[id - 1];
	const struct profile_gap *wanted = key;

	return gap->kind == wanted->kind && gap->run == wanted->run &&
	       !strcmp(gap->object, wanted->object) && !strcmp(gap->detail, wanted->detail);
}

int profile__add_gap(struct profile *profile, const struct profile_gap *more)
{
	struct profile_index *index = profile->index;
	struct profile_gap gap = *more;
	__u32 found;
	__u64 hash;

	gap.object = gap.object ?: "";
	gap.detail = gap.detail ?: "";
	gap.number = profile__add_up(gap.number, 0);
	gap.size_bytes = profile__add_up(gap.size_bytes, 0);
	hash = hash_gap(profile, &gap);
	found = hash_table__find(&index->gaps, hash, match_gap, profile, &gap);
	if (found) {
		struct profile_gap *sum = &profile->gaps[found - 1];

		sum->number = profile__add_up(sum->number, gap.number);
		sum->size_bytes = profile__add_up(sum->size_bytes, gap.size_bytes);
		return 0;
	}
	gap.object = strdup(gap.object);
	gap.detail = strdup(gap.detail);
	if (!gap.object || !gap.detail ||
	    profile_index__append(&index->gaps, hash, &profile->gaps, &index->gaps_room,
				  &profile->n_gaps, &gap, sizeof(gap))) {
		free((char *)gap.object);
		free((char *)gap.detail);
		return -ENOMEM;
	}
	return 0;
}

int profile__add_gaps_of(struct profile *profile, const struct profile *from, __u32 run, __u32 to)
{
	int err = 0;

	/* If both profiles are the same, the list grows while it is read, so only the entries that
	 * it has now are. */
	for (size_t i = 0, n = from->n_gaps; i < n && !err; i++) {
		struct profile_gap gap = from->gaps[i];

		if (gap.run != run)
			continue;
		gap.run = to;
		err = profile__add_gap(profile, &gap);
	}
	return err;
}

bool profile__next_gap(const struct profile *profile, size_t *at, const struct profile_gap **gap)
{
	while (*at < profile->n_gaps) {
		*gap = &profile->gaps[(*at)++];
		if (!(*gap)->run)
			return true;
	}
	return false;
}

bool profile__has_gaps(const struct profile *profile, bool of_regions)
{
	const struct profile_gap *gap;

	for (size_t at = 0; profile__next_gap(profile, &at, &gap);)
		if (gap__is_of_regions(gap->kind) == of_regions)
			return true;
	return false;
}

__u64 profile__gap(const struct profile *profile, enum gap kind)
{
	const struct profile_gap *gap;
	__u64 sum = 0;

	for (size_t at = 0; profile__next_gap(profile, &at, &gap);)
		if (gap->kind == kind)
			sum = profile__add_up(sum, gap->number);
	return sum;
}

void profile__free_gaps(struct profile *profile)
{
	for (size_t i = 0; i < profile->n_gaps; i++) {
		free((char *)profile->gaps[i].object);
		free((char *)profile->gaps[i].detail);
	}
	free(profile->gaps);
	hash_table__release(&profile->index->gaps);
}

/* Parses "NAME: 3 processes, 4096 bytes" or "others: 3 processes". */
static bool read_program(char *line, struct profile_gap *gap)
{
	char *colon = strrchr(line, ':');
	int n = colon ? sscanf(colon, ": %llu %*[a-z], %llu bytes", &gap->number, &gap->size_bytes)
		      : 0;

	if (n < 1)
		return false;
	*colon = '\0';
	gap->kind = n == 1 ? GAP_OTHERS_UNPROBED : GAP_PROGRAM_UNPROBED;
	gap->object = n == 1 ? "" : line;
	gap->detail = "";
	return true;
}

/* Longer lines are truncated. */
#define OLD_LINE 1024

static int add_old_lines(struct profile *profile, __u32 run, const char *key, const char *lines)
{
	bool are_programs = !strcmp(key, "unprobed_programs");
	int err = 0;

	while (*lines && !err) {
		size_t len = strcspn(lines, "\n");
		_cleanup_(free_ptr) char *line = strndup(lines, len < OLD_LINE ? len : OLD_LINE);
		struct profile_gap gap = {
			.run = run, .kind = GAP_SENTENCE, .object = line, .detail = key
		};

		if (!line)
			return -ENOMEM;
		if (are_programs)
			(void)read_program(line, &gap);
		err = profile__add_gap(profile, &gap);
		lines += len + (lines[len] == '\n');
	}
	return err;
}

int profile__add_old_gap(struct profile *profile, __u32 run, const char *key, const char *value)
{
	static const char *const lists[] = {
		"unprobed_allocators", "unknown_functions", "unprobed_programs", "refused_programs",
		"engine_gaps",	       "live_gaps",	    "lacking_sources",
	};
	int kind = gap__by_key(key), err;

	for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
		if (!strcmp(lists[i], key)) {
			err = add_old_lines(profile, run, key, value);
			return err ? err : 1;
		}
	if (kind < 0 || kind >= GAP_NUMBERS)
		return 0;
	err = profile__add_gap(profile,
			       &(struct profile_gap){ .run = run,
						      .kind = (enum gap)kind,
						      .number = strtoull(value, NULL, 10) });
	return err ? err : 1;
}

/* Stores the number of blocks in all buckets, and the least and the greatest sum of sizes that so
 * many blocks can have. */
static void sum_sizes(const __u64 buckets[PROFILE_BUCKETS], __u64 *blocks, double *least,
		      double *greatest)
{
	double size = 1;

	*blocks = buckets[0];
	*least = *greatest = 0;
	for (int i = 1; i < PROFILE_BUCKETS; i++, size *= 2) {
		*blocks = profile__add_up(*blocks, buckets[i]);
		*least += size * (double)buckets[i];
		*greatest += 2 * size * (double)buckets[i];
	}
}

/* Returns whether the sizes agree. Sums that reached PROFILE_MAX prove nothing, nor do those of
 * blocks whose sizes were lost. */
static bool sizes_add_up(const struct profile_blocks *blocks)
{
	double least, greatest;
	__u64 n;

	sum_sizes(blocks->sizes, &n, &least, &greatest);
	if (n > blocks->allocations || blocks->size_bytes >= PROFILE_MAX)
		return n <= blocks->allocations;
	return (double)blocks->size_bytes >= least &&
	       (n < blocks->allocations || (double)blocks->size_bytes <= greatest);
}

/* Returns whether @part may be a part of @whole. Sums that reached PROFILE_MAX prove nothing. */
static bool is_part(__u64 part, __u64 whole)
{
	return part <= whole || part >= PROFILE_MAX;
}

/* Returns whether calls and blocks agree: a call that has returned has failed, or has one block at
 * most. Lifetimes of blocks whose end was not seen, or for which there was no room, are in no
 * histogram. */
static bool counts_add_up(const struct profile_count *count, const struct profile_blocks *blocks)
{
	double unused[2];
	__u64 lifetimes;

	sum_sizes(blocks->lifetimes, &lifetimes, &unused[0], &unused[1]);
	return is_part(profile__add_up(blocks->allocations, blocks->failed), count->calls) &&
	       is_part(blocks->peak, blocks->allocations) &&
	       is_part(blocks->peak_bytes, blocks->size_bytes) && is_part(lifetimes, blocks->frees);
}

/* Blocks of a count by epochs. */
struct of_epochs {
	__u64 blocks, size_bytes, live, live_bytes;
};

/* Adds up all lifetimes: those of each count at its id - 1. Returns the number of their blocks. */
static __u64 sum_lifetimes(const struct profile *profile, struct of_epochs *sums)
{
	struct profile_lifetime lifetime;
	__u64 blocks = 0;
	__u32 at = 0;

	while (profile__next_lifetime(profile, &at, &lifetime)) {
		struct of_epochs *sum = &sums[lifetime.count - 1];

		blocks = profile__add_up(blocks, lifetime.blocks);
		sum->blocks = profile__add_up(sum->blocks, lifetime.blocks);
		sum->size_bytes = profile__add_up(sum->size_bytes, lifetime.size_bytes);
		if (lifetime.died != PROFILE_LIVE)
			continue;
		sum->live = profile__add_up(sum->live, lifetime.blocks);
		sum->live_bytes = profile__add_up(sum->live_bytes, lifetime.size_bytes);
	}
	return blocks;
}

static bool epochs_add_up(const struct of_epochs *sum, const struct profile_blocks *blocks)
{
	return is_part(sum->blocks, blocks->allocations) &&
	       is_part(sum->size_bytes, blocks->size_bytes) &&
	       is_part(sum->live, profile_blocks__live(blocks)) &&
	       is_part(sum->live_bytes, profile_blocks__live_bytes(blocks));
}

/* Returns whether no count has more blocks in epochs than in all, and some epoch has blocks if any
 * count has. Epochs may lack some blocks, which were lost. */
static bool lifetimes_add_up(const struct profile *profile, __u64 allocations)
{
	_cleanup_(free_ptr) struct of_epochs *sums = calloc(profile->n_counts + 1, sizeof(*sums));
	struct profile_blocks blocks;
	__u64 of_epochs;

	/* Without memory for the sums this cannot be checked, and the file counts as sound. */
	if (!sums)
		return true;
	of_epochs = sum_lifetimes(profile, sums);
	for (size_t i = 0; i < profile->n_counts; i++)
		if (profile__count_blocks(profile, &profile->counts[i], &blocks) &&
		    !epochs_add_up(&sums[i], &blocks))
			return false;
	return of_epochs <= allocations && (of_epochs || !allocations);
}

__u64 profile__blocks_without_lifetime(const struct profile *profile)
{
	struct profile_lifetime lifetime;
	struct profile_blocks blocks;
	__u64 all = 0, found = 0;
	__u32 at = 0;

	while (profile__next_lifetime(profile, &at, &lifetime))
		found = profile__add_up(found, lifetime.blocks);
	for (size_t i = 0; i < profile->n_counts; i++)
		if (profile__count_blocks(profile, &profile->counts[i], &blocks))
			all = profile__add_up(all, blocks.allocations);
	return all > found ? all - found : 0;
}

bool profile__blocks_add_up(const struct profile *profile)
{
	struct profile_blocks blocks;
	__u64 allocations = 0;

	if (profile->index->is_without_stacks)
		return profile->index->blocks_add_up;
	/* Estimates are rounded, and a copy that was read while the target ran mixes several
	 * moments. */
	if (profile__sample_bytes(profile) || profile__gap(profile, GAP_TORN))
		return true;
	for (size_t i = 0; i < profile->n_counts; i++) {
		const struct profile_count *count = &profile->counts[i];

		if (!profile__count_blocks(profile, count, &blocks))
			continue;
		if (!sizes_add_up(&blocks) || !counts_add_up(count, &blocks))
			return false;
		allocations = profile__add_up(allocations, blocks.allocations);
	}
	/* Blocks without a count are in none of these figures. */
	return !profile__has_blocks(profile) || !profile__meta(profile, "epoch_ns") ||
	       lifetimes_add_up(profile, allocations);
}
