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

#define WORD sizeof(__u64)
/* Small blocks are read together if less than this is between them. */
#define MOST_BETWEEN 4096
#define BUFFER	     (256 << 10)
/* Number of entries of pagemap that are read at once. */
#define ENTRIES 8192
/* Blocks from this size on are read only where they have pages. */
#define SPARSE_BYTES (256 << 10)

/* Blocks that are close to each other are in one segment, which has an index: the first block that
 * does not end before each cell of addresses. Cells are as large as a few blocks on average. */
#define LEAST_CELL_BITS 9
#define MOST_CELL_BITS	16
#define BLOCKS_IN_CELL	4
#define MOST_GAP	(1ULL << 20)

struct segment {
	__u64 begin, end;
	__u32 first, last; /* blocks */
	int cell_bits;	   /* binary logarithm of a cell's bytes */
	__u32 *index;
};

/* So many words before a word is looked up, the index and then the blocks are fetched that it needs: most of the
 * time would be waits for memory otherwise. */
#define INDEX_AHEAD  32
#define BLOCKS_AHEAD 16

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
	__u32 near[BUFFER / WORD + 1]; /* of these words, those that may be pointers to blocks */
	size_t n_near;
};

/* A block without bytes occupies its address all the same. */
static __u64 block_end(const struct reach_blocks *blocks, size_t block)
{
	return blocks->begins[block] + (blocks->sizes[block] ?: 1);
}

static int choose_cell_bits(const struct segment *segment)
{
	__u64 most = (segment->last - segment->first + 1) / BLOCKS_IN_CELL;
	int bits = LEAST_CELL_BITS;

	while (bits < MOST_CELL_BITS && (segment->end - segment->begin) >> bits > most)
		bits++;
	return bits;
}

static int fill_index(const struct scan *scan, struct segment *segment)
{
	__u32 block = segment->first;
	__u64 size;

	segment->cell_bits = choose_cell_bits(segment);
	size = ((segment->end - segment->begin) >> segment->cell_bits) + 1;
	segment->index = size > SIZE_MAX / sizeof(__u32) ? NULL : malloc(size * sizeof(__u32));
	if (!segment->index)
		return -ENOMEM;
	for (__u64 i = 0; i < size; i++) {
		while (block < segment->last &&
		       block_end(scan->blocks, block) <= segment->begin + (i << segment->cell_bits))
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
	at = (address - segment->begin) >> segment->cell_bits;
	from = segment->index[at];
	until = segment->last;
	if ((at + 1) << segment->cell_bits < segment->end - segment->begin)
		until = segment->index[at + 1];
	/* The last block that does not begin behind the address. */
	at = from +
	     ARRAY_LOWER_BOUND((size_t)until - from + 1, i, blocks->begins[from + i] <= address);
	if (at == from || block_end(blocks, at - 1) <= address)
		return -1;
	return at - 1;
}

/* Returns the entry of the index that is needed for @address, if that is where the last block was found. */
static const __u32 *find_cell(const struct scan *scan, __u64 address)
{
	const struct segment *segment = &scan->segments[scan->segment];

	return address - segment->begin < segment->end - segment->begin
		       ? &segment->index[(address - segment->begin) >> segment->cell_bits]
		       : NULL;
}

/* Has the processor fetch what find_block() needs for words behind word number @at of the near ones. */
static void look_ahead(const struct scan *scan, size_t at)
{
	const __u32 *cell = NULL;

	if (at + INDEX_AHEAD < scan->n_near)
		cell = find_cell(scan, scan->words[scan->near[at + INDEX_AHEAD]]);
	if (cell)
		__builtin_prefetch(cell);
	cell = NULL;
	if (at + BLOCKS_AHEAD < scan->n_near)
		cell = find_cell(scan, scan->words[scan->near[at + BLOCKS_AHEAD]]);
	if (cell) {
		__builtin_prefetch(&scan->blocks->begins[*cell]);
		__builtin_prefetch(&scan->blocks->sizes[*cell]);
	}
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

/* Follows a pointer to the block, which is needed only where it does not lead to its beginning. */
static void follow_to(struct scan *scan, size_t block, bool is_begin, __u64 pointer)
{
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
		follow_to(scan, block, pointer == scan->blocks->begins[block], pointer);
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
	const __u64 bytes = pagemap__page_bytes();
	size_t at = 0;

	while (at < n && !scan->err) {
		size_t from = at;
		bool has = has_page(scan->entries[at], range->is_file);
		__u64 begin, end;

		while (at < n && has_page(scan->entries[at], range->is_file) == has)
			at++;
		begin = (page + from) * bytes;
		end = (page + at) * bytes;
		if (has)
			read_memory(scan, begin > range->begin ? begin : range->begin,
				    end < range->end ? end : range->end, skips);
	}
}

/* Reads memory where it has pages: what was never touched is 0. */
static void read_pages(struct scan *scan, const struct reach_range *range, bool skips)
{
	const __u64 bytes = pagemap__page_bytes();
	__u64 page = range->begin / bytes, end = (range->end + bytes - 1) / bytes;

	while (page < end && !scan->err) {
		size_t most = end - page < ENTRIES ? end - page : ENTRIES;
		ssize_t n = pread(scan->pagemap, scan->entries, most * WORD, page * WORD);

		if (n < (ssize_t)WORD) {
			scan->figures.unread_bytes += (end - page) * bytes;
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

/* Finds the words that may be pointers to blocks, of @n that have been read. */
static void find_near(struct scan *scan, size_t n)
{
	scan->n_near = 0;
	for (size_t i = 0; i < n; i++) {
		scan->near[scan->n_near] = i;
		scan->n_near += scan->words[i] - scan->begin < scan->size;
	}
}

/* Keeps the pointers among the words @from to @until. @next: number of the first near one that was not
 * looked at. */
static void keep_pointers(struct scan *scan, size_t from, size_t until, size_t *next)
{
	for (; *next < scan->n_near && scan->near[*next] < until &&
	       scan->n_pointers < scan->pointers_room;
	     ++*next) {
		__u64 word = scan->words[scan->near[*next]];
		__s64 block;

		look_ahead(scan, *next);
		block = scan->near[*next] < from ? -1 : find_block(scan, word);
		if (block >= 0)
			scan->pointers[scan->n_pointers++] =
				block << 1 | (word != scan->blocks->begins[block] ? INSIDE : 0);
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
	       blocks->begins[end] - block_end(blocks, end - 1) < MOST_BETWEEN)
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
	size_t next = 0;

	find_near(scan, n > 0 ? n / WORD : 0);
	for (; at < end; at++) {
		__u64 from = (blocks->begins[at] + WORD - 1) & ~(WORD - 1);
		__u64 until = (blocks->begins[at] + blocks->sizes[at]) & ~(WORD - 1);
		size_t size = until > from ? until - from : 0;

		if (size && (n < 0 || until - begin > (__u64)n))
			break;
		if (size)
			keep_pointers(scan, (from - begin) / WORD, (until - begin) / WORD, &next);
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

	if (block >= scan->n_kept)
		return false;
	from = scan->first_pointers[block];
	until = scan->first_pointers[block + 1];
	if (from == until)
		return is_small(scan, block);
	for (__u32 i = from; i < until; i++) {
		__u32 to = scan->pointers[i] >> 1;

		/* It is needed next, and what follows waits for its class. */
		__builtin_prefetch(&scan->first_pointers[to]);
		if (scan->pointers[i] & INSIDE && !scan->has_leader &&
		    scan->classes[to] != REACH_REACHABLE)
			return false;
	}
	for (__u32 i = from; i < until; i++) {
		__u32 to = scan->pointers[i] >> 1;

		if (scan->has_leader)
			follow_lost(scan, to);
		else
			follow_to(scan, to, !(scan->pointers[i] & INSIDE), 0);
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
