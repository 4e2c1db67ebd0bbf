// SPDX-License-Identifier: GPL-3.0-or-later
#include "hash_table.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#define MIN_SLOTS 64
/* Number of slots that each insertion moves: enough to finish before the next growth, which comes
 * after insertions into 2/3 of the slots. */
#define MOVED_AT_A_TIME 4

/* Mixes @hash with the table's seed, since a target may choose its stacks so that their hashes
 * collide. */
static __u32 finish(const struct hash_table *table, __u64 hash)
{
	hash = (hash ^ table->seed) * 0xff51afd7ed558ccdULL;
	hash = (hash ^ hash >> 33 ^ table->seed) * 0xc4ceb9fe1a85ec53ULL;
	return hash >> 32;
}

static __u32 find(const struct hash_slot *slots, size_t n_slots, __u32 hash,
		  hash_table_match_fn match, const void *owner, const void *key)
{
	if (!n_slots)
		return 0;
	for (size_t i = hash & (n_slots - 1); slots[i].id; i = (i + 1) & (n_slots - 1)) {
		if (slots[i].hash == hash && match(owner, slots[i].id, key))
			return slots[i].id;
	}
	return 0;
}

__u32 hash_table__find(const struct hash_table *table, __u64 hash, hash_table_match_fn match,
		       const void *owner, const void *key)
{
	__u32 finished = finish(table, hash);
	__u32 id = find(table->slots, table->n_slots, finished, match, owner, key);

	return id ? id : find(table->old_slots, table->n_old_slots, finished, match, owner, key);
}

static void place_slot(struct hash_slot *slots, size_t n_slots, struct hash_slot entry)
{
	size_t i = entry.hash & (n_slots - 1);

	while (slots[i].id)
		i = (i + 1) & (n_slots - 1);
	slots[i] = entry;
}

/* Moves the entries of up to @n slots to the new table. The old slots stay intact, so that they
 * can be searched. */
static void move(struct hash_table *table, size_t n)
{
	size_t end =
		n < table->n_old_slots - table->n_moved ? table->n_moved + n : table->n_old_slots;

	for (; table->n_moved < end; table->n_moved++) {
		const struct hash_slot *slot = &table->old_slots[table->n_moved];

		if (slot->id)
			place_slot(table->slots, table->n_slots, *slot);
	}
	if (end < table->n_old_slots)
		return;
	free(table->old_slots);
	table->old_slots = NULL;
	table->n_old_slots = table->n_moved = 0;
}

static int grow(struct hash_table *table)
{
	size_t n_slots = table->n_slots ? table->n_slots * 2 : MIN_SLOTS;
	struct hash_slot *slots = calloc(n_slots, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	if (!table->n_slots)
		table->seed = hash_seed();
	move(table, SIZE_MAX);
	table->old_slots = table->slots;
	table->n_old_slots = table->n_slots;
	table->slots = slots;
	table->n_slots = n_slots;
	return 0;
}

int hash_table__insert(struct hash_table *table, __u64 hash, __u32 id)
{
	/* Linear probing stays short up to a load of two thirds. */
	if (table->n_used + 1 > table->n_slots / 3 * 2) {
		int err = grow(table);

		if (err)
			return err;
	}
	move(table, MOVED_AT_A_TIME);
	place_slot(table->slots, table->n_slots, (struct hash_slot){ finish(table, hash), id });
	table->n_used++;
	return 0;
}

void hash_table__release(struct hash_table *table)
{
	free(table->slots);
	free(table->old_slots);
	*table = (struct hash_table){ 0 };
}

__u64 hash_bytes(__u64 hash, const void *bytes, size_t size)
{
	const unsigned char *at = bytes;
	__u64 word;

	hash = hash_mix(hash, size);
	for (; size >= sizeof(word); at += sizeof(word), size -= sizeof(word)) {
		memcpy(&word, at, sizeof(word));
		hash = hash_mix(hash, word);
	}
	if (size) {
		word = 0;
		memcpy(&word, at, size);
		hash = hash_mix(hash, word);
	}
	return hash;
}

__u64 hash_string(__u64 hash, const char *string)
{
	return hash_bytes(hash, string, strlen(string));
}

__u64 hash_seed(void)
{
	/* AT_RANDOM: 16 random bytes, without a call that could block or fail. */
	const void *random = (const void *)getauxval(AT_RANDOM);
	__u64 seed = 0x2545f4914f6cdd1dULL;

	if (random)
		memcpy(&seed, random, sizeof(seed));
	return seed;
}
