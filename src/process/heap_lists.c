// SPDX-License-Identifier: GPL-3.0-or-later
/* Reads glibc's lists of free chunks: fastbins from the arenas' struct malloc_state, and the threads'
 * tcaches (glibc's malloc/malloc.c). What is in a chunk alone does not tell that it is in a tcache:
 * when a thread ends its chunks go to fastbins with all they have, and from there to callers. */
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

/* struct tcache_perthread_struct: number and first one of the chunks of each size, by the addresses
 * of their memory. It is in a chunk, to which a thread-local variable of the C library points. */
#define TCACHE_BINS 64

struct tcache {
	__u16 counts[TCACHE_BINS];
	__u64 entries[TCACHE_BINS];
};

#define TCACHE_BYTES ((sizeof(struct tcache) + WORD + ALIGNMENT - 1) & ~(ALIGNMENT - 1ULL))
/* A thread may just be putting a chunk into a list, or taking one. */
#define MOST_CHANGING 1

/* Thread-local variables are looked for in so many pages. */
#define PAGE	  4096ULL
#define TLS_PAGES 16

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

static int add_chunk(struct heap_lists *lists, __u64 address)
{
	if (array__reserve(&lists->chunks, &lists->room, lists->n + 1, sizeof(*lists->chunks)))
		return -ENOMEM;
	lists->chunks[lists->n++] = address;
	return 0;
}

/* A list that is not one, of a process that writes what it likes, ends at the most chunks. */
static int add_fastbin(struct heap_lists *lists, __u64 address, __u64 bytes)
{
	__u64 words[2];
	int err = 0;

	while (!err && address && lists->n < lists->most &&
	       read_chunk(lists, address, bytes, words)) {
		err = add_chunk(lists, address);
		address = words[0] ^ (address + HEADER_BYTES) >> POINTER_SHIFT;
	}
	return err;
}

/* Adds the chunks of the fastbins that are described in the beginning of @range. */
static int add_fastbins(struct heap_lists *lists, const struct reach_range *range, size_t size)
{
	size_t n, at;
	__u64 *words = read_begin(lists, range, size, &n);
	int err = words ? 0 : -ENOMEM;

	at = err ? n : find_state(words, range->begin, n);
	for (size_t i = 0; at < n && i < FASTBINS && !err; i++)
		err = add_fastbin(lists, words[at + i], LEAST_CHUNK + i * ALIGNMENT);
	free(words);
	return err;
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

static bool is_tcache(const struct tcache *tcache)
{
	size_t n = 0, n_changing = 0;

	for (size_t i = 0; i < TCACHE_BINS; i++) {
		if (tcache->entries[i] % ALIGNMENT)
			return false;
		n += tcache->counts[i] != 0;
		n_changing += !tcache->counts[i] != !tcache->entries[i];
	}
	return n && n_changing <= MOST_CHANGING;
}

static int add_bin(struct heap_lists *lists, __u64 entry, __u64 bytes, size_t count)
{
	__u64 words[2];
	int err = 0;

	for (; !err && entry && count && lists->n < lists->most; count--) {
		if (!read_chunk(lists, entry - HEADER_BYTES, bytes, words) ||
		    !is_key(lists, words[1]))
			break;
		err = add_chunk(lists, entry - HEADER_BYTES);
		entry = words[0] ^ entry >> POINTER_SHIFT;
	}
	return err;
}

/* Adds the chunks of the tcache at @address, if there is one. */
static int add_tcache(struct heap_lists *lists, __u64 address)
{
	struct tcache tcache;
	__u64 words[2];
	int err = 0;

	if (!read_chunk(lists, address - HEADER_BYTES, TCACHE_BYTES, words) ||
	    pread(lists->memory, &tcache, sizeof(tcache), address) != sizeof(tcache) ||
	    !is_tcache(&tcache))
		return 0;
	for (size_t i = 0; i < TCACHE_BINS && !err; i++)
		err = add_bin(lists, tcache.entries[i], LEAST_CHUNK + i * ALIGNMENT,
			      tcache.counts[i]);
	return err;
}

/* Adds the tcache of the thread whose thread-local variables are below @end. */
static int add_thread(struct heap_lists *lists, __u64 end)
{
	__u64 words[PAGE / WORD], page = (end - 1) & ~(PAGE - 1);
	size_t before = lists->n;
	int err = 0;

	for (int i = 0; i < TLS_PAGES && !err && lists->n == before; i++, page -= PAGE) {
		if (pread(lists->memory, words, PAGE, page) != PAGE)
			continue;
		for (size_t at = PAGE / WORD; at-- > 0 && !err && lists->n == before;)
			if (page + at * WORD < end)
				err = add_tcache(lists, words[at]);
	}
	return err;
}

static int compare_addresses(const void *a, const void *b)
{
	const __u64 *first = a, *second = b;

	return *first < *second ? -1 : *first > *second;
}

int heap_lists__read(const struct reach_roots *roots, int memory, struct heap_lists *out)
{
	const struct reach_ranges *ranges = &roots->memory;
	struct heap_lists lists = { .ranges = ranges, .memory = memory };
	int err = 0;

	for (size_t i = 0; i < ranges->n; i++)
		if (ranges->ranges[i].is_heap)
			lists.most +=
				(ranges->ranges[i].end - ranges->ranges[i].begin) / LEAST_CHUNK;
	for (size_t i = 0; i < ranges->n && !err; i++) {
		const struct reach_range *range = &ranges->ranges[i];

		if (range->is_c_library)
			err = add_fastbins(&lists, range, MOST_DATA);
		else if (range->is_arena)
			err = add_fastbins(&lists, range, ARENA_HEAD);
	}
	for (size_t i = 0; i < roots->n_threads && !err; i++)
		err = add_thread(&lists, roots->threads[i]);
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

bool heap_lists__has(const struct heap_lists *lists, __u64 address)
{
	size_t at = ARRAY_LOWER_BOUND(lists->n, i, lists->chunks[i] < address);

	return at < lists->n && lists->chunks[at] == address;
}
