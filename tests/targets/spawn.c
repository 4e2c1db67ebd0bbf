// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Starts itself four times by posix_spawn. Above start-up of five programs:
 *
 *   malloc: 124 calls, 4960 bytes
 *   memalign: 12 calls, 600 bytes
 *   free: 40 calls, 0 bytes
 *
 * The parent 4 * malloc(40); each child 30 * malloc(40) and 3 * memalign(64, 50), of which it frees
 * 10. Prints "done", exit status 0.
 */
#include <malloc.h>
#include <spawn.h>
#include <sys/wait.h>
#include "raw.h"

DEFINE_SINK;

static int spawned(void)
{
	void *blocks[30];

	for (int i = 0; i < 30; i++)
		blocks[i] = malloc(40);
	for (int i = 0; i < 10; i++)
		free(blocks[i]);
	for (int i = 0; i < 3; i++)
		sink = memalign(64, 50);
	return 0;
}

int main(int argc, char **argv)
{
	char *args[] = { argv[0], (char *)"spawned", NULL };
	pid_t pids[4];

	if (argc > 1)
		return spawned();
	for (int i = 0; i < 4; i++) {
		sink = malloc(40);
		if (posix_spawn(&pids[i], "/proc/self/exe", NULL, NULL, args, environ))
			return 1;
	}
	for (int i = 0; i < 4; i++) {
		int status;

		if (waitpid(pids[i], &status, 0) != pids[i] || status)
			return 1;
	}
	say("done\n");
	return 0;
}
