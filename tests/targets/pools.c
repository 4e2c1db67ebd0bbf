// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Pools of a program's own, for tests that define them. Each call that the program makes, of which the bytes are what
 * it asks for:
 *
 *   pool_get: 1000 of 64 bytes; pool_zget, which calls pool_get: 500 of 32 bytes
 *   pool_array (count, size): 40 of 3 * 16 bytes
 *   pool_into (where the block is put, size): 30 of 24 bytes, 10 more fail
 *   pool_grow: 200, of a block of 16 bytes each, from pool_get, to 128 bytes
 *   pool_put: 1000 of pool_get's first blocks, by pool_drop (pointer to the pointer): 200
 *   malloc of the program's own: 7 of 10 bytes, 7 free
 *
 * Beneath: malloc of 4096 bytes, 5 by pool_log, a static function of pool_get, and 200 by pool_wrap, which ends in a
 * jump to malloc. 3 calls of pool_fail are left by longjmp, after each of which the program calls malloc(11).
 *
 * pool_zero ends in a jump to memset; it is not called.
 *
 * Prints how often malloc was called beneath a pool: "beneath=N".
 */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef __clang__
#define NOINLINE __attribute__((noinline))
#else
#define NOINLINE __attribute__((noinline, noclone))
#endif

void *pool_get(size_t size);
void *pool_zget(size_t size);
void *pool_zero(size_t size);
void *pool_array(size_t count, size_t size);
int pool_into(void **block, size_t size);
void *pool_grow(void *block, size_t size);
void pool_put(void *block);
void pool_drop(void **block);
void *pool_wrap(size_t size);
void *pool_fail(size_t size);

static char room[1 << 20], *at = room;
static int n_beneath;
static jmp_buf back;

static NOINLINE void pool_log(void)
{
	static int n;

	if (++n % 340 == 0) {
		n_beneath++;
		free(malloc(4096));
	}
}

NOINLINE void *pool_get(size_t size)
{
	void *block = at;

	at += (size + 15) & ~(size_t)15;
	pool_log();
	return block;
}

NOINLINE void *pool_zget(size_t size)
{
	char *block = memset(pool_get(size), 0, size);

	*(volatile char *)block = 1;
	return block;
}

NOINLINE void *pool_zero(size_t size)
{
	return memset(at, 0, size);
}

NOINLINE void *pool_array(size_t count, size_t size)
{
	char *block = at;

	at += count * size;
	*(volatile char *)block = 1;
	return block;
}

NOINLINE int pool_into(void **block, size_t size)
{
	if (size > sizeof(room)) {
		*block = NULL;
		return -1;
	}
	*block = at;
	at += size + 8;
	return 0;
}

NOINLINE void *pool_grow(void *block, size_t size)
{
	char *grown = at;

	at += size;
	memcpy(grown, block, 16);
	return grown;
}

NOINLINE void pool_put(void *block)
{
	*(volatile char *)block = 2;
}

NOINLINE void pool_drop(void **block)
{
	*(volatile char *)*block = 3;
	*block = NULL;
}

NOINLINE void *pool_wrap(size_t size)
{
	n_beneath++;
	return malloc(size);
}

NOINLINE void *pool_fail(size_t size)
{
	if (size)
		longjmp(back, 1);
	return NULL;
}

static NOINLINE void fail(void)
{
	pool_fail(100);
	_exit(5);
}

int main(void)
{
	static void *blocks[200];
	static volatile int i;
	void *block;
	char text[32];

	for (i = 0; i < 1000; i++)
		pool_put(pool_get(64));
	for (i = 0; i < 500; i++)
		pool_zget(32);
	for (i = 0; i < 40; i++)
		pool_array(3, 16);
	for (i = 0; i < 40; i++)
		pool_into(&block, i < 30 ? 24 : sizeof(room) + 1);
	for (i = 0; i < 200; i++) {
		blocks[i] = pool_grow(pool_get(16), 128);
		pool_drop(&blocks[i]);
	}
	for (i = 0; i < 200; i++)
		pool_wrap(40);
	for (i = 0; i < 3; i++) {
		if (!setjmp(back))
			fail();
		free(malloc(11));
	}
	for (i = 0; i < 7; i++)
		free(malloc(10));
	if (write(1, text, snprintf(text, sizeof(text), "beneath=%d\n", n_beneath)) < 0)
		return 4;
	return 0;
}
