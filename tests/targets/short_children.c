// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * short_children N PER_SECOND: starts itself N times, one after the other, PER_SECOND a second at the most, and each
 * time that it is started so makes, above start-up,
 *
 *   malloc: 10 calls, 400 bytes
 *   free: 10 calls
 *
 * Does not wait for one to end before it starts the next. Prints nothing, exit status 0.
 */
#include <spawn.h>
#include <sys/wait.h>
#include <time.h>
#include "raw.h"

DEFINE_SINK;

static int be_short(void)
{
	for (int i = 0; i < 10; i++) {
		sink = malloc(40);
		free(sink);
	}
	return 0;
}

int main(int argc, char **argv)
{
	char *args[] = { argv[0], NULL };
	unsigned long n, per_second;
	struct timespec at;
	int status, worst = 0;

	if (argc < 3)
		return be_short();
	n = number_or(argv[1], 0);
	per_second = number_or(argv[2], 1);
	clock_gettime(CLOCK_MONOTONIC, &at);
	for (unsigned long i = 0; i < n; i++) {
		pid_t pid;

		if (posix_spawn(&pid, "/proc/self/exe", NULL, NULL, args, environ))
			return 1;
		at.tv_nsec += 1000000000 / per_second;
		at.tv_sec += at.tv_nsec / 1000000000;
		at.tv_nsec %= 1000000000;
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
		while (waitpid(-1, &status, WNOHANG) > 0)
			worst |= status;
	}
	while (wait(&status) > 0)
		worst |= status;
	return worst != 0;
}
