// SPDX-License-Identifier: GPL-3.0-or-later
#include "hash_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#define MIN_SLOTS 64

static __u32 finish(__u64 hash)
{
	return hash_mix(hash, hash >> 32) >> 32;
}

__u32 hash_table__find(const struct hash_table *table, __u64 hash, hash_table_match_fn match,
		       const void *owner, const void *key)
{
	__u32 wanted = finish(hash);
	size_t i;

	if (!table->n_slots)
		return 0;
	for (i = wanted & (table->n_slots - 1); table->slots[i].id;
	     i = (i + 1) & (table->n_slots - 1)) {
		if (table->slots[i].hash == wanted && match(owner, table->slots[i].id, key))
			return table->slots[i].id;
	}
	return 0;
}

static void place(struct hash_slot *slots, size_t n_slots, struct hash_slot entry)
{
	size_t i = entry.hash & (n_slots - 1);

	while (slots[i].id)
		i = (i + 1) & (n_slots - 1);
	slots[i] = entry;
}

static int grow(struct hash_table *table)
{
	size_t n_slots = table->n_slots ? table->n_slots * 2 : MIN_SLOTS;
	struct hash_slot *slots = calloc(n_slots, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	for (size_t i = 0; i < table->n_slots; i++) {
		if (table->slots[i].id)
			place(slots, n_slots, table->slots[i]);
	}
	free(table->slots);
	table->slots = slots;
	table->n_slots = n_slots;
	return 0;
}

int hash_table__insert(struct hash_table *table, __u64 hash, __u32 id)
{
	/* Linear probing stays short up to two thirds. */
	if (table->n_used + 1 > table->n_slots / 3 * 2) {
		int err = grow(table);

		if (err)
			return err;
	}
	place(table->slots, table->n_slots, (struct hash_slot){ finish(hash), id });
	table->n_used++;
	return 0;
}

void hash_table__release(struct hash_table *table)
{
	free(table->slots);
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
	/* The kernel's 16 random bytes of this process: no call that could block or fail. */
	const void *random = (const void *)getauxval(AT_RANDOM);
	__u64 seed = 0x2545f4914f6cdd1dULL;

	if (random)
		memcpy(&seed, random, sizeof(seed));
	return seed;
}
