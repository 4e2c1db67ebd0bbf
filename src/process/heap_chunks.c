// SPDX-License-Identifier: GPL-3.0-or-later
/* Walks the chunks of glibc's heaps by their headers (glibc's malloc/malloc.c, struct
 * malloc_chunk). */
#include "heap_chunks.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "array.h"
#include "heap_lists.h"

#define WORD   sizeof(__u64)
#define WINDOW (256 << 10) /* bytes that are read at once */

/* The words of a chunk: the size of the chunk before it, if that one is free; its own size; and the
 * program's memory, which goes on over the next chunk's first word. */
#define PREVIOUS_SIZE 0
#define SIZE	      1
#define MEMORY	      2
#define MEMORY_BYTES  (MEMORY * WORD)

/* The lowest bits of a chunk's size. */
#define PREVIOUS_IN_USE 1ULL
#define IS_MAPPED	2ULL
#define NOT_MAIN_ARENA	4ULL
#define FLAGS		7ULL

#define ALIGNMENT   16
#define LEAST_CHUNK 32
#define SPLITS_FROM 32 /* what remains of a chunk becomes one from this size on */
#define FENCEPOST   16 /* size of the two chunks that end a heap that cannot grow any more */

/* A heap begins with struct _heap_info, behind which the first one of an arena has its struct
 * malloc_state; together they have less than this. */
#define LEAST_ARENA_HEAD 32
#define MOST_ARENA_HEAD	 4096
/* Index of the word of struct _heap_info that has the size in use. */
#define HEAP_INFO_SIZE 2
/* So many chunks one after the other are none by accident. */
#define ENOUGH_CHUNKS 16

struct heap {
	const struct reach_range *range;
	const struct heap_lists *lists;
	const struct reach_blocks *blocks;
	int memory;
	__u64 end;	/* where the last chunk ends */
	__u64 no_flags; /* those that no chunk has */
	size_t block;	/* the first one that does not end before the walk's position */
	heap_visit_fn visit;
	void *context;
	__u64 window_begin;
	size_t window_words;
	__u64 window[WINDOW / WORD];
};

static const __u64 *find_in_window(const struct heap *heap, __u64 address, size_t n)
{
	__u64 at = (address - heap->window_begin) / WORD;

	if (address < heap->window_begin || at >= heap->window_words || heap->window_words - at < n)
		return NULL;
	return &heap->window[at];
}

/* Returns @n words at @address, or NULL if they cannot be read. They stay until the next call. */
static const __u64 *words_at(struct heap *heap, __u64 address, size_t n)
{
	const __u64 *words = find_in_window(heap, address, n);
	__u64 size = heap->range->end - address;
	ssize_t n_read;

	if (words || n > WINDOW / WORD || size < n * WORD)
		return words;
	n_read = pread(heap->memory, heap->window, size < WINDOW ? size : WINDOW, address);
	heap->window_begin = address;
	heap->window_words = n_read < 0 ? 0 : n_read / WORD;
	return find_in_window(heap, address, n);
}

/* Returns whether @size, from a header, is that of a chunk at @address that ends at @limit or
 * before. */
static bool is_chunk(const struct heap *heap, __u64 address, __u64 size, __u64 limit)
{
	__u64 bytes = size & ~FLAGS;

	return bytes >= FENCEPOST && bytes % ALIGNMENT == 0 && address < limit &&
	       bytes <= limit - address && !(size & heap->no_flags);
}

static bool is_free(struct heap *heap, __u64 address, __u64 bytes)
{
	const __u64 *next;

	if (address + bytes == heap->end)
		return true; /* the top, from which chunks are cut */
	if (heap_lists__has(heap->lists, address))
		return true;
	next = words_at(heap, address + bytes, MEMORY);
	return next && !(next[SIZE] & PREVIOUS_IN_USE) && next[PREVIOUS_SIZE] == bytes;
}

static void visit_unread(struct heap *heap, __u64 begin, __u64 end, bool only_begins)
{
	const struct heap_part part = {
		.begin = (begin + WORD - 1) & ~(WORD - 1),
		.end = end & ~(WORD - 1),
		.only_begins = only_begins,
	};

	if (part.begin < part.end)
		heap->visit(heap->context, &part);
}

/* Visits a chunk that is in use, with the next chunk's first word. */
static void visit_chunk(struct heap *heap, __u64 address, __u64 bytes)
{
	struct heap_part part = {
		.begin = address + MEMORY_BYTES,
		.end = address + bytes + WORD,
	};

	if (part.end > heap->range->end)
		part.end = heap->range->end;
	if (part.begin >= part.end)
		return;
	part.words = words_at(heap, part.begin, (part.end - part.begin) / WORD);
	heap->visit(heap->context, &part);
}

/* Returns the address of the header of the next block, or where the last chunk ends. */
static __u64 find_limit(struct heap *heap, __u64 address)
{
	const struct reach_blocks *blocks = heap->blocks;

	while (heap->block < blocks->n && blocks->begins[heap->block] < address + MEMORY_BYTES)
		heap->block++;
	if (heap->block == blocks->n || blocks->begins[heap->block] - MEMORY_BYTES >= heap->end)
		return heap->end;
	return blocks->begins[heap->block] - MEMORY_BYTES;
}

/* Walks to the header of the next block, and visits the rest where chunks do not lead there. */
static void walk_to(struct heap *heap, __u64 address, __u64 limit)
{
	while (address < limit) {
		const __u64 *words = words_at(heap, address, MEMORY);
		__u64 size = words ? words[SIZE] : 0, bytes = size & ~FLAGS;

		if (!words || !is_chunk(heap, address, size, limit)) {
			visit_unread(heap, address, limit, false);
			return;
		}
		if (!is_free(heap, address, bytes))
			visit_chunk(heap, address, bytes);
		address += bytes;
	}
}

/* Returns the size of the chunk of a block with its header at @address, or 0: that is none, or it
 * has room for more than the block, which something else may use. */
static __u64 chunk_of_block(struct heap *heap, __u64 address, __u64 size)
{
	const __u64 *words = words_at(heap, address, MEMORY);
	__u64 bytes = words ? words[SIZE] & ~FLAGS : 0;
	__u64 least = (size + WORD + ALIGNMENT - 1) & ~(__u64)(ALIGNMENT - 1);

	if (least < LEAST_CHUNK)
		least = LEAST_CHUNK;
	if (!words || address % ALIGNMENT || !is_chunk(heap, address, words[SIZE], heap->end) ||
	    bytes < least || bytes > least + SPLITS_FROM)
		return 0;
	return bytes;
}

/* Passes the block with its header at @address. Returns where the walk goes on; *@is_header: there
 * is a chunk's header. */
static __u64 pass_block(struct heap *heap, __u64 address, bool *is_header)
{
	__u64 size = heap->blocks->sizes[heap->block];
	__u64 bytes = chunk_of_block(heap, address, size);

	heap->block++;
	*is_header = bytes;
	return bytes ? address + bytes : address + MEMORY_BYTES + (size ?: 1);
}

/* Returns whether chunks begin at @address. */
static bool begins_chunks(struct heap *heap, __u64 address, __u64 limit)
{
	for (int i = 0; i < ENOUGH_CHUNKS && address < limit; i++) {
		const __u64 *words = find_in_window(heap, address, MEMORY);
		__u64 size = words ? words[SIZE] : 0;

		if (!is_chunk(heap, address, size, limit))
			return false;
		address += size & ~FLAGS;
	}
	return true;
}

/* Visits what is at the beginning of an arena's heap, and returns where its chunks begin. */
static __u64 pass_arena_head(struct heap *heap, bool *is_header)
{
	const __u64 *words = words_at(heap, heap->range->begin, MOST_ARENA_HEAD / WORD);
	__u64 begin = heap->range->begin, limit, head = LEAST_ARENA_HEAD;

	heap->no_flags = IS_MAPPED;
	if (words && words[HEAP_INFO_SIZE] <= heap->end - begin)
		heap->end = begin + words[HEAP_INFO_SIZE];
	limit = find_limit(heap, begin + head);
	while (head < MOST_ARENA_HEAD && begin + head < limit &&
	       !begins_chunks(heap, begin + head, limit))
		head += ALIGNMENT;
	*is_header = head < MOST_ARENA_HEAD && begin + head < limit;
	if (!*is_header)
		head = limit - begin;
	visit_unread(heap, begin, begin + head, true);
	return begin + head;
}

static void walk(struct heap *heap)
{
	const struct reach_range *range = heap->range;
	__u64 address = range->begin;
	bool is_header = true;

	heap->block = ARRAY_LOWER_BOUND(heap->blocks->n, i,
					heap->blocks->begins[i] < range->begin + MEMORY_BYTES);
	if (range->is_arena)
		address = pass_arena_head(heap, &is_header);
	while (address < heap->end) {
		__u64 limit = find_limit(heap, address);

		if (is_header && address < limit)
			walk_to(heap, address, limit);
		else
			visit_unread(heap, address, limit, false);
		address = limit;
		if (limit < heap->end)
			address = pass_block(heap, limit, &is_header);
	}
	visit_unread(heap, heap->end, range->end, false);
}

int heap_chunks__visit_used(const struct reach_range *range, const struct reach_blocks *blocks,
			    const struct heap_lists *lists, heap_visit_fn visit, void *context)
{
	struct heap *heap = calloc(1, sizeof(*heap));

	if (!heap)
		return -ENOMEM;
	*heap = (struct heap){
		.range = range,
		.lists = lists,
		.blocks = blocks,
		.memory = lists->memory,
		.end = range->end,
		.no_flags = IS_MAPPED | NOT_MAIN_ARENA,
		.visit = visit,
		.context = context,
	};
	walk(heap);
	free(heap);
	return 0;
}
