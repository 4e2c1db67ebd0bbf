// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Has a thread whose stack is a shared mapping, drops the pages of the outer frames from the page table, as a kernel does that
 * moves them to swap space or looks for accesses by other NUMA nodes, and allocates beneath them. The first access to a page
 * brings it back as it was.
 *
 *   malloc: 40 calls, 1920 bytes
 *   free: 40 calls, 0 bytes
 *
 * With the argument "file" the mapping is of a file; how long reading a page of a file takes depends on the file system.
 * Each call is beneath 20 frames of outer(), of 5,000 bytes and more each, and one of allocate(). Exit status 0.
 */
#include <pthread.h>
#include <sys/mman.h>
#include "raw.h"

DEFINE_SINK;

#define STACK_BYTES (256 << 10)
#define LEVELS	    20
#define ROUNDS	    40

static char *stack;

/* Drops the pages above this frame's, but for those at the top, which the C library uses. */
static __attribute__((noinline)) void drop_pages(void)
{
	char *from = (char *)(((unsigned long)__builtin_frame_address(0) + 8191) & ~4095UL);
	char *to = stack + STACK_BYTES - 3 * 4096;

	if (from >= to || madvise(from, to - from, MADV_DONTNEED))
		_exit(2);
}

static __attribute__((noinline)) void allocate(void)
{
	drop_pages();
	sink = malloc(48);
	free(sink);
}

static __attribute__((noinline)) int outer(int level)
{
	volatile char frame[5000];

	frame[level] = 1;
	if (level == 1)
		allocate();
	else
		outer(level - 1);
	return frame[level];
}

static void *work(void *unused)
{
	for (int i = 0; i < ROUNDS; i++)
		outer(LEVELS);
	return NULL;
}

int main(int argc, char **argv)
{
	int file = argc > 1 && !strcmp(argv[1], "file") ? memfd_create("stack", 0) : -1;
	pthread_attr_t attributes;
	pthread_t thread;

	if (file >= 0 && ftruncate(file, STACK_BYTES))
		return 1;
	stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
		     file < 0 ? MAP_SHARED | MAP_ANONYMOUS : MAP_SHARED, file, 0);
	if (stack == MAP_FAILED)
		return 1;
	pthread_attr_init(&attributes);
	pthread_attr_setstack(&attributes, stack, STACK_BYTES);
	if (pthread_create(&thread, &attributes, work, NULL))
		return 1;
	pthread_join(thread, NULL);
	return 0;
}
