// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Has a pool whose arguments and results are in a shared mapping, and drops that page from the page table before each call
 * of the pool and before each return, as a kernel does that moves pages to swap space.
 *
 *   pool_take (where the size is, where the block is put): 40 calls, 1920 bytes
 *
 * With the argument "file" the mapping is of a file.
 */
#include <sys/mman.h>
#include "raw.h"

#ifdef __clang__
#define NOINLINE __attribute__((noinline))
#else
#define NOINLINE __attribute__((noinline, noclone))
#endif

#define CALLS	   40
#define PAGE_BYTES 4096

/* The shared page. */
struct words {
	size_t size_bytes;
	void *block;
};

void pool_take(const size_t *size_bytes, void **block);

static char room[64 << 10], *at = room;
static struct words *words;

static void drop_page(void)
{
	if (madvise(words, PAGE_BYTES, MADV_DONTNEED))
		_exit(2);
}

NOINLINE void pool_take(const size_t *size_bytes, void **block)
{
	*block = at;
	at += *size_bytes;
	drop_page();
}

int main(int argc, char **argv)
{
	int file = argc > 1 && !strcmp(argv[1], "file") ? memfd_create("words", 0) : -1;

	if (file >= 0 && ftruncate(file, PAGE_BYTES))
		return 1;
	words = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE,
		     file < 0 ? MAP_SHARED | MAP_ANONYMOUS : MAP_SHARED, file, 0);
	if (words == MAP_FAILED)
		return 1;
	for (int i = 0; i < CALLS; i++) {
		words->size_bytes = 48;
		drop_page();
		pool_take(&words->size_bytes, &words->block);
	}
	return at == room + CALLS * 48 ? 0 : 3;
}
