// SPDX-License-Identifier: GPL-3.0-or-later
/* The gaps of a profile. */
#include "profile_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "cleanup.h"

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

	/* More come while those of the same profile are added up. */
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

/* Takes "NAME: 3 processes, 4096 bytes" or "others: 3 processes" apart. */
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

/* Longer lines are cut. */
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
