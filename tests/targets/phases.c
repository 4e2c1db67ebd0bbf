// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * phases: five phases, numbered from 1, of some microseconds each, with pauses of 80 ms between them. In phase n
 *
 *   keep    makes 10 + n blocks of 1000 bytes, which stay until drop frees them
 *   churn   makes 50 blocks of 60 bytes, each of which it frees at once
 *   drop    frees the 5 oldest blocks of keep
 *   worker  in a thread of that name, frees its blocks of phase n - 1 and makes 3 of 5000 bytes
 *
 * At the end 40 blocks of keep and 3 of worker are live. Exit status 0.
 */
#include <pthread.h>
#include <time.h>
#include "raw.h"

DEFINE_SINK;

#define PHASES	5
#define KEPT	10
#define CHURNED 50
#define DROPPED 5
#define WORKED	3

static void *kept[PHASES * (KEPT + PHASES)];
static int n_kept, n_dropped;
static void *worked[WORKED];

__attribute__((noinline)) static void keep(int phase)
{
	for (int i = 0; i < KEPT + phase; i++)
		kept[n_kept++] = malloc(1000);
}

__attribute__((noinline)) static void churn(void)
{
	for (int i = 0; i < CHURNED; i++) {
		sink = malloc(60);
		free(sink);
	}
}

__attribute__((noinline)) static void drop(void)
{
	for (int i = 0; i < DROPPED; i++)
		free(kept[n_dropped++]);
}

static void *worker(void *unused)
{
	pthread_setname_np(pthread_self(), "worker");
	for (int i = 0; i < WORKED; i++) {
		free(worked[i]);
		worked[i] = malloc(5000);
	}
	return NULL;
}

int main(void)
{
	const struct timespec pause = { .tv_nsec = 80000000 };

	for (int phase = 1; phase <= PHASES; phase++) {
		pthread_t thread;

		keep(phase);
		churn();
		drop();
		if (pthread_create(&thread, NULL, worker, NULL) || pthread_join(thread, NULL))
			return 1;
		if (phase < PHASES)
			nanosleep(&pause, NULL);
	}
	return 0;
}
