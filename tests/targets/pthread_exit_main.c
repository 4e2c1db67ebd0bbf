// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * main leaves by pthread_exit; a thread waits for its end and goes on. Above start-up, without what
 * pthread itself needs to load the unwinder:
 *
 *   malloc: 1001 calls, 64064 bytes
 *   free: 1000 calls, 0 bytes
 *
 * Prints "main is gone" and "1000 more", exit status 7.
 */
#include <pthread.h>
#include "raw.h"

DEFINE_SINK;

static void *outlive(void *main_thread)
{
	pthread_join(*(pthread_t *)main_thread, NULL);
	say("main is gone\n");
	for (int i = 0; i < 1000; i++) {
		sink = malloc(64);
		free(sink);
	}
	say("1000 more\n");
	exit(7);
}

int main(void)
{
	static pthread_t self;
	pthread_t thread;

	self = pthread_self();
	sink = malloc(64);
	if (pthread_create(&thread, NULL, outlive, &self))
		return 1;
	pthread_exit(NULL);
}
