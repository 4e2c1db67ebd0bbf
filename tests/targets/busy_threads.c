// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * busy_threads THREADS: prints "ready" once all THREADS workers run, and obeys commands on stdin:
 *
 *   alloc N   each worker exactly N times malloc(32) and free, then prints "done"
 *   exit      exit status 0, as at the end of the input
 *
 * Other than that it makes no call of the allocator after "ready". At most 64 threads.
 */
#include <pthread.h>
#include "raw.h"

DEFINE_SINK;

#define MAX_THREADS 64

static pthread_barrier_t start, end;
static unsigned long rounds;

static void *work(void *unused)
{
	for (;;) {
		pthread_barrier_wait(&start);
		for (unsigned long i = 0; i < rounds; i++) {
			void *block = malloc(32);

			sink = block;
			free(block);
		}
		pthread_barrier_wait(&end);
	}
	return NULL;
}

static void one_round(unsigned long n)
{
	rounds = n;
	pthread_barrier_wait(&start);
	pthread_barrier_wait(&end);
}

int main(int argc, char **argv)
{
	unsigned long n = number_or(argc > 1 ? argv[1] : NULL, 0);
	pthread_t thread;
	char line[64];

	if (!n || n > MAX_THREADS)
		return 2;
	pthread_barrier_init(&start, NULL, n + 1);
	pthread_barrier_init(&end, NULL, n + 1);
	for (unsigned long i = 0; i < n; i++)
		if (pthread_create(&thread, NULL, work, NULL))
			return 1;
	one_round(0);
	say("ready\n");
	while (read_line(line, sizeof(line))) {
		if (!strcmp(line, "exit"))
			break;
		if (strncmp(line, "alloc ", 6))
			return 2;
		one_round(number_or(line + 6, 0));
		say("done\n");
	}
	_exit(0);
}
