// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * until_killed FILE SIZE: makes blocks of SIZE bytes, writes to all of each, and frees every fourth
 * one again before it makes the next, until something kills it. The first four words of FILE tell
 * at each moment how many calls of malloc it has begun and ended, and then how many of free. At the
 * end one of these may be under way, begun and not ended, and no more than one. Nothing else is
 * allocated.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include "raw.h"

DEFINE_SINK;

int main(int argc, char **argv)
{
	unsigned long size = number_or(argc > 2 ? argv[2] : NULL, 4096);
	int fd = argc > 1 ? open(argv[1], O_RDWR) : -1;
	volatile unsigned long *calls;

	calls = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (calls == MAP_FAILED)
		return 1;
	for (unsigned long n = 1;; n++) {
		calls[0]++;
		sink = malloc(size);
		calls[1]++;
		if (!sink)
			return 2;
		memset(sink, 1, size);
		if (n % 4)
			continue;
		calls[2]++;
		free(sink);
		calls[3]++;
	}
}
