// SPDX-License-Identifier: GPL-3.0-or-later
/* Reads glibc's lists of free chunks: fastbins from the arenas' struct malloc_state, and what the
 * threads' tcaches have by the key that is in such chunks (glibc's malloc/malloc.c). */
#include "heap_lists.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "array.h"

#define WORD	      sizeof(__u64)
#define HEADER_BYTES  (2 * WORD)
#define FLAGS	      7ULL
#define ALIGNMENT     16
#define LEAST_CHUNK   32
#define POINTER_SHIFT 12 /* PROTECT_PTR() */

/* Words of struct malloc_state: ten fastbins, two pointers, and two words for each of 127 bins,
 * which are the address of the pair less two words if the bin is empty. The last bin always is, and
 * most others are. */
#define FASTBINS    10
#define BINS	    (FASTBINS + 2)
#define LAST_BIN    (BINS + 2 * 126)
#define STATE_WORDS (LAST_BIN + 2)
#define MOST_FULL   64

/* An arena's heap begins with struct _heap_info and struct malloc_state. */
#define ARENA_HEAD 4096
/* No C library has more data. */
#define MOST_DATA (1 << 20)
/* So many words are looked for before it is given up: there is no key. */
#define MOST_TRIES 100

static bool is_empty_bin(const __u64 *words, __u64 address, size_t at)
{
	__u64 expected = address + at * WORD - HEADER_BYTES;

	return words[at] == expected && words[at + 1] == expected;
}

/* Returns the index of struct malloc_state's fastbins among the words at @address, or @n. */
static size_t find_state(const __u64 *words, __u64 address, size_t n)
{
	/* From behind, since each empty bin looks like the last one. */
	for (size_t at = n < STATE_WORDS ? 0 : n - STATE_WORDS + 1; at-- > 0;) {
		size_t n_full = 0;

		if (!is_empty_bin(words, address, at + LAST_BIN))
			continue;
		for (size_t bin = BINS; bin < LAST_BIN; bin += 2)
			n_full += !is_empty_bin(words, address, at + bin);
		if (n_full <= MOST_FULL)
			return at;
	}
	return n;
}

/* Reads what of @range is less than @most bytes from its beginning. Returns NULL or what the caller
 * frees, with *@n words. */
static __u64 *read_begin(const struct heap_lists *lists, const struct reach_range *range,
			 size_t most, size_t *n)
{
	size_t size = range->end - range->begin < most ? range->end - range->begin : most;
	__u64 *words = malloc(size);
	ssize_t n_read = words ? pread(lists->memory, words, size, range->begin) : -1;

	*n = n_read < 0 ? 0 : n_read / WORD;
	return words;
}

static bool is_in_heap(const struct heap_lists *lists, __u64 address)
{
	const struct reach_ranges *all = lists->ranges;
	size_t at = ARRAY_LOWER_BOUND(all->n, i, all->ranges[i].end <= address);

	return at < all->n && all->ranges[at].begin <= address && all->ranges[at].is_heap;
}

/* Returns whether there is a chunk of that size, and sets @words to the first two of its memory. */
static bool read_chunk(const struct heap_lists *lists, __u64 address, __u64 bytes, __u64 *words)
{
	__u64 chunk[4];

	if (address % ALIGNMENT || !is_in_heap(lists, address) ||
	    pread(lists->memory, chunk, sizeof(chunk), address) != sizeof(chunk) ||
	    (chunk[1] & ~FLAGS) != bytes)
		return false;
	memcpy(words, &chunk[2], 2 * WORD);
	return true;
}

/* A list that is not one, of a process that writes what it likes, ends at @most chunks. */
static int add_list(struct heap_lists *lists, __u64 address, __u64 bytes, __u64 most)
{
	__u64 words[2];

	while (address && lists->n < most && read_chunk(lists, address, bytes, words)) {
		if (array__reserve(&lists->chunks, &lists->room, lists->n + 1,
				   sizeof(*lists->chunks)))
			return -ENOMEM;
		lists->chunks[lists->n++] = address;
		address = words[0] ^ (address + HEADER_BYTES) >> POINTER_SHIFT;
	}
	return 0;
}

/* Adds the chunks of the fastbins that are described in the beginning of @range. */
static int add_fastbins(struct heap_lists *lists, const struct reach_range *range, size_t size,
			__u64 most)
{
	size_t n, at;
	__u64 *words = read_begin(lists, range, size, &n);
	int err = words ? 0 : -ENOMEM;

	at = err ? n : find_state(words, range->begin, n);
	for (size_t i = 0; at < n && i < FASTBINS && !err; i++)
		err = add_list(lists, words[at + i], LEAST_CHUNK + i * ALIGNMENT, most);
	free(words);
	return err;
}

static int compare_addresses(const void *a, const void *b)
{
	const __u64 *first = a, *second = b;

	return *first < *second ? -1 : *first > *second;
}

int heap_lists__read(const struct reach_ranges *ranges, int memory, struct heap_lists *out)
{
	struct heap_lists lists = { .ranges = ranges, .memory = memory };
	__u64 most = 0;
	int err = 0;

	for (size_t i = 0; i < ranges->n; i++)
		if (ranges->ranges[i].is_heap)
			most += (ranges->ranges[i].end - ranges->ranges[i].begin) / LEAST_CHUNK;
	for (size_t i = 0; i < ranges->n && !err; i++) {
		const struct reach_range *range = &ranges->ranges[i];

		if (range->is_c_library)
			err = add_fastbins(&lists, range, MOST_DATA, most);
		else if (range->is_arena)
			err = add_fastbins(&lists, range, ARENA_HEAD, most);
	}
	if (err) {
		heap_lists__release(&lists);
		return err;
	}
	if (lists.n)
		qsort(lists.chunks, lists.n, sizeof(*lists.chunks), compare_addresses);
	*out = lists;
	return 0;
}

void heap_lists__release(struct heap_lists *lists)
{
	free(lists->chunks);
	*lists = (struct heap_lists){ 0 };
}

static bool has_word(const struct heap_lists *lists, const struct reach_range *range, __u64 word)
{
	size_t n;
	__u64 *words = read_begin(lists, range, MOST_DATA, &n);
	bool has = false;

	for (size_t i = 0; words && i < n && !has; i++)
		has = words[i] == word;
	free(words);
	return has;
}

/* The C library has the key, a random number, in its data. */
static bool is_key(struct heap_lists *lists, __u64 word)
{
	const struct reach_ranges *all = lists->ranges;

	if (lists->key || !word)
		return word && word == lists->key;
	if (lists->n_tries++ > MOST_TRIES)
		return false;
	for (size_t i = 0; i < all->n && !lists->key; i++)
		if (all->ranges[i].is_c_library && has_word(lists, &all->ranges[i], word))
			lists->key = word;
	return lists->key;
}

/* The first word of a chunk in a tcache is the address of the next one's memory XOR its own. */
static bool is_in_tcache(struct heap_lists *lists, __u64 address, __u64 bytes, const __u64 *words)
{
	__u64 next = words[0] ^ (address + HEADER_BYTES) >> POINTER_SHIFT, of_next[2];

	if (next && !read_chunk(lists, next - HEADER_BYTES, bytes, of_next))
		return false;
	return is_key(lists, words[1]);
}

bool heap_lists__has(struct heap_lists *lists, __u64 address, __u64 bytes, const __u64 *words)
{
	size_t at = ARRAY_LOWER_BOUND(lists->n, i, lists->chunks[i] < address);

	return (at < lists->n && lists->chunks[at] == address) ||
	       is_in_tcache(lists, address, bytes, words);
}
