// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Dies by SIGSEGV, without a core file. Above start-up:
 *
 *   malloc: 3 calls, 30 bytes
 *   free: 1 calls, 0 bytes
 *
 * Prints "about to die"; a shell shows exit status 139.
 */
#include <sys/resource.h>
#include "raw.h"

DEFINE_SINK;

int main(void)
{
	const struct rlimit none = { 0 };
	int *volatile nowhere = NULL;

	setrlimit(RLIMIT_CORE, &none);
	for (int i = 0; i < 3; i++)
		sink = malloc(10);
	free(sink);
	say("about to die\n");
	return *nowhere;
}
