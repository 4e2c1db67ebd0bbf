// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Prints "done", closes every file that it can, and allocates on. Above start-up:
 *
 *   malloc: 100 calls, 4000 bytes
 *
 * Exit status 4.
 */
#include "raw.h"

DEFINE_SINK;

int main(void)
{
	say("done\n");
	for (int fd = 0; fd < 4096; fd++)
		close(fd);
	for (int i = 0; i < 100; i++)
		sink = malloc(40);
	return 4;
}
