/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A table of what was found out by system calls, for all threads, without locks. The low bits of a key say for which generation
 * it holds: with the next one all of it is void, and is replaced bit by bit. Within a generation nothing is removed.
 */
#ifndef ALLOCPROF_INSIDE_KEPT_H
#define ALLOCPROF_INSIDE_KEPT_H

#include "sys.h"

struct kept {
	__u64 key; /* 0: free */
	__u64 value;
} __attribute__((aligned(16)));

#define KEPT_TRIES 8

/* @generation_bits: of a key. */
struct kept_table {
	struct kept *slots;
	__u32 shift; /* log2 of their number */
	__u32 generation_bits;
};

static inline __u64 kept__key(const struct kept_table *table, __u64 what, __u32 generation)
{
	return what << table->generation_bits | (generation & ((1U << table->generation_bits) - 1));
}

static inline struct kept *kept__slot(const struct kept_table *table, __u64 key, int attempt)
{
	__u64 first = key * 0x9e3779b97f4a7c15ULL >> (64 - table->shift);

	return &table->slots[(first + attempt) & ((1U << table->shift) - 1)];
}

static inline bool kept__is_void(const struct kept_table *table, __u64 found, __u64 key)
{
	return !found || (found ^ key) & ((1U << table->generation_bits) - 1);
}

static inline bool kept__find(const struct kept_table *table, __u64 key, __u64 *value)
{
	for (int i = 0; i < KEPT_TRIES; i++) {
		const struct kept *slot = kept__slot(table, key, i);
		__u64 found = __atomic_load_n(&slot->key, __ATOMIC_ACQUIRE);

		if (found == key) {
			*value = __atomic_load_n(&slot->value, __ATOMIC_ACQUIRE);
			return __atomic_load_n(&slot->key, __ATOMIC_RELAXED) == key;
		}
		/* It would be here. */
		if (kept__is_void(table, found, key))
			return false;
	}
	return false;
}

/* False: there is no room before the next generation. */
static inline bool kept__put(const struct kept_table *table, __u64 key, __u64 value)
{
	for (int i = 0; i < KEPT_TRIES; i++) {
		struct kept *slot = kept__slot(table, key, i), was = *slot;

		if (was.key == key)
			return true;
		if (kept__is_void(table, was.key, key) &&
		    pair__replace(&slot->key, was.key, was.value, key, value))
			return true;
	}
	return false;
}

#endif
