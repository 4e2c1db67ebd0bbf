// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * exec_nonleader PROG [ARGS...]: a thread that is not the leader executes PROG, while the leader and
 * a third thread wait. Above start-up, before PROG:
 *
 *   malloc: 33 calls, 990 bytes
 *   calloc: 2 calls by pthread_create
 *   free: 11 calls, 0 bytes
 *
 * Output and exit status are PROG's; 127 where it could not be executed.
 */
#include <pthread.h>
#include "raw.h"

DEFINE_SINK;

static pthread_barrier_t ready;

static void *idle(void *unused)
{
	pthread_barrier_wait(&ready);
	for (;;)
		pause();
	return NULL;
}

static void *execute(void *argv)
{
	void *blocks[33];

	pthread_barrier_wait(&ready);
	for (int i = 0; i < 33; i++)
		blocks[i] = malloc(30);
	for (int i = 0; i < 11; i++)
		free(blocks[i]);
	execv(((char **)argv)[0], argv);
	_exit(127);
}

int main(int argc, char **argv)
{
	pthread_t a, b;

	if (argc < 2)
		return 2;
	pthread_barrier_init(&ready, NULL, 2);
	if (pthread_create(&a, NULL, idle, NULL) || pthread_create(&b, NULL, execute, argv + 1))
		return 1;
	pthread_join(b, NULL);
	return 1;
}
