// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Prints its own backtrace from several depths between allocations, as names and distances that do
 * not depend on where things are loaded. Above start-up, without what backtrace() needs to load the
 * unwinder:
 *
 *   malloc: 40 calls, 1280 bytes
 *   free: 40 calls, 0 bytes
 *
 * Prints the frames, exit status 0.
 */
#include <execinfo.h>
#include "print_frame.h"

DEFINE_SINK;

int descend(int depth);

static void print_frames(void)
{
	void *frames[64];
	int n = backtrace(frames, 64);

	say_number("", n, " frames\n");
	for (int i = 0; i < n; i++)
		print_frame(frames[i]);
}

__attribute__((noinline)) int descend(int depth)
{
	void *block = malloc(32);
	int sum;

	sink = block;
	if (!depth) {
		print_frames();
		sum = 0;
	} else {
		sum = descend(depth - 1) + depth;
	}
	free(block);
	return sum;
}

int main(void)
{
	for (int i = 0; i < 4; i++)
		descend(i * 6);
	return 0;
}
