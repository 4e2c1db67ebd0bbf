/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Provides memory that this library shares with allocprof, and memory of the process alone. None
 * of it comes from the target's heap, and no locks are taken, so that signal handlers may take
 * memory, too. Also has hash tables in such memory, and caches of results of system calls.
 */
#ifndef ALLOCPROF_INSIDE_MEMORY_H
#define ALLOCPROF_INSIDE_MEMORY_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "abi.h"
#include "inside_abi.h"
#include "sys.h"

/* Maps the header of the measurement in @directory. Returns false if there is none that this
 * library can use. */
bool memory__open(const char *directory);

/* Does the same where allocprof has mapped the header, at @memory, and the first page of the
 * tables, at @tables; 0: there are none. These files have no path that the process could open. */
bool memory__adopt(__u64 memory, __u64 tables);

/* Room for the path of a file. */
#define MEMORY_PATH_BYTES (INSIDE_PATH_BYTES + 64)

/* Makes a file of this process alone, which must not exist, with the header, of at most @size_bytes.
 * Memory is taken only where the file system has room for it. Returns 0; -ENOSPC if little is free;
 * or another negative errno. If it fails, the header is the one from before. */
int memory__make(const char *path, const struct inside_settings *settings, __u64 size_bytes);

/* Returns the header; NULL before memory__open(), memory__adopt() and memory__make(). */
struct inside_header *memory__header(void);

/* Forgets the header, which is not mapped any more. */
void memory__close(void);

/* Returns zeroed shared memory, aligned to 64 bytes, and stores its offset in *@offset. NULL if
 * there is none. It is never freed. */
void *memory__take(size_t size, __u64 *offset);

/* Returns zeroed memory of this process alone, aligned to 64 bytes. NULL if there is none. It is
 * never freed. */
void *memory__take_private(size_t size);

/* Maps @size bytes of shared memory from @offset, a multiple of INSIDE_PAGE. NULL on failure. */
void *memory__map(__u64 offset, size_t size);

/* Takes @size bytes, whole pages, of what is left of the shared memory. Returns their offset; 0: there are
 * not so many, and what is left stays for smaller requests. */
__u64 memory__reserve(size_t size);

/* Takes @size bytes of shared memory, rounded up to whole pages, and maps them separately, so that
 * the caller may unmap them. NULL on failure. */
void *memory__take_pages(size_t size, __u64 *offset);

/* Has @size bytes of shared memory, whole pages, at *@published, their offset, and maps them at
 * *@mapped: if another thread of this process is faster, its pages. Returns false if there is no
 * memory. */
static inline bool memory__add_pages(void **mapped, __u64 *published, size_t size)
{
	void *pages, *none = NULL;
	__u64 offset, before = 0;

	pages = memory__take_pages(size, &offset);
	if (!pages)
		return false;
	/* Another thread may have published its pages first, and have stopped right after that:
	 * then this thread maps and uses the other's. It does not wait for the other thread, which
	 * may need this thread's processor to go on. */
	if (!__atomic_compare_exchange_n(published, &before, offset, false, __ATOMIC_RELEASE,
					 __ATOMIC_RELAXED)) {
		sys__unmap(pages, size);
		if (__atomic_load_n(mapped, __ATOMIC_ACQUIRE))
			return true;
		pages = memory__map(before, size);
	}
	if (!pages)
		return false;
	if (!__atomic_compare_exchange_n(mapped, &none, pages, false, __ATOMIC_RELEASE,
					 __ATOMIC_RELAXED))
		sys__unmap(pages, size);
	return true;
}

/* To be called in a forked child: it takes no more memory from pieces that the parent goes on
 * using. */
void memory__forget(void);

/* The chunks of a shared array at the addresses where this process has mapped them. */
struct mapped_array {
	void *chunks[INSIDE_CHUNKS];
};

/* Adds an element, stores its index in *@index and returns it. NULL if there is no room. */
void *mapped_array__add(struct mapped_array *mapped, struct inside_array *array, size_t size,
			__u32 *index);

/* Returns an element that any process has added, with an index below the array's n. NULL if it
 * cannot be mapped. */
void *mapped_array__get(struct mapped_array *mapped, const struct inside_array *array, size_t size,
			__u32 index);

/* Maps @size bytes of the file of unwind tables from @offset on, for reading. NULL on failure. */
const void *memory__map_tables(__u64 offset, size_t size);

/* Returns whether the file system of the shared memory lacked room for this process. */
bool memory__is_full(void);

/* Returns whether there was no room for so many bytes, and asking again would be in vain. Where a disk was full, it
 * may be asked again some seconds later. */
bool memory__lacks(size_t size);

/* Returns the reason under which a call is counted as lost because there was no memory. */
static inline enum ap_lost memory__lost(void)
{
	return memory__is_full() ? AP_LOST_NO_ROOM : AP_LOST_COUNTS_FULL;
}

/* Counts an event that is lost or could not be followed. */
void memory__add_gap(enum inside_gap gap);

/* Wakes allocprof, for which there is something new to read. */
void memory__wake(void);

/*
 * Waits until allocprof, which the caller has woken, writes another value than @value to @word of
 * shared memory or of the tables. May return earlier: when allocprof has done nothing for wait_ms,
 * the waits of all measured processes end.
 */
void memory__await(const __u32 *word, __u32 value);

/* Returns whether allocprof has ended: the gate says so, or nobody reads the FIFO that wakes it;
 * in this case the gate is set, too. */
bool memory__is_left(void);

/* Returns whether the measurement has ended, so that nothing is counted any more. */
static inline bool header__has_ended(const struct inside_header *header)
{
	return __atomic_load_n(&header->gate, __ATOMIC_RELAXED) == INSIDE_STOPPED;
}

/* A hash table in shared memory that one thread writes, and that grows. */

struct table {
	char *entries;
	__u32 shift; /* log2 of the room */
	__u32 n;     /* number of entries in use */
};

struct table_kind {
	size_t entry_bytes;
	/* Returns the hash of an entry in use; 0 for a free one. */
	__u64 (*hash)(const void *entry);
};

/* Makes room for one more entry. *@published is the table's offset, which allocprof reads: it
 * finds the old table or the new one, both complete. Entries have moved if this returns true and
 * table->shift has changed. Returns false if there is no room. */
bool table__reserve(struct table *table, const struct table_kind *kind, __u64 *published);

/* Return the first entry to look at for a hash, and the entry behind @entry. The table must not be
 * empty. */
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
 * A cache of results of system calls, shared by all threads without locks. The low bits of a key
 * name the generation in which the entry is valid: entries of earlier generations are void, and
 * are replaced one by one. Within a generation nothing is removed.
 */

struct kept {
	__u64 key; /* 0: free */
	__u64 value;
} __attribute__((aligned(16)));

#define KEPT_TRIES 8

/* @generation_bits: how many low bits of a key hold the generation. */
struct kept_table {
	struct kept *slots;
	__u32 shift; /* log2 of the number of slots */
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

/* The key 0, which page 0 has in one of the generations, marks a void slot. Nothing is mapped at
 * page 0, so the table never has it. */
static inline bool kept__find(const struct kept_table *table, __u64 key, __u64 *value)
{
	if (unlikely(!key))
		return false;
	for (int i = 0; i < KEPT_TRIES; i++) {
		const struct kept *slot = kept__slot(table, key, i);
		__u64 found = __atomic_load_n(&slot->key, __ATOMIC_ACQUIRE);

		if (found == key) {
			*value = __atomic_load_n(&slot->value, __ATOMIC_ACQUIRE);
			return __atomic_load_n(&slot->key, __ATOMIC_RELAXED) == key;
		}
		/* A key that is in the table is found before a void slot. */
		if (kept__is_void(table, found, key))
			return false;
	}
	return false;
}

/* Adds an entry. Returns false if the table has no room before the next generation. */
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
