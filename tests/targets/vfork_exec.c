// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Five times vfork; the child allocates in the parent's memory and then executes this program again,
 * which allocates, too. Above start-up of six programs:
 *
 *   malloc: 100 calls, 4000 bytes
 *   calloc: 5 calls, 150 bytes
 *   realloc: 6 calls, 420 bytes, 6 fresh of 420 bytes
 *   free: 51 calls, 0 bytes
 *
 * The parent: 6 * realloc(NULL, 70) and one free. In each child: before exec calloc(3, 10), which
 * the parent keeps; after exec 20 blocks of 40 bytes, of which 10 are freed. A last child calls
 * _exit instead of exec. Prints "done", exit status 0.
 */
#include <sys/wait.h>
#include "raw.h"

DEFINE_SINK;

static int executed(void)
{
	void *blocks[20];

	for (int i = 0; i < 20; i++)
		blocks[i] = malloc(40);
	for (int i = 0; i < 10; i++)
		free(blocks[i]);
	return 0;
}

int main(int argc, char **argv)
{
	char *args[] = { argv[0], (char *)"executed", NULL };

	if (argc > 1)
		return executed();
	for (volatile int i = 0; i < 6; i++) {
		void *block = realloc(NULL, 70);
		int status;
		pid_t pid;

		pid = vfork();
		if (!pid) {
			if (i == 5)
				_exit(0);
			sink = calloc(3, 10);
			execv("/proc/self/exe", args);
			_exit(1);
		}
		if (waitpid(pid, &status, 0) != pid || status)
			return 1;
		if (i == 5)
			free(block);
	}
	say("done\n");
	return 0;
}
