// SPDX-License-Identifier: GPL-3.0-or-later
#include "timeline.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "array.h"
#include "hash_table.h"
#include "profile.h"

/* The first step, if the step follows from the recording's length. */
#define FIRST_STEP_NS 1000000

__u64 timeline__due_ns(const struct timeline *timeline, __u64 time_ns)
{
	return timeline->next_ns > time_ns ? timeline->next_ns - time_ns : 0;
}

/* Removes every second sample; the first stays. */
static void thin_out(struct timeline *timeline)
{
	size_t n = 0;

	for (size_t i = 0; i < timeline->n; i += 2)
		timeline->samples[n++] = timeline->samples[i];
	timeline->n = n;
	timeline->step_ns *= 2;
}

int timeline__add(struct timeline *timeline, const struct timeline_sample *sample)
{
	if (!timeline->step_ns)
		timeline->step_ns = timeline->interval_ns ? timeline->interval_ns : FIRST_STEP_NS;
	if (timeline->n && timeline->samples[timeline->n - 1].time_ns >= sample->time_ns) {
		timeline->samples[timeline->n - 1] = *sample;
		return 0;
	}
	if (!timeline->interval_ns && timeline->n == TIMELINE_SAMPLES)
		thin_out(timeline);
	if (array__reserve(&timeline->samples, &timeline->room, timeline->n + 1,
			   sizeof(*timeline->samples)))
		return -ENOMEM;
	timeline->samples[timeline->n++] = *sample;
	/* The next sample is due at a multiple of the step, so that samples are evenly spaced
	 * after thinning. */
	timeline->next_ns =
		sample->time_ns - sample->time_ns % timeline->step_ns + timeline->step_ns;
	return 0;
}

void timeline__pause(struct timeline *timeline, __u64 pause_ns)
{
	__u64 earliest_ns;

	if (!timeline->n)
		return;
	earliest_ns = timeline->samples[timeline->n - 1].time_ns + pause_ns;
	if (timeline->next_ns < earliest_ns)
		timeline->next_ns = earliest_ns;
}

void timeline__release(struct timeline *timeline)
{
	free(timeline->samples);
	timeline->samples = NULL;
	timeline->n = timeline->room = 0;
}

struct entry {
	__u32 record, born, died, exited; /* index of the record */
	struct ap_lifetime sum;
};

struct lifetimes {
	__u32 shift;
	struct entry *entries;
	size_t n, room;
	struct hash_table index;
};

struct lifetimes *lifetimes__new(void)
{
	struct lifetimes *lifetimes = calloc(1, sizeof(*lifetimes));

	if (lifetimes)
		lifetimes->shift = AP_FIRST_EPOCH_SHIFT;
	return lifetimes;
}

void lifetimes__free(struct lifetimes *lifetimes)
{
	if (!lifetimes)
		return;
	free(lifetimes->entries);
	hash_table__release(&lifetimes->index);
	free(lifetimes);
}

static bool is_entry(const void *owner, __u32 id, const void *key)
{
	const struct entry *entry = &((const struct lifetimes *)owner)->entries[id - 1];
	const struct entry *wanted = key;

	return entry->record == wanted->record && entry->born == wanted->born &&
	       entry->died == wanted->died && entry->exited == wanted->exited;
}

static int add(struct lifetimes *lifetimes, const struct entry *wanted)
{
	__u64 hash = hash_mix(hash_mix(0, (__u64)wanted->exited << 32 | wanted->record),
			      (__u64)wanted->born << 32 | wanted->died);
	__u32 id = hash_table__find(&lifetimes->index, hash, is_entry, lifetimes, wanted);
	struct entry *entry;
	int err;

	if (id) {
		entry = &lifetimes->entries[id - 1];
		entry->sum.blocks += wanted->sum.blocks;
		entry->sum.size_bytes =
			profile__add_up(entry->sum.size_bytes, wanted->sum.size_bytes);
		return 0;
	}
	if (array__reserve(&lifetimes->entries, &lifetimes->room, lifetimes->n + 1,
			   sizeof(*lifetimes->entries)))
		return -ENOMEM;
	err = hash_table__insert(&lifetimes->index, hash, lifetimes->n + 1);
	if (!err)
		lifetimes->entries[lifetimes->n++] = *wanted;
	return err;
}

/* Empties the table before the entries are added again. */
static size_t clear(struct lifetimes *lifetimes)
{
	size_t n = lifetimes->n;

	hash_table__release(&lifetimes->index);
	lifetimes->n = 0;
	return n;
}

/* Adds all entries again, at the front of the same array, behind which they are read. */
static int fold_all(struct lifetimes *lifetimes, __u32 shift)
{
	__u32 by = shift - lifetimes->shift;
	size_t n = clear(lifetimes);
	int err = 0;

	lifetimes->shift = shift;
	for (size_t i = 0; i < n && !err; i++) {
		struct entry entry = lifetimes->entries[i];

		entry.born = profile__fold_epoch(entry.born, by);
		entry.died = profile__fold_epoch(entry.died, by);
		entry.exited = profile__fold_epoch(entry.exited, by);
		err = add(lifetimes, &entry);
	}
	return err;
}

int lifetimes__add(struct lifetimes *lifetimes, const struct lifetime_key *key, __u64 blocks,
		   __u64 size_bytes)
{
	struct entry entry = { .record = key->record, .sum = { blocks, size_bytes } };
	__u32 by;
	int err;

	if (key->shift > lifetimes->shift) {
		err = fold_all(lifetimes, key->shift);
		if (err)
			return err;
	}
	by = lifetimes->shift - key->shift;
	entry.born = profile__fold_epoch(key->born, by);
	entry.died = profile__fold_epoch(key->died, by);
	entry.exited = profile__fold_epoch(key->exited, by);
	return add(lifetimes, &entry);
}

__u32 lifetimes__shift(const struct lifetimes *lifetimes)
{
	return lifetimes->shift;
}

/* Frees memory beyond what the remaining entries need. */
static void shrink(struct lifetimes *lifetimes)
{
	struct entry *shrunk;

	if (lifetimes->n >= lifetimes->room / 2)
		return;
	shrunk = realloc(lifetimes->entries, (lifetimes->n + 1) * sizeof(*shrunk));
	if (!shrunk)
		return;
	lifetimes->entries = shrunk;
	lifetimes->room = lifetimes->n + 1;
}

int lifetimes__move(struct lifetimes *lifetimes, lifetimes_move_fn move, void *context)
{
	size_t n = clear(lifetimes);
	int err = 0;

	for (size_t i = 0; i < n && err >= 0; i++) {
		struct entry entry = lifetimes->entries[i];
		struct lifetime_key key = {
			.record = entry.record,
			.shift = lifetimes->shift,
			.born = entry.born,
			.died = entry.died,
			.exited = entry.exited,
		};

		err = move(context, &key, &entry.sum);
		if (!err)
			err = add(lifetimes, &entry);
	}
	shrink(lifetimes);
	return err < 0 ? err : 0;
}
