/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory of this library: shared with allocprof, and of the process alone. None of it comes from the
 * target's heap. No locks, so that signals' handlers may take memory, too.
 */
#ifndef ALLOCPROF_INSIDE_MEMORY_H
#define ALLOCPROF_INSIDE_MEMORY_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "abi.h"
#include "inside_abi.h"

/* Maps the header of the measurement in @directory. False if there is none that this library can use. */
bool memory__open(const char *directory);

/* The header; NULL before memory__open(). */
struct inside_header *memory__header(void);

/* Zeroed shared memory, aligned to 64 bytes, and its place. NULL if there is none. */
void *memory__take(size_t size, __u64 *place);

/* Zeroed memory of this process alone, aligned to 64 bytes. NULL if there is none. */
void *memory__take_private(size_t size);

/* Maps @size bytes of shared memory from @place, a multiple of INSIDE_PAGE. NULL on failure. */
void *memory__map(__u64 place, size_t size);

/* Takes and maps shared memory of its own, a number of pages. NULL on failure. */
void *memory__take_pages(size_t size, __u64 *place);

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

/* Maps @size bytes from @place of the file of unwind tables, for reading. NULL on failure. */
const void *memory__map_tables(__u64 place, size_t size);

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

#endif
