// SPDX-License-Identifier: GPL-3.0-or-later
/* Adds up what heaps have of a process's resident memory, and its live blocks by size class. */
#include "resident_heaps.h"

#include <errno.h>
#include <stdlib.h>

#include "profile.h"
#include "resident_memory.h"

/* glibc puts a word before each block; its chunks are multiples of 16 bytes, and at least 32. Where
 * it maps a block by itself, two words are before it at the beginning of a page. */
#define GLIBC_WORD	  8
#define GLIBC_ALIGNMENT	  16
#define GLIBC_LEAST_CHUNK 32

/* Up to so many usable bytes each multiple of 8 is a class; then there are four to a doubling. */
#define EXACT_BYTES	1024
#define EXACT_LOG	10
#define EXACT_CLASSES	(EXACT_BYTES / 8 + 1)
#define CLASSES_PER_LOG 4
#define CLASSES		(EXACT_CLASSES + (64 - EXACT_LOG) * CLASSES_PER_LOG)

struct resident_heaps {
	const struct resident_pages *memory;
	struct profile_heap *of; /* by mapping */
	__u64 *n_mapped; /* by mapping: how many of its blocks glibc has mapped by themselves */
	struct profile_size_class classes[SIZE_RULES][CLASSES];
};

struct resident_heaps *resident_heaps__new(const struct resident_pages *memory)
{
	struct resident_heaps *heaps = calloc(1, sizeof(*heaps));

	if (!heaps)
		return NULL;
	heaps->memory = memory;
	heaps->of = calloc(memory->of.n + 1, sizeof(*heaps->of));
	heaps->n_mapped = calloc(memory->of.n + 1, sizeof(*heaps->n_mapped));
	if (heaps->of && heaps->n_mapped)
		return heaps;
	resident_heaps__free(heaps);
	return NULL;
}

void resident_heaps__free(struct resident_heaps *heaps)
{
	if (!heaps)
		return;
	free(heaps->of);
	free(heaps->n_mapped);
	free(heaps);
}

static __u64 round_up(__u64 size, __u64 unit)
{
	return (size + unit - 1) / unit * unit;
}

static __u64 log2_of(__u64 size)
{
	return 63 - __builtin_clzll(size);
}

/* Returns the end of the class of @size, of those that are four to a doubling. */
static __u64 class_end(__u64 size)
{
	return round_up(size, 1ULL << (log2_of(size - 1) - 2));
}

/* Returns the bytes of the block's chunk, or of the pages that are mapped for it. */
static __u64 glibc_chunk(__u64 size, bool is_mapped)
{
	__u64 chunk = round_up(size + GLIBC_WORD, GLIBC_ALIGNMENT);

	if (is_mapped)
		return round_up(chunk + GLIBC_WORD, RESIDENT_PAGE_BYTES);
	return chunk < GLIBC_LEAST_CHUNK ? GLIBC_LEAST_CHUNK : chunk;
}

static __u64 jemalloc_usable(__u64 size)
{
	if (size <= 8)
		return 8;
	return size <= 128 ? round_up(size, 16) : class_end(size);
}

static bool is_mapped_by_glibc(const struct resident_pages *memory,
			       const struct memory_mapping *mapping, __u64 begin, __u64 size)
{
	return (mapping->kind == MEMORY_ANONYMOUS || mapping->kind == MEMORY_DATA) &&
	       !memory->of.has_jemalloc && begin % RESIDENT_PAGE_BYTES == 2 * GLIBC_WORD &&
	       size >= RESIDENT_PAGE_BYTES;
}

static void add_to_class(struct resident_heaps *heaps, enum size_rule rule, __u64 size,
			 __u64 usable)
{
	__u64 shown = usable ? usable : size ? size : 1, at;
	struct profile_size_class *to;

	if (shown > EXACT_BYTES) {
		at = EXACT_CLASSES + (log2_of(shown - 1) - EXACT_LOG) * CLASSES_PER_LOG;
		at += ((shown - 1) >> (log2_of(shown - 1) - 2)) & (CLASSES_PER_LOG - 1);
		shown = class_end(shown);
	} else {
		at = (shown + 7) / 8;
		shown = at * 8;
	}
	to = &heaps->classes[rule][at];
	to->rule = rule;
	to->most_bytes = shown;
	to->blocks++;
	to->size_bytes += size;
	to->usable_bytes += usable;
}

bool resident_heaps__add_block(struct resident_heaps *heaps, size_t at, __u64 begin, __u64 size,
			       __u64 *rounding_bytes)
{
	const struct resident_pages *memory = heaps->memory;
	const struct memory_mapping *mapping = &memory->of.mappings[at];
	bool is_mapped = is_mapped_by_glibc(memory, mapping, begin, size);
	enum size_rule rule = SIZE_RULE_UNKNOWN;
	__u64 usable = 0, taken = size;

	heaps->of[at].blocks++;
	heaps->of[at].size_bytes += size;
	heaps->n_mapped[at] += is_mapped;
	if (size <= PROFILE_MAX / 2 && (mapping->is_glibc || is_mapped)) {
		rule = SIZE_RULE_GLIBC;
		taken = glibc_chunk(size, is_mapped);
		usable = taken - (is_mapped ? 2 : 1) * GLIBC_WORD;
	} else if (size <= PROFILE_MAX / 2 && memory->of.has_jemalloc &&
		   mapping->kind == MEMORY_ANONYMOUS) {
		rule = SIZE_RULE_JEMALLOC;
		taken = usable = jemalloc_usable(size);
	}
	add_to_class(heaps, rule, size, usable);
	*rounding_bytes = taken - size;
	return !is_mapped;
}

/* Returns whether pages of a mapping may be anybody's: of a program's data, or beside blocks that glibc
 * has mapped by themselves. */
static bool is_joined(const struct resident_heaps *heaps, size_t at)
{
	return heaps->memory->of.mappings[at].kind == MEMORY_DATA ||
	       heaps->n_mapped[at] == heaps->of[at].blocks;
}

void resident_heaps__add_page(struct resident_heaps *heaps, size_t at, __u64 block_bytes,
			      __u64 slack_bytes, __u64 free_bytes)
{
	struct profile_heap *to = &heaps->of[at];

	/* The kernel joins mappings that adjoin: the others need not be an allocator's. */
	if (!block_bytes && !slack_bytes && !free_bytes && is_joined(heaps, at))
		return;
	to->resident_bytes += RESIDENT_PAGE_BYTES;
	to->block_bytes += block_bytes;
	to->slack_bytes += slack_bytes;
	to->free_bytes += free_bytes;
}

/* Returns whether the mapping is a heap, and of which kind. */
static bool find_kind(const struct resident_heaps *heaps, size_t at, struct profile_heap *heap)
{
	const struct memory_mapping *mapping = &heaps->memory->of.mappings[at];

	heap->mappings = 1;
	switch (mapping->kind) {
	case MEMORY_BREAK:
		heap->kind = mapping->is_glibc ? HEAP_MAIN : HEAP_BREAK;
		return true;
	case MEMORY_ARENA:
		heap->kind = HEAP_ARENA;
		heap->address = mapping->arena;
		return true;
	case MEMORY_ANONYMOUS:
	case MEMORY_DATA:
		heap->kind = heaps->n_mapped[at] == heap->blocks ? HEAP_MAPPED : HEAP_OTHER;
		return heap->blocks;
	default:
		return false;
	}
}

int resident_heaps__add_to_profile(struct resident_heaps *heaps, __u32 process,
				   struct profile *profile)
{
	int err = 0;

	for (size_t i = 0; i < heaps->memory->of.n && !err; i++) {
		struct profile_heap *heap = &heaps->of[i];

		heap->process = process;
		if (find_kind(heaps, i, heap) && (heap->resident_bytes || heap->blocks))
			err = profile__add_heap(profile, heap);
	}
	for (int rule = 0; rule < SIZE_RULES; rule++)
		for (size_t i = 0; i < CLASSES && !err; i++)
			if (heaps->classes[rule][i].blocks)
				err = profile__add_size_class(profile, &heaps->classes[rule][i]);
	return err;
}
