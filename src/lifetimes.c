// SPDX-License-Identifier: GPL-3.0-or-later
#include "lifetimes.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "array.h"
#include "hash_table.h"
#include "profile.h"

struct entry {
	__u32 record, born, died; /* the record's number */
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
	       entry->died == wanted->died;
}

static int add(struct lifetimes *lifetimes, const struct entry *wanted)
{
	__u64 hash =
		hash_mix(hash_mix(0, wanted->record), (__u64)wanted->born << 32 | wanted->died);
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

static __u32 fold(__u32 epoch, __u32 by)
{
	if (epoch == PROFILE_LIVE)
		return epoch;
	return by < 32 ? epoch >> by : 0;
}

/* Adding to the front of the array what has been taken from further behind. */
static int fold_all(struct lifetimes *lifetimes, __u32 shift)
{
	__u32 by = shift - lifetimes->shift;
	size_t n = lifetimes->n;
	int err = 0;

	hash_table__release(&lifetimes->index);
	lifetimes->index = (struct hash_table){ 0 };
	lifetimes->n = 0;
	lifetimes->shift = shift;
	for (size_t i = 0; i < n && !err; i++) {
		struct entry entry = lifetimes->entries[i];

		entry.born = fold(entry.born, by);
		entry.died = fold(entry.died, by);
		err = add(lifetimes, &entry);
	}
	return err;
}

int lifetimes__add(struct lifetimes *lifetimes, const struct ap_lifetime_key *key, __u64 blocks,
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
	entry.born = fold(key->born, by);
	entry.died = fold(key->died, by);
	return add(lifetimes, &entry);
}

__u32 lifetimes__shift(const struct lifetimes *lifetimes)
{
	return lifetimes->shift;
}

/* Entries after which the memory of those that were taken is given back. */
#define TAKE_AT_ONCE 65536

bool lifetimes__take(struct lifetimes *lifetimes, struct ap_lifetime_key *key,
		     struct ap_lifetime *sum)
{
	const struct entry *entry;
	void *shrunk;

	hash_table__release(&lifetimes->index);
	lifetimes->index = (struct hash_table){ 0 };
	if (!lifetimes->n)
		return false;
	entry = &lifetimes->entries[--lifetimes->n];
	*key = (struct ap_lifetime_key){
		.record = entry->record,
		.shift = lifetimes->shift,
		.born = entry->born,
		.died = entry->died,
	};
	*sum = entry->sum;
	if (lifetimes->n && !(lifetimes->n % TAKE_AT_ONCE)) {
		shrunk = realloc(lifetimes->entries, lifetimes->n * sizeof(*entry));
		if (shrunk) {
			lifetimes->entries = shrunk;
			lifetimes->room = lifetimes->n;
		}
	}
	return true;
}
