// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * threads [THREADS [ROUNDS]], 8 and 1000 without arguments. Above start-up:
 *
 *   malloc: THREADS * ROUNDS calls of 40 bytes
 *   calloc: THREADS * ROUNDS calls of 2 * 30 bytes, and one per thread by pthread_create
 *   realloc: THREADS * ROUNDS calls of 120 bytes, none fresh
 *   free: 2 * THREADS * ROUNDS calls, and some of NULL by the C library as a thread exits
 *
 * Every thread leaves blocks in its cache, which the C library itself frees as the thread exits.
 * At most 64 threads. Prints "done", exit status 0.
 */
#include <pthread.h>
#include "raw.h"

DEFINE_SINK;

#define MAX_THREADS 64

static pthread_barrier_t start;
static unsigned long rounds;

static void *work(void *unused)
{
	/* All stacks exist at once, so that pthread_create can reuse none. */
	pthread_barrier_wait(&start);
	for (unsigned long i = 0; i < rounds; i++) {
		void *a = malloc(40);
		void *b = calloc(2, 30);

		a = realloc(a, 120);
		free(b);
		free(a);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	unsigned long n = number_or(argc > 1 ? argv[1] : NULL, 8);
	pthread_t threads[MAX_THREADS];
	pthread_attr_t attr;

	rounds = number_or(argc > 2 ? argv[2] : NULL, 1000);
	if (!n || n > MAX_THREADS)
		return 2;
	pthread_barrier_init(&start, NULL, n);
	pthread_attr_init(&attr);
	/* Small enough that all fit into pthread's cache of stacks, which else frees some. */
	pthread_attr_setstacksize(&attr, 256 << 10);
	for (unsigned long i = 0; i < n; i++)
		if (pthread_create(&threads[i], &attr, work, NULL))
			return 1;
	for (unsigned long i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	say("done\n");
	return 0;
}
