/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Adds up what heaps have of a process's resident memory, and its live blocks by size class. */
#ifndef ALLOCPROF_RESIDENT_HEAPS_H
#define ALLOCPROF_RESIDENT_HEAPS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

struct profile;
struct resident_heaps;
struct resident_pages;

/* Returns NULL if there is no memory. @memory must outlive it. */
struct resident_heaps *resident_heaps__new(const struct resident_pages *memory);
void resident_heaps__free(struct resident_heaps *heaps);

/* Adds a live block of @size_bytes that begins at @begin, in the mapping with the index @at, and sets
 * what its allocator has of it beside these bytes, 0 where that is not known. Returns whether an
 * allocator may keep the pages around it: not those around one that it has mapped by itself. */
bool resident_heaps__add_block(struct resident_heaps *heaps, size_t at, __u64 begin,
			       __u64 size_bytes, __u64 *rounding_bytes);
/* Adds a resident page of that mapping: what of it is of live blocks, of none beside these, and of
 * the allocator without any. */
void resident_heaps__add_page(struct resident_heaps *heaps, size_t at, __u64 block_bytes,
			      __u64 slack_bytes, __u64 free_bytes);

/* Adds what was added up to the profile. Fails with -ENOMEM. */
int resident_heaps__add_to_profile(struct resident_heaps *heaps, __u32 process,
				   struct profile *profile);

#endif
