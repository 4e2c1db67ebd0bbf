// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * pairs THREADS [CHILDREN]: prints "ready", and until the end of stdin each thread, and each of as many forked
 * children, goes on with rounds of 100 times
 *
 *   malloc(10), free, calloc(1, 10), free
 *
 * and a millisecond of sleep. So at any moment a thread has made as many requests as frees, or one more, and
 * as many calls of malloc as of calloc, or one more. Children have one thread. With THREADS 1 nothing else is
 * allocated; each further thread allocates when it is created, which is before "ready".
 */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>

#include "raw.h"

DEFINE_SINK;

#define PAIRS 100

static void one_round(void)
{
	void *block;

	for (int i = 0; i < PAIRS; i++) {
		block = malloc(10);
		sink = block;
		free(block);
		block = calloc(1, 10);
		sink = block;
		free(block);
	}
	usleep(1000);
}

static void *work(void *unused)
{
	for (;;)
		one_round();
	return unused;
}

int main(int argc, char **argv)
{
	unsigned long n_threads = number_or(argv[1], 1);
	unsigned long n_children = argc > 2 ? number_or(argv[2], 0) : 0;
	struct pollfd input = { .fd = 0, .events = POLLIN };
	pid_t parent = getpid();
	pthread_t thread;

	for (unsigned long i = 0; i < n_children; i++) {
		if (fork())
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		/* It may have ended before that. */
		if (getppid() != parent)
			_exit(0);
		work(NULL);
	}
	for (unsigned long i = 1; i < n_threads; i++)
		if (pthread_create(&thread, NULL, work, NULL))
			return 2;
	say("ready\n");
	while (!poll(&input, 1, 0))
		one_round();
	return 0;
}
