// SPDX-License-Identifier: GPL-3.0-or-later
/* Searches the memory of a process for pointers to blocks, from its roots on. */
#include "reach_scan.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "array.h"
#include "heap_chunks.h"
#include "pagemap.h"
#include "reach_blocks.h"
#include "reach_roots.h"

#define WORD   sizeof(__u64)
#define PAGE   4096ULL /* the unit of pagemap */
#define BUFFER (256 << 10)
/* Number of entries of pagemap that are read at once. */
#define ENTRIES 8192
/* Blocks from this size on are read only where they have pages. */
#define SPARSE_BYTES (256 << 10)

/* Blocks that are close to each other are in one segment, which has an index: the first block that
 * does not end before each INDEX_BYTES. */
#define INDEX_BYTES (64ULL << 10)
#define MOST_GAP    (1ULL << 20)

struct segment {
	__u64 begin, end;
	__u32 first, last; /* blocks */
	__u32 *index;
};

/*
 * Small blocks are read once, by ascending addresses, and their pointers kept, since a system call
 * for each block takes longer than all else. Where there is no room for more pointers the remaining
 * blocks are read when they are reached.
 */
#define POINTERS_PER_BLOCK 2
#define LEAST_POINTERS	   (1 << 20)
/* A kept pointer is a block's number, and whether it leads to the block's inside. */
#define INSIDE 1

/* Which addresses have looked like tables of virtual functions, by a hash of the address. */
#define VTABLES 1024

struct vtable {
	__u64 address;
	bool is_one;
};

struct scan {
	const struct reach_blocks *blocks;
	const struct reach_roots *roots;
	int memory, pagemap;
	struct heap_lists lists;
	__u8 *classes;
	struct reach_figures figures;
	__u64 begin, size; /* all blocks are there */
	struct segment *segments;
	size_t n_segments, segments_room;
	size_t segment;	 /* in which the last block was found */
	__u32 *pointers; /* of blocks one after the other */
	size_t n_pointers, pointers_room;
	__u32 *first_pointers; /* of each block, and behind the last one */
	size_t n_kept;	       /* blocks whose pointers were kept, if they are small */
	__u32 *found;	       /* blocks that were reached, and not read yet */
	size_t n_found, found_room;
	/* How what is being read is reached. */
	bool is_definite, only_begins;
	__u32 leader; /* the lost block from which it is reached */
	bool has_leader;
	int err;
	struct vtable vtables[VTABLES];
	__u64 words[BUFFER / WORD], entries[ENTRIES];
};

/* A block without bytes occupies its address all the same. */
static __u64 block_end(const struct reach_blocks *blocks, size_t block)
{
	return blocks->begins[block] + (blocks->sizes[block] ?: 1);
}

static int fill_index(const struct scan *scan, struct segment *segment)
{
	__u64 size = (segment->end - segment->begin) / INDEX_BYTES + 1;
	__u32 block = segment->first;

	segment->index = size > SIZE_MAX / sizeof(__u32) ? NULL : malloc(size * sizeof(__u32));
	if (!segment->index)
		return -ENOMEM;
	for (__u64 i = 0; i < size; i++) {
		while (block < segment->last &&
		       block_end(scan->blocks, block) <= segment->begin + i * INDEX_BYTES)
			block++;
		segment->index[i] = block;
	}
	return 0;
}

static int add_segment(struct scan *scan, __u32 first, __u32 last)
{
	const struct reach_blocks *blocks = scan->blocks;
	struct segment segment = {
		.begin = blocks->begins[first],
		.end = block_end(blocks, last),
		.first = first,
		.last = last,
	};
	int err;

	if (array__reserve(&scan->segments, &scan->segments_room, scan->n_segments + 1,
			   sizeof(*scan->segments)))
		return -ENOMEM;
	err = fill_index(scan, &segment);
	if (!err)
		scan->segments[scan->n_segments++] = segment;
	return err;
}

static int make_segments(struct scan *scan)
{
	const struct reach_blocks *blocks = scan->blocks;
	size_t first = 0;
	int err = 0;

	for (size_t i = 1; i <= blocks->n && !err; i++) {
		if (i < blocks->n && blocks->begins[i] - block_end(blocks, i - 1) < MOST_GAP)
			continue;
		err = add_segment(scan, first, i - 1);
		first = i;
	}
	if (!err && scan->n_segments) {
		scan->begin = scan->segments[0].begin;
		scan->size = scan->segments[scan->n_segments - 1].end - scan->begin;
	}
	return err;
}

static const struct segment *find_segment(struct scan *scan, __u64 address)
{
	const struct segment *segments = scan->segments;
	size_t at = scan->segment;

	if (address - segments[at].begin < segments[at].end - segments[at].begin)
		return &segments[at];
	at = ARRAY_LOWER_BOUND(scan->n_segments, i, segments[i].end <= address);
	if (at == scan->n_segments || address < segments[at].begin)
		return NULL;
	scan->segment = at;
	return &segments[at];
}

/* Returns the block at @address, or -1. */
static __s64 find_block(struct scan *scan, __u64 address)
{
	const struct reach_blocks *blocks = scan->blocks;
	const struct segment *segment;
	__u32 from, until;
	size_t at;

	if (address - scan->begin >= scan->size)
		return -1;
	segment = find_segment(scan, address);
	if (!segment)
		return -1;
	at = (address - segment->begin) / INDEX_BYTES;
	from = segment->index[at];
	until = segment->last;
	if ((at + 1) * INDEX_BYTES < segment->end - segment->begin)
		until = segment->index[at + 1];
	/* The last block that does not begin behind the address. */
	at = from +
	     ARRAY_LOWER_BOUND((size_t)until - from + 1, i, blocks->begins[from + i] <= address);
	if (at == from || block_end(blocks, at - 1) <= address)
		return -1;
	return at - 1;
}

static bool read_words(struct scan *scan, __u64 address, __u64 *words, size_t n)
{
	return pread(scan->memory, words, n * WORD, address) == (ssize_t)(n * WORD);
}

static bool is_in(const struct reach_ranges *ranges, __u64 address)
{
	size_t at = ARRAY_LOWER_BOUND(ranges->n, i, ranges->ranges[i].end <= address);

	return at < ranges->n && address >= ranges->ranges[at].begin;
}

#define VTABLE_WORDS	 16
#define VTABLE_FUNCTIONS 2

/* A table of virtual functions is in a file, and begins with addresses of code, at least two; pure
 * functions that nothing calls are 0. */
static bool look_for_vtable(struct scan *scan, __u64 address)
{
	__u64 words[VTABLE_WORDS];
	int n_functions = 0;

	if (!is_in(&scan->roots->files, address) ||
	    !read_words(scan, address, words, ARRAY_SIZE(words)))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (!words[i])
			continue;
		if (!is_in(&scan->roots->code, words[i]))
			return false;
		if (++n_functions == VTABLE_FUNCTIONS)
			return true;
	}
	return false;
}

static bool is_vtable(struct scan *scan, __u64 address)
{
	struct vtable *known = &scan->vtables[(address >> 3) % VTABLES];

	if (address % WORD || !address)
		return false;
	if (known->address != address)
		*known = (struct vtable){ address, look_for_vtable(scan, address) };
	return known->is_one;
}

/* Returns whether programs have a pointer to this place in the block and none to its beginning. */
static bool stands_for_begin(struct scan *scan, size_t block, __u64 pointer)
{
	__u64 begin = scan->blocks->begins[block], size = scan->blocks->sizes[block];
	__u64 offset = pointer - begin, words[2] = { 0 }, inner;

	if (size <= WORD || pointer % WORD ||
	    !read_words(scan, begin, words, size < 2 * WORD ? 1 : 2))
		return false;
	/* new T[n] puts n before the elements; some libraries put the size before a block. */
	if (offset == WORD && words[0] && (size - WORD) % words[0] == 0)
		return true;
	/* GCC's std::string before C++11: length, capacity, and a number of users. */
	if (offset == 3 * WORD && words[0] <= words[1] && words[1] == size - 3 * WORD - 1)
		return true;
	/* An object of a class with several bases has a table of functions for each. */
	return offset <= size - WORD && is_vtable(scan, words[0]) &&
	       read_words(scan, pointer, &inner, 1) && is_vtable(scan, inner);
}

static void note_found(struct scan *scan, size_t block)
{
	if (array__reserve(&scan->found, &scan->found_room, scan->n_found + 1,
			   sizeof(*scan->found)))
		scan->err = -ENOMEM;
	else
		scan->found[scan->n_found++] = block;
}

static void follow_lost(struct scan *scan, size_t block)
{
	__u8 *class = &scan->classes[block];

	if (block == scan->leader)
		return;
	/* The other lost block has been read, and what it leads to is marked. */
	if (*class == REACH_UNKNOWN)
		note_found(scan, block);
	if (*class == REACH_UNKNOWN || *class == REACH_LOST)
		*class = REACH_INDIRECT;
}

/* Follows a pointer to the block. */
static void follow_to(struct scan *scan, size_t block, __u64 pointer)
{
	bool is_begin = pointer == scan->blocks->begins[block];
	__u8 *class = &scan->classes[block];

	if (*class == REACH_REACHABLE || (scan->only_begins && !is_begin))
		return;
	if (scan->is_definite && (is_begin || stands_for_begin(scan, block, pointer)))
		*class = REACH_REACHABLE;
	else if (*class == REACH_UNKNOWN)
		*class = REACH_POSSIBLE;
	else
		return;
	note_found(scan, block);
}

static void follow_pointer(struct scan *scan, __u64 pointer)
{
	__s64 block = find_block(scan, pointer);

	if (block < 0)
		return;
	if (scan->has_leader)
		follow_lost(scan, block);
	else
		follow_to(scan, block, pointer);
}

/* Follows the words of memory that has been read. Roots are read with @skips: blocks among them are
 * left out, since a pointer has to lead there. */
static void follow_words(struct scan *scan, __u64 address, const __u64 *words, size_t n, bool skips)
{
	const struct reach_blocks *blocks = scan->blocks;
	size_t next = skips ? ARRAY_LOWER_BOUND(blocks->n, i, block_end(blocks, i) <= address)
			    : blocks->n;

	for (size_t i = 0; i < n; i++, address += WORD) {
		while (next < blocks->n && block_end(blocks, next) <= address)
			next++;
		if (next < blocks->n && blocks->begins[next] <= address)
			continue;
		if (words[i] - scan->begin < scan->size)
			follow_pointer(scan, words[i]);
	}
}

static void read_memory(struct scan *scan, __u64 begin, __u64 end, bool skips)
{
	while (begin < end && !scan->err) {
		size_t size = end - begin < BUFFER ? end - begin : BUFFER;
		ssize_t n = pread(scan->memory, scan->words, size, begin);

		if (n < (ssize_t)WORD) {
			scan->figures.unread_bytes += size;
			begin += size;
			continue;
		}
		n -= n % WORD;
		follow_words(scan, begin, scan->words, n / WORD, skips);
		scan->figures.read_bytes += n;
		begin += n;
	}
}

/* Returns whether the page may have something that was written. */
static bool has_page(__u64 entry, bool is_file)
{
	if (is_file && entry & PAGEMAP_FILE)
		return false;
	return entry & (PAGEMAP_PRESENT | PAGEMAP_SWAPPED);
}

/* Reads the pages of @range that the entries from @page on tell of. */
static void read_runs(struct scan *scan, const struct reach_range *range, __u64 page, size_t n,
		      bool skips)
{
	size_t at = 0;

	while (at < n && !scan->err) {
		size_t from = at;
		bool has = has_page(scan->entries[at], range->is_file);
		__u64 begin, end;

		while (at < n && has_page(scan->entries[at], range->is_file) == has)
			at++;
		begin = (page + from) * PAGE;
		end = (page + at) * PAGE;
		if (has)
			read_memory(scan, begin > range->begin ? begin : range->begin,
				    end < range->end ? end : range->end, skips);
	}
}

/* Reads memory where it has pages: what was never touched is 0. */
static void read_pages(struct scan *scan, const struct reach_range *range, bool skips)
{
	__u64 page = range->begin / PAGE, end = (range->end + PAGE - 1) / PAGE;

	while (page < end && !scan->err) {
		size_t most = end - page < ENTRIES ? end - page : ENTRIES;
		ssize_t n = pread(scan->pagemap, scan->entries, most * WORD, page * WORD);

		if (n < (ssize_t)WORD) {
			scan->figures.unread_bytes += (end - page) * PAGE;
			return;
		}
		n /= WORD;
		read_runs(scan, range, page, n, skips);
		page += n;
	}
}

static void read_block(struct scan *scan, size_t block)
{
	struct reach_range range = {
		.begin = (scan->blocks->begins[block] + WORD - 1) & ~(WORD - 1),
		.end = (scan->blocks->begins[block] + scan->blocks->sizes[block]) & ~(WORD - 1),
	};

	if (range.begin >= range.end)
		return;
	if (range.end - range.begin < SPARSE_BYTES)
		read_memory(scan, range.begin, range.end, false);
	else
		read_pages(scan, &range, false);
}

static bool is_small(const struct scan *scan, size_t block)
{
	return scan->blocks->sizes[block] < SPARSE_BYTES;
}

/* Keeps the pointers among the words. */
static void keep_pointers(struct scan *scan, const __u64 *words, size_t n)
{
	for (size_t i = 0; i < n && scan->n_pointers < scan->pointers_room; i++) {
		__s64 block = find_block(scan, words[i]);

		if (block >= 0)
			scan->pointers[scan->n_pointers++] =
				block << 1 | (words[i] != scan->blocks->begins[block] ? INSIDE : 0);
	}
}

/* Returns the end of the small blocks that are read together with @first: not much lies between
 * them, and they fit into the buffer. */
static size_t find_batch(const struct scan *scan, size_t first)
{
	const struct reach_blocks *blocks = scan->blocks;
	__u64 limit = blocks->begins[first] + BUFFER;
	size_t end = first + 1;

	while (end < blocks->n && is_small(scan, end) && block_end(blocks, end) <= limit &&
	       blocks->begins[end] - block_end(blocks, end - 1) < PAGE)
		end++;
	return end;
}

/* Reads blocks from @first on. Returns the first one that was not read. */
static size_t keep_blocks(struct scan *scan, size_t first)
{
	const struct reach_blocks *blocks = scan->blocks;
	__u64 begin = (blocks->begins[first] + WORD - 1) & ~(WORD - 1);
	size_t end = find_batch(scan, first), at = first;
	ssize_t n = pread(scan->memory, scan->words, block_end(blocks, end - 1) - begin, begin);

	for (; at < end; at++) {
		__u64 from = (blocks->begins[at] + WORD - 1) & ~(WORD - 1);
		__u64 until = (blocks->begins[at] + blocks->sizes[at]) & ~(WORD - 1);
		size_t size = until > from ? until - from : 0;

		if (size && (n < 0 || until - begin > (__u64)n))
			break;
		keep_pointers(scan, scan->words + (from - begin) / WORD, size / WORD);
		if (scan->n_pointers == scan->pointers_room)
			break;
		scan->figures.read_bytes += size;
		scan->first_pointers[at + 1] = scan->n_pointers;
	}
	return at;
}

/* Keeps the pointers of all small blocks, as far as there is room. */
static void keep_all(struct scan *scan)
{
	const struct reach_blocks *blocks = scan->blocks;
	size_t at = 0;

	scan->pointers_room = blocks->n * POINTERS_PER_BLOCK + LEAST_POINTERS;
	scan->pointers = malloc(scan->pointers_room * sizeof(*scan->pointers));
	scan->first_pointers = malloc((blocks->n + 1) * sizeof(*scan->first_pointers));
	if (!scan->pointers || !scan->first_pointers) {
		scan->err = -ENOMEM;
		return;
	}
	scan->first_pointers[0] = 0;
	while (at < blocks->n && scan->n_pointers < scan->pointers_room) {
		size_t next = is_small(scan, at) ? keep_blocks(scan, at) : at;

		if (next == at && scan->n_pointers < scan->pointers_room) {
			/* Large blocks are read when they are reached. */
			if (is_small(scan, at))
				scan->figures.unread_bytes += blocks->sizes[at];
			scan->first_pointers[++next] = scan->n_pointers;
		}
		at = next;
	}
	scan->n_kept = at;
}

/* Follows the pointers that were kept of the block. Returns false if the block has to be read: it
 * was not, or where within a block a pointer leads to matters. */
static bool follow_kept(struct scan *scan, size_t block)
{
	__u32 from, until;

	if (block >= scan->n_kept || !is_small(scan, block))
		return false;
	from = scan->first_pointers[block];
	until = scan->first_pointers[block + 1];
	for (__u32 i = from; i < until; i++)
		if (scan->pointers[i] & INSIDE && !scan->has_leader &&
		    scan->classes[scan->pointers[i] >> 1] != REACH_REACHABLE)
			return false;
	for (__u32 i = from; i < until; i++) {
		__u32 to = scan->pointers[i] >> 1;

		if (scan->has_leader)
			follow_lost(scan, to);
		else
			follow_to(scan, to, scan->blocks->begins[to]);
	}
	return true;
}

static void follow_found(struct scan *scan)
{
	while (scan->n_found && !scan->err) {
		__u32 block = scan->found[--scan->n_found];

		scan->is_definite = scan->classes[block] == REACH_REACHABLE;
		if (!follow_kept(scan, block))
			read_block(scan, block);
	}
}

static void follow_heap_part(void *context, const struct heap_part *part)
{
	struct scan *scan = context;
	const struct reach_range range = { .begin = part->begin, .end = part->end };

	if (scan->err)
		return;
	scan->only_begins = part->only_begins;
	if (!part->words) {
		read_pages(scan, &range, true);
		return;
	}
	follow_words(scan, part->begin, part->words, (part->end - part->begin) / WORD, false);
	scan->figures.read_bytes += part->end - part->begin;
}

static void follow_heap(struct scan *scan, const struct reach_range *heap)
{
	int err = heap_chunks__visit_used(heap, scan->blocks, &scan->lists, follow_heap_part, scan);

	if (!scan->err)
		scan->err = err;
}

static void follow_roots(struct scan *scan)
{
	const struct reach_roots *roots = scan->roots;

	scan->err = heap_lists__read(roots, scan->memory, &scan->lists);
	scan->is_definite = true;
	for (size_t i = 0; i < roots->n_words; i++)
		follow_pointer(scan, roots->words[i]);
	for (size_t i = 0; i < roots->memory.n && !scan->err; i++) {
		struct reach_range range = roots->memory.ranges[i];

		range.begin = (range.begin + WORD - 1) & ~(WORD - 1);
		range.end &= ~(WORD - 1);
		scan->only_begins = range.only_begins;
		if (range.is_heap)
			follow_heap(scan, &range);
		else
			read_pages(scan, &range, true);
	}
	scan->only_begins = false;
}

/* If blocks point to each other in a circle, the one with the lowest address counts as lost, and
 * the others count as lost indirectly. */
static void find_lost(struct scan *scan)
{
	scan->has_leader = true;
	for (size_t i = 0; i < scan->blocks->n && !scan->err; i++) {
		if (scan->classes[i] != REACH_UNKNOWN)
			continue;
		scan->classes[i] = REACH_LOST;
		scan->leader = i;
		note_found(scan, i);
		follow_found(scan);
	}
}

static void scan__release(struct scan *scan)
{
	for (size_t i = 0; i < scan->n_segments; i++)
		free(scan->segments[i].index);
	free(scan->segments);
	free(scan->pointers);
	free(scan->first_pointers);
	free(scan->found);
	heap_lists__release(&scan->lists);
	free(scan);
}

int reach_scan__run(const struct reach_blocks *blocks, const struct reach_roots *roots, int memory,
		    int pagemap, __u8 *classes, struct reach_figures *figures)
{
	struct scan *scan = calloc(1, sizeof(*scan));
	int err;

	if (!scan)
		return -ENOMEM;
	scan->blocks = blocks;
	scan->roots = roots;
	scan->memory = memory;
	scan->pagemap = pagemap;
	scan->classes = classes;
	for (size_t i = 0; i < blocks->n; i++)
		classes[i] = REACH_UNKNOWN;
	scan->err = make_segments(scan);
	if (!scan->err && scan->n_segments)
		keep_all(scan);
	if (!scan->err && scan->n_segments) {
		follow_roots(scan);
		follow_found(scan);
		find_lost(scan);
	}
	*figures = scan->figures;
	err = scan->err;
	scan__release(scan);
	return err;
}
