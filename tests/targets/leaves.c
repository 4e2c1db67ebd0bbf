// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Processes that end, one after the other, without freeing what they allocated. Above start-up:
 *
 *   malloc: 6 calls, 4400000 bytes
 *   free: 0 calls
 *
 * The program allocates 300,000 bytes, starts four children by fork, which allocate 1,000,000 bytes each, and one by
 * vfork, which allocates 100,000 bytes that stay the program's. It waits before that, and each of the four before it ends, so
 * that none ends in the last epoch of a recording or in the one in which it allocated: epochs are a 512th of the recording at the
 * most. Prints nothing, exit status 0.
 */
#include <sys/wait.h>
#include "raw.h"

DEFINE_SINK;

static int ends_well(pid_t pid)
{
	int status;

	return waitpid(pid, &status, 0) == pid && !status;
}

static __attribute__((noinline)) void leave_in_child(void)
{
	sink = malloc(1000000);
}

static __attribute__((noinline)) void leave_in_parent(void)
{
	sink = malloc(100000);
}

int main(void)
{
	pid_t pid;

	sink = malloc(300000);
	for (int i = 0; i < 4; i++) {
		pid = fork();
		if (!pid) {
			leave_in_child();
			usleep(20000);
			_exit(0);
		}
		if (!ends_well(pid))
			return 1;
	}
	usleep(100000);
	pid = vfork();
	if (!pid) {
		leave_in_parent();
		_exit(0);
	}
	return !ends_well(pid);
}
