// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "memory.h"

#include <asm/unistd.h>
#include <linux/fcntl.h>
#include <linux/mman.h>

#include "sys.h"

#define MAX_PIECES 4096
#define ALIGNMENT  64

/* Pieces of memory from which small requests are served, one after the other. */
struct pool {
	/* Index of the current piece, from 1, and the bytes of it that are taken: one word, so that
	 * threads and signals' handlers need no lock. */
	__u64 state;
	__u32 n_pieces;
	bool is_shared;
	char *pieces[MAX_PIECES];
	__u64 places[MAX_PIECES]; /* of shared ones */
};

static struct {
	struct inside_header *header;
	char path[INSIDE_PATH_BYTES + 64];
	struct pool shared, own;
} memory = { .shared.is_shared = true };

struct inside_header *memory__header(void)
{
	return memory.header;
}

static size_t header_pages(void)
{
	return (sizeof(struct inside_header) + INSIDE_PAGE - 1) & ~(size_t)(INSIDE_PAGE - 1);
}

static bool header__is_usable(const struct inside_header *header, long size)
{
	return header->magic == INSIDE_MAGIC && header->version == INSIDE_VERSION &&
	       header->header_bytes == sizeof(*header) && header->size_bytes == (__u64)size;
}

bool memory__open(const char *directory)
{
	char *stop = memory.path + sizeof(memory.path), *end;
	struct inside_header *header;
	long size;
	int fd;

	end = text__append(memory.path, stop, directory);
	end = text__append(end, stop, "/" INSIDE_MEMORY);
	if (!end)
		return false;
	fd = sys__open(memory.path, O_RDWR | O_NOFOLLOW);
	if (fd < 0)
		return false;
	size = sys__size(fd);
	if (size < (long)header_pages()) {
		sys__close(fd);
		return false;
	}
	header = sys__map(header_pages(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	sys__close(fd);
	if (!header)
		return false;
	if (!header__is_usable(header, size)) {
		sys__unmap(header, header_pages());
		return false;
	}
	/* Copies of this mapping, which all others are, are not in core files either. */
	sys(__NR_madvise, (long)header, header_pages(), MADV_DONTDUMP, 0, 0, 0);
	memory.header = header;
	return true;
}

/*
 * Another mapping of the file, without a descriptor, which programs close, and without a path, which
 * they may not reach any more: mremap(2) copies a shared mapping whose old size is given as 0. The copy
 * begins where the header does, and what is before @place is given back.
 */
static void *map_copy(__u64 place, size_t size)
{
	long address = sys(__NR_mremap, (long)memory.header, 0, place + size, MREMAP_MAYMOVE, 0, 0);

	if (address < 0 && address > -4096)
		return NULL;
	if (place)
		sys__unmap((void *)address, place);
	return (void *)(address + place);
}

static void *map_file(__u64 place, size_t size)
{
	void *address;
	int fd = sys__open(memory.path, O_RDWR | O_NOFOLLOW);

	if (fd < 0)
		return NULL;
	address = sys__map(size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, place);
	sys__close(fd);
	if (address)
		sys(__NR_madvise, (long)address, size, MADV_DONTDUMP, 0, 0, 0);
	return address;
}

void *memory__map(__u64 place, size_t size)
{
	__u64 limit = memory.header->size_bytes;
	void *address;

	if (!place || place > limit || size > limit - place || place & (INSIDE_PAGE - 1))
		return NULL;
	address = map_copy(place, size);
	/* With a limit of address space (ulimit -v) the detour may not fit. */
	return address ? address : map_file(place, size);
}

void *memory__take_pages(size_t size, __u64 *place)
{
	void *address;

	size = (size + INSIDE_PAGE - 1) & ~(size_t)(INSIDE_PAGE - 1);
	*place = __atomic_fetch_add(&memory.header->next, size, __ATOMIC_RELAXED);
	address = memory__map(*place, size);
	return address;
}

/* Small at first, since many processes are short. */
static size_t piece_bytes(__u32 index)
{
	return index <= 1 ? 64 << 10 : index <= 4 ? 256 << 10 : 1 << 20;
}

/* Maps a further piece with its first @size bytes taken, which it returns. @before is the state that
 * had no room; the new one is used by others if the state is still that. */
static char *pool__extend(struct pool *pool, __u64 before, size_t size, __u64 *place)
{
	__u32 index = __atomic_add_fetch(&pool->n_pieces, 1, __ATOMIC_RELAXED);
	__u64 at = 0;
	char *piece;

	if (index >= MAX_PIECES)
		return NULL;
	if (size > piece_bytes(index))
		return NULL;
	piece = pool->is_shared ? memory__take_pages(piece_bytes(index), &at)
				: sys__map_private(piece_bytes(index));
	if (!piece)
		return NULL;
	pool->pieces[index] = piece;
	pool->places[index] = at;
	__atomic_compare_exchange_n(&pool->state, &before, (__u64)index << 32 | size, false,
				    __ATOMIC_RELEASE, __ATOMIC_RELAXED);
	*place = at;
	return piece;
}

static void *pool__take(struct pool *pool, size_t size, __u64 *place)
{
	__u64 state = __atomic_load_n(&pool->state, __ATOMIC_ACQUIRE);

	size = (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
	for (;;) {
		__u32 index = state >> 32, used = state;

		if (!index || piece_bytes(index) - used < size)
			return pool__extend(pool, state, size, place);
		if (__atomic_compare_exchange_n(&pool->state, &state, state + size, false,
						__ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)) {
			*place = pool->places[index] + used;
			return pool->pieces[index] + used;
		}
	}
}

void *memory__take(size_t size, __u64 *place)
{
	return pool__take(&memory.shared, size, place);
}

void *memory__take_private(size_t size)
{
	__u64 place;

	return pool__take(&memory.own, size, &place);
}

/* The pieces stay mapped: the fork may have been in a signal's handler, and the code that it interrupted
 * goes on in both processes. */
void memory__forget(void)
{
	memory.shared.n_pieces = 0;
	memory.shared.state = 0;
}

void *mapped_array__add(struct mapped_array *mapped, struct inside_array *array, size_t size,
			__u32 *index)
{
	__u32 n = __atomic_fetch_add(&array->n, 1, __ATOMIC_RELAXED), chunk = 0, first = 0;
	__u64 place, none = 0;
	size_t bytes;
	char *base;

	while (chunk < INSIDE_CHUNKS && n - first >= (__u32)INSIDE_FIRST << chunk)
		first += INSIDE_FIRST << chunk++;
	if (chunk == INSIDE_CHUNKS)
		return NULL;
	base = __atomic_load_n(&mapped->chunks[chunk], __ATOMIC_ACQUIRE);
	if (!base) {
		bytes = ((INSIDE_FIRST << chunk) * size + INSIDE_PAGE - 1) &
			~(size_t)(INSIDE_PAGE - 1);
		place = __atomic_load_n(&array->chunks[chunk], __ATOMIC_ACQUIRE);
		if (!place) {
			place = __atomic_fetch_add(&memory.header->next, bytes, __ATOMIC_RELAXED);
			if (!__atomic_compare_exchange_n(&array->chunks[chunk], &none, place, false,
							 __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
				place = none;
		}
		base = memory__map(place, bytes);
		if (!base)
			return NULL;
		/* Another thread may have mapped it meanwhile: then it is mapped twice. */
		__atomic_store_n(&mapped->chunks[chunk], base, __ATOMIC_RELEASE);
	}
	*index = n;
	return base + (n - first) * size;
}
