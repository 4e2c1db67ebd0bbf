// SPDX-License-Identifier: GPL-3.0-or-later
/* herd N: N threads wait for each other, and then call malloc and free 20 times each, all for the first time. */
#include <pthread.h>
#include <stdlib.h>

#define CALLS	    20
#define STACK_BYTES 65536

static pthread_barrier_t barrier;

static void *work(void *unused)
{
	pthread_barrier_wait(&barrier);
	for (int i = 1; i <= CALLS; i++) {
		void *volatile block = malloc(i);

		free(block);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 0;
	pthread_t *threads = malloc(n * sizeof(*threads));
	pthread_attr_t attributes;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	pthread_barrier_init(&barrier, NULL, n + 1);
	for (int i = 0; i < n; i++)
		if (pthread_create(&threads[i], &attributes, work, NULL))
			return 1;
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	free(threads);
	return 0;
}
