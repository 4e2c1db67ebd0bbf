// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Calls every function of the allocator a number of times of its own. Above start-up:
 *
 *   malloc: 133 calls, 3348 bytes
 *   calloc: 213 calls, 25320 bytes
 *   realloc: 112 calls, 8504 bytes, 42 fresh of 1928 bytes, 17 released
 *   reallocarray: 82 calls, 6720 bytes, 46 fresh of 3320 bytes, 5 released
 *   posix_memalign: 51 calls, 1530 bytes
 *   aligned_alloc: 60 calls, 3840 bytes
 *   memalign: 58 calls, 5800 bytes
 *   valloc: 7 calls, 700 bytes
 *   pvalloc: 5 calls, 500 bytes
 *   free: 607 calls, 0 bytes, 23 null
 *
 * Failing among them: 3 malloc and 2 realloc of 2^60 bytes each, which are in no sum, 2 calloc and 3 reallocarray whose
 * product overflows, 4 posix_memalign with a bad alignment.
 *
 * The argument "asprintf" adds 7 calls of asprintf and 7 of free; asprintf allocates as the C
 * library likes. Prints "done", exit status 3; 4 where a call answered as it should not.
 */
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include "raw.h"

DEFINE_SINK;

#define HUGE   ((size_t)1 << 60)
#define BLOCKS 256

static void *blocks[BLOCKS];
static size_t used;

static void keep(void *block)
{
	if (!block || used == BLOCKS) {
		say("unexpected answer\n");
		_exit(4);
	}
	blocks[used++] = block;
}

static void free_all(void)
{
	while (used)
		free(blocks[--used]);
}

static void refuse(const void *block)
{
	if (block) {
		say("unexpected success\n");
		_exit(4);
	}
}

/* Both are tail calls: two functions of the allocator get the same stack pointer and return
 * address, as if one had jumped to the other. */
static __attribute__((noinline)) void *xrealloc(void *block, size_t size)
{
	return block ? realloc(block, size) : malloc(size);
}

static __attribute__((noinline)) void *choose(int fresh_by_realloc, size_t size)
{
	return fresh_by_realloc ? realloc(NULL, size) : malloc(size);
}

static __attribute__((noinline)) void *twin(void *block, size_t n, int array)
{
	return array ? reallocarray(block, n, 10) : realloc(block, n * 10);
}

/* realloc(NULL) jumps to malloc inside the C library; the malloc that follows from the same place
 * is the application's. */
static void realloc_then_malloc(void)
{
	for (volatile int i = 0; i < 11; i++)
		for (volatile int j = 1; j >= 0; j--)
			keep(choose(j, j ? 40 : 56));
	free_all();
}

/* reallocarray jumps to realloc inside the C library; the realloc that follows with the same block,
 * size, stack pointer and return address is the application's. */
static void array_then_realloc(void)
{
	for (volatile int i = 0; i < 9; i++) {
		void *block = NULL;

		for (volatile int j = 0; j < 3; j++)
			block = twin(block, 4, j != 1);
		keep(block);
	}
	free_all();
}

static void one_place_for_malloc_and_realloc(void)
{
	for (volatile int i = 0; i < 13; i++) {
		void *block = NULL;

		for (volatile int j = 1; j <= 2; j++)
			block = xrealloc(block, j * 16);
		keep(block);
	}
	free_all();
}

static void mallocs(void)
{
	for (int i = 0; i < 101; i++)
		keep(malloc(24));
	for (int i = 0; i < 3; i++)
		refuse(malloc(HUGE));
	for (int i = 0; i < 5; i++)
		keep(strdup("nineteen characters"));
	free_all();
}

static void callocs(void)
{
	for (int i = 0; i < 211; i++)
		keep(calloc(3, 40));
	for (int i = 0; i < 2; i++)
		refuse(calloc(SIZE_MAX / 2, 3));
	free_all();
}

static void reallocs(void)
{
	for (int i = 0; i < 31; i++)
		keep(realloc(NULL, 48));
	for (int i = 0; i < 29; i++)
		blocks[i] = realloc(blocks[i], 200);
	for (int i = 0; i < 2; i++)
		refuse(realloc(blocks[i], HUGE));
	for (int i = 0; i < 17; i++)
		refuse(realloc(blocks[--used], 0));
	free_all();
}

static void reallocarrays(void)
{
	for (int i = 0; i < 37; i++)
		keep(reallocarray(NULL, 5, 16));
	for (int i = 0; i < 19; i++)
		blocks[i] = reallocarray(blocks[i], 10, 16);
	for (int i = 0; i < 3; i++)
		refuse(reallocarray(blocks[i], SIZE_MAX / 2, 3));
	for (int i = 0; i < 5; i++)
		refuse(reallocarray(blocks[--used], 0, 8));
	free_all();
}

static void aligned(void)
{
	void *block;

	for (int i = 0; i < 41 + 6; i++) {
		if (posix_memalign(&block, i < 41 ? 64 : 16, 30))
			block = NULL;
		keep(block);
	}
	for (int i = 0; i < 4; i++)
		refuse(posix_memalign(&block, 3, 30) ? NULL : block);
	for (int i = 0; i < 43 + 9 + 8; i++)
		keep(aligned_alloc(i < 43 ? 64 : i < 43 + 9 ? 16 : 8, 64));
	for (int i = 0; i < 47 + 11; i++)
		keep(memalign(i < 47 ? 128 : 8, 100));
	for (int i = 0; i < 7; i++)
		keep(valloc(100));
	for (int i = 0; i < 5; i++)
		keep(pvalloc(100));
	free_all();
}

static void asprintfs(void)
{
	for (int i = 0; i < 7; i++) {
		char *text;

		if (asprintf(&text, "%d of %s", i, "seven") < 0)
			text = NULL;
		keep(text);
	}
	free_all();
}

int main(int argc, char **argv)
{
	mallocs();
	callocs();
	reallocs();
	reallocarrays();
	aligned();
	one_place_for_malloc_and_realloc();
	realloc_then_malloc();
	array_then_realloc();
	for (int i = 0; i < 23; i++)
		free(NULL);
	if (argc > 1 && !strcmp(argv[1], "asprintf"))
		asprintfs();
	say("done\n");
	return 3;
}
