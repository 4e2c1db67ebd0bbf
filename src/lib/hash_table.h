/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * An open-addressing hash table from keys to 32-bit ids. The entries themselves live in the
 * caller's arrays; a slot has 8 bytes, so a million stacks cost 16 MiB of index. A growing table
 * moves a few entries with each insertion, because moving millions at once would stall the ring
 * buffer's reader.
 */
#ifndef ALLOCPROF_HASH_TABLE_H
#define ALLOCPROF_HASH_TABLE_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

struct hash_slot {
	__u32 hash;
	__u32 id; /* 0: free */
};

/* Zeroed it is empty. */
struct hash_table {
	struct hash_slot *slots;
	size_t n_slots; /* a power of two, or 0 */
	size_t n_used;
	__u64 seed; /* differs between runs; set when there are slots */
	/* During growth: the smaller table, of which the entries of n_moved slots are already in
	 * the new one; else NULL. */
	struct hash_slot *old_slots;
	size_t n_old_slots, n_moved;
};

/* Returns whether entry @id of the caller's @owner has the key @key. */
typedef bool (*hash_table_match_fn)(const void *owner, __u32 id, const void *key);

/* Returns the id of @key, or 0. */
__u32 hash_table__find(const struct hash_table *table, __u64 hash, hash_table_match_fn match,
		       const void *owner, const void *key);
/* Adds @id, which is not 0; the caller has checked that it is absent. Returns 0 or -ENOMEM. */
int hash_table__insert(struct hash_table *table, __u64 hash, __u32 id);
void hash_table__release(struct hash_table *table);

/* Returns a hash of @hash and @value. A caller starts with hash_seed(), so that files cannot
 * choose collisions. */
static inline __u64 hash_mix(__u64 hash, __u64 value)
{
	hash = (hash ^ value) * 0x9e3779b97f4a7c15ULL;
	return hash ^ hash >> 29;
}

__u64 hash_bytes(__u64 hash, const void *bytes, size_t size);
__u64 hash_string(__u64 hash, const char *string);
/* Returns a seed that differs between runs. */
__u64 hash_seed(void);

#endif
