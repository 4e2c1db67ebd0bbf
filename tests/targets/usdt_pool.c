// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A pool that says by USDT probes what it hands out and takes back: pool:alloc(SIZE, BLOCK), pool:free(BLOCK) and
 * pool:realloc(OLD BLOCK, SIZE, BLOCK), and by pool:many(COUNT, SIZE, BLOCK) of arrays. It makes no call of an
 * allocator. With SEMAPHORES it only looks at what to say while a probe is set.
 *
 * pool_work(N): N blocks of 48 bytes, every fourth made 96 bytes, every second given back; N arrays of 3 blocks of 7
 * bytes, which stay; and one that fails, of 1000 bytes.
 */
#ifdef SEMAPHORES
#define _SDT_HAS_SEMAPHORES 1
#endif
#include <stddef.h>
#include <stdlib.h>
#include <sys/sdt.h>

#ifdef SEMAPHORES
#define SEMAPHORE(name)                                                                            \
	__extension__ unsigned short pool_##name##_semaphore                                       \
		__attribute__((section(".probes"), visibility("hidden")))
SEMAPHORE(alloc);
SEMAPHORE(free);
SEMAPHORE(realloc);
SEMAPHORE(many);
#define IS_SET(name) __builtin_expect(*(volatile unsigned short *)&pool_##name##_semaphore, 0)
#else
#define IS_SET(name) 1
#endif

#define SLOTS	   65536
#define SLOT_BYTES 96

static char slots[SLOTS][SLOT_BYTES];
static unsigned int n_slots;

__attribute__((noinline)) void *pool_alloc(size_t size)
{
	void *block = size <= SLOT_BYTES && n_slots < SLOTS ? slots[n_slots++] : NULL;

	if (IS_SET(alloc))
		STAP_PROBE2(pool, alloc, size, block);
	return block;
}

__attribute__((noinline)) void *pool_many(unsigned int count, unsigned char size)
{
	void *block = n_slots < SLOTS ? slots[n_slots++] : NULL;

	if (IS_SET(many))
		STAP_PROBE3(pool, many, count, size, block);
	return block;
}

__attribute__((noinline)) void *pool_realloc(void *old, size_t size)
{
	void *block = n_slots < SLOTS ? slots[n_slots++] : NULL;

	if (IS_SET(realloc))
		STAP_PROBE3(pool, realloc, old, size, block);
	return block;
}

__attribute__((noinline)) void pool_free(void *block)
{
	if (IS_SET(free))
		STAP_PROBE1(pool, free, block);
}

__attribute__((noinline)) void pool_work(unsigned long n)
{
	void *block;

	for (unsigned long i = 0; i < n; i++) {
		block = pool_alloc(48);
		if (i % 4 == 0)
			block = pool_realloc(block, 96);
		if (i % 2 == 0)
			pool_free(block);
		pool_many(3, 7);
	}
	pool_alloc(1000);
	/* The call before it is no jump. */
	__asm__ volatile("");
}
