// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A thread allocates until the other has seen that it began, and then as often as that lets it; no two
 * runs need be the same. Prints how often it called malloc, of 24 bytes, which is 1000 times or more;
 * exit status 0.
 */
#include <pthread.h>
#include "raw.h"

DEFINE_SINK;

static volatile int has_begun, is_over;
static unsigned long n_blocks;

static void *allocate(void *unused)
{
	while (n_blocks < 1000 || !is_over) {
		sink = malloc(24);
		free(sink);
		n_blocks++;
		has_begun = 1;
	}
	return NULL;
}

int main(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, allocate, NULL))
		return 1;
	while (!has_begun)
		;
	for (volatile unsigned int i = 0; i < 1000000; i++)
		;
	is_over = 1;
	pthread_join(thread, NULL);
	say_number("", n_blocks, "\n");
	return 0;
}
