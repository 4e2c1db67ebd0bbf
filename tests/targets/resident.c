// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * resident KIND: has memory of one kind, and ends by _exit(2), or waits for input with "KIND wait".
 * It first prints its Rss of smaps_rollup in bytes, and how many bytes its memory of that kind has.
 *
 *   leak      200,000 blocks of 100 bytes, evenly over 1.5 s, to which nothing points
 *   circles   the same, each two pointing to each other
 *   list      the same, in a list
 *   cache     20,000 blocks of 1,000 bytes, some of which are replaced for 1.5 s
 *   retained  60,000 blocks of 1,000 bytes, freed but for the last
 *   pinned    10,000 blocks of 100 bytes, one on each page, whose neighbours were freed
 *   mapping   40 MiB by mmap
 *   stacks    10 threads, each with 3 MiB of its stack written
 *   reserved  a block of 256 MiB, of which the first page is written
 *   huge      20 blocks of 2 MiB, in huge pages if there are any; the first byte of each is written, and it
 *             prints how many bytes of them are resident by mincore(2)
 *   fork      30 MiB in blocks; a child has written to half of them, and outlives whoever started this program
 */
#include <alloca.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MIB (1 << 20)

static unsigned long bytes;

static unsigned long rss(void)
{
	static char text[4096];
	int fd = open("/proc/self/smaps_rollup", O_RDONLY);
	ssize_t len = read(fd, text, sizeof(text) - 1);

	close(fd);
	return len > 0 ? strtoul(strstr(text, "Rss:") + 4, NULL, 10) << 10 : 0;
}

static void *filled(size_t size)
{
	return memset(malloc(size), 1, size);
}

static void *list;

static void grow(bool in_circles, bool in_list)
{
	void **before = NULL;

	for (int i = 0; i < 200000; i++, bytes += 100) {
		void **block = filled(100);

		if (in_circles && i % 2) {
			block[0] = before;
			before[0] = block;
		}
		if (in_list) {
			block[0] = list;
			list = block;
		}
		before = block;
		if (i % 2000 == 1999)
			usleep(15000);
	}
}

static void leak(void)
{
	grow(false, false);
}

static void circles(void)
{
	grow(true, false);
}

static void in_list(void)
{
	grow(false, true);
}

static void cache(void)
{
	static void *entries[20000];

	for (int i = 0; i < 20000; i++, bytes += 1000)
		entries[i] = filled(1000);
	for (int round = 0; round < 100; round++) {
		for (int i = 0; i < 100; i++) {
			int at = (round * 7919 + i * 104729) % 20000;

			free(entries[at]);
			entries[at] = filled(1000);
		}
		usleep(15000);
	}
}

static void retained(void)
{
	static void *blocks[60000];

	for (int i = 0; i < 60000; i++)
		blocks[i] = filled(1000);
	for (int i = 0; i < 59999; i++, bytes += 1000)
		free(blocks[i]);
}

static void pinned(void)
{
	static void *others[10000];

	for (int i = 0; i < 10000; i++, bytes += 3960) {
		filled(100);
		others[i] = filled(3960);
	}
	for (int i = 0; i < 10000; i++)
		free(others[i]);
}

static void mapping(void)
{
	bytes = 40 * MIB;
	memset(mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 1,
	       bytes);
}

static pthread_barrier_t barrier;

static void *use_stack(void *unused)
{
	volatile char *place = alloca(3 * MIB);

	for (size_t i = 0; i < 3 * MIB; i += 1024)
		place[i] = 1;
	pthread_barrier_wait(&barrier);
	pause();
	return NULL;
}

static void stacks(void)
{
	pthread_t thread;

	pthread_barrier_init(&barrier, NULL, 11);
	for (int i = 0; i < 10; i++, bytes += 3 * MIB)
		pthread_create(&thread, NULL, use_stack, NULL);
	pthread_barrier_wait(&barrier);
}

static void reserved(void)
{
	bytes = 256 * MIB;
	*(volatile char *)malloc(bytes) = 1;
}

static void huge(void)
{
	static unsigned char pages[2 * MIB / 4096];

	for (int i = 0; i < 20; i++) {
		void *block;

		if (posix_memalign(&block, 2 * MIB, 2 * MIB))
			abort();
		madvise(block, 2 * MIB, MADV_HUGEPAGE);
		*(volatile char *)block = 1;
		if (mincore(block, 2 * MIB, pages))
			abort();
		for (size_t page = 0; page < sizeof(pages); page++)
			bytes += pages[page] & 1 ? 4096 : 0;
	}
}

static void forked(void)
{
	static char *blocks[30];
	pid_t recorder = getppid();
	int ready[2];
	char byte;

	for (int i = 0; i < 30; i++)
		blocks[i] = filled(MIB);
	bytes = 15 * MIB;
	if (pipe(ready))
		abort();
	if (!fork()) {
		for (int i = 0; i < 15; i++)
			memset(blocks[i], 2, MIB);
		close(1);
		close(2);
		if (write(ready[1], "r", 1) != 1)
			abort();
		while (!kill(recorder, 0) || errno == EPERM)
			usleep(10000);
		_exit(0);
	}
	if (read(ready[0], &byte, 1) != 1)
		abort();
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} kinds[] = {
		{ "leak", leak },	{ "circles", circles },	  { "list", in_list },
		{ "cache", cache },	{ "retained", retained }, { "pinned", pinned },
		{ "mapping", mapping }, { "stacks", stacks },	  { "reserved", reserved },
		{ "huge", huge },	{ "fork", forked },
	};
	char line[64];
	int len;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]) && argc > 1; i++)
		if (!strcmp(argv[1], kinds[i].name))
			kinds[i].run();
	/* The pages that these calls need are counted, too. */
	len = snprintf(line, sizeof(line), "%lu %lu\n", rss(), bytes);
	if (write(-1, line, len) == len)
		return 1;
	len = snprintf(line, sizeof(line), "%lu %lu\n", rss(), bytes);
	if (write(1, line, len) != len)
		return 1;
	if (argc > 2)
		(void)!read(0, line, 1);
	_exit(0);
}
