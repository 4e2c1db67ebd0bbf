// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Has an allocator of its own, which gets memory by mmap and prints its own backtrace from within malloc
 * in each call of 999 bytes. Who changes a return address that lies on the stack changes what is
 * printed.
 *
 *   malloc: 43 calls, 3637 bytes
 *   calloc: 10 calls, 400 bytes
 *   realloc: 10 calls, 2000 bytes
 *   free: 41 calls, 0 bytes
 *
 * Makes 40 blocks of 16 bytes by malloc and frees 30 of them; 10 of 40 bytes by calloc, grown to 200 by
 * realloc and freed; 3 of 999 bytes, of which one is freed. Prints the frames, exit status 0.
 */
#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unwind.h>
#include "print_frame.h"

DEFINE_SINK;

#define ARENA_BYTES (1 << 20)

#define OWN __attribute__((noinline))

static char *arena;
static size_t used;

static _Unwind_Reason_Code print_one(struct _Unwind_Context *context, void *unused)
{
	void *pc = (void *)_Unwind_GetIP(context);

	if (pc)
		print_frame(pc);
	return _URC_NO_REASON;
}

/* Nothing is used twice; the size is in front of the block. */
static __attribute__((noinline)) void *take(size_t size)
{
	size_t *block;

	if (!arena) {
		arena = mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			     -1, 0);
		if (arena == MAP_FAILED)
			_exit(5);
	}
	if (size > ARENA_BYTES - 32 - used) {
		errno = ENOMEM;
		return NULL;
	}
	block = (size_t *)(arena + used);
	used += (size + 31) & ~(size_t)15;
	*block = size;
	return block + 2;
}

OWN void *malloc(size_t size)
{
	void *block = take(size);

	if (size == 999) {
		say("malloc\n");
		_Unwind_Backtrace(print_one, NULL);
	}
	return block;
}

OWN void free(void *block)
{
	__asm__ volatile("" : : "r"(block) : "memory");
}

OWN void *calloc(size_t n, size_t size)
{
	if (size && n > SIZE_MAX / size)
		return NULL;
	return take(n * size);
}

OWN void *realloc(void *old, size_t size)
{
	void *block = take(size);

	if (block && old)
		memcpy(block, old, ((size_t *)old)[-2] < size ? ((size_t *)old)[-2] : size);
	return block;
}

int main(void)
{
	void *blocks[40];

	for (int i = 0; i < 40; i++)
		blocks[i] = malloc(16);
	for (int i = 0; i < 30; i++)
		free(blocks[i]);
	for (int i = 0; i < 10; i++) {
		blocks[i] = calloc(10, 4);
		blocks[i] = realloc(blocks[i], 200);
		sink = blocks[i];
		free(blocks[i]);
	}
	for (int i = 0; i < 3; i++)
		blocks[i] = malloc(999);
	free(blocks[0]);
	return 0;
}
