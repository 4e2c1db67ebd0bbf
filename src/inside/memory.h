/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory of this library: shared with allocprof, and of the process alone. None of it comes from the
 * target's heap. No locks, so that signals' handlers may take memory, too. Also tables
 * in such memory, and what is kept of the answers of system calls.
 */
#ifndef ALLOCPROF_INSIDE_MEMORY_H
#define ALLOCPROF_INSIDE_MEMORY_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "abi.h"
#include "inside_abi.h"
#include "sys.h"

/* Maps the header of the measurement in @directory. False if there is none that this library can use. */
bool memory__open(const char *directory);

/* The same where allocprof has mapped the header, at @memory, and the first page of the tables; 0: none. The files have no path. */
bool memory__adopt(__u64 memory, __u64 tables);

/* The header; NULL before memory__open() and memory__adopt(). */
struct inside_header *memory__header(void);

/* There is no header any more. */
void memory__close(void);

/* Zeroed shared memory, aligned to 64 bytes, and its offset. NULL if there is none. */
void *memory__take(size_t size, __u64 *offset);

/* Zeroed memory of this process alone, aligned to 64 bytes. NULL if there is none. */
void *memory__take_private(size_t size);

/* Maps @size bytes of shared memory from @offset, a multiple of INSIDE_PAGE. NULL on failure. */
void *memory__map(__u64 offset, size_t size);

/* Takes and maps shared memory of its own, a number of pages. NULL on failure. */
void *memory__take_pages(size_t size, __u64 *offset);

/* In a forked child: what the parent goes on writing is not used any more. */
void memory__forget(void);

/* The chunks of an array as this process has them mapped. */
struct mapped_array {
	void *chunks[INSIDE_CHUNKS];
};

/* A new element and its index. NULL if there is no room. */
void *mapped_array__add(struct mapped_array *mapped, struct inside_array *array, size_t size,
			__u32 *index);

/* An element that was added by whatever process, below the array's n. NULL if it cannot be mapped. */
void *mapped_array__get(struct mapped_array *mapped, const struct inside_array *array, size_t size,
			__u32 index);

/* Maps @size bytes from @offset of the file of unwind tables, for reading. NULL on failure. */
const void *memory__map_tables(__u64 offset, size_t size);

/* Whether the file system of the shared memory had no room for what this process needed. */
bool memory__is_full(void);

/* Why a call is lost for which there was no memory. */
static inline enum ap_lost memory__lost(void)
{
	return memory__is_full() ? AP_LOST_NO_ROOM : AP_LOST_COUNTS_FULL;
}

/* Counts events that are lost or could not be followed. */
void memory__add_gap(enum inside_gap gap);

/* Wakes allocprof, which has something new to read. */
void memory__wake(void);

/*
 * Waits until allocprof, which has been woken, writes another value than @value to @word of shared memory or of the tables. It may
 * return before: all waits of the measurement's processes together end when allocprof has done nothing for wait_ms.
 */
void memory__await(const __u32 *word, __u32 value);

/* Whether allocprof has left, by the gate, or because nobody reads what wakes it: then the gate says so from now on. */
bool memory__is_left(void);

/* Whether nothing is counted any more, so that nothing begins. */
static inline bool header__has_ended(const struct inside_header *header)
{
	return __atomic_load_n(&header->gate, __ATOMIC_RELAXED) == INSIDE_STOPPED;
}

/* A hash table in shared memory that one thread writes, and that grows. */

struct table {
	char *entries;
	__u32 shift; /* log2 of the room */
	__u32 n;     /* entries in use */
};

struct table_kind {
	size_t entry_bytes;
	/* Hash of an entry in use; 0 for a free one. */
	__u64 (*hash)(const void *entry);
};

/* Makes room for one more entry. *@published is the offset that allocprof reads; it sees the table as it was
 * before or as it is now. Entries move if that returns true and table->shift has changed. False: no room. */
bool table__reserve(struct table *table, const struct table_kind *kind, __u64 *published);

/* The first entry to look at for a hash, and the one behind @entry. The table has entries. */
static inline void *table__first(const struct table *table, size_t entry_bytes, __u64 hash)
{
	return table->entries + (hash & ((1ULL << table->shift) - 1)) * entry_bytes;
}

static inline void *table__next(const struct table *table, size_t entry_bytes, const void *entry)
{
	char *next = (char *)entry + entry_bytes;

	return next == table->entries + (entry_bytes << table->shift) ? table->entries : next;
}

/*
 * A table of what was found out by system calls, for all threads, without locks. The low bits of a key say for which generation
 * it holds: with the next one all of it is void, and is replaced bit by bit. Within a generation nothing is removed.
 */

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
