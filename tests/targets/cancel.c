// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Threads that allocate are cancelled: at a deferred point in read(), and asynchronously in a loop.
 * Cleanup handlers free what they hold. Above start-up, without what pthread itself needs to load
 * the unwinder:
 *
 *   malloc: 60 calls, 3000 bytes
 *   free: 60 calls, 0 bytes
 *
 * Prints one line per kind, exit status 0.
 */
#include <pthread.h>
#include "raw.h"

DEFINE_SINK;

static pthread_barrier_t allocated;
static unsigned long cleaned;

static void clean(void *block)
{
	free(block);
	cleaned++;
}

static void *wait_deferred(void *fd)
{
	char c;

	pthread_cleanup_push(clean, malloc(50));
	pthread_cleanup_push(clean, malloc(50));
	pthread_barrier_wait(&allocated);
	while (read(*(int *)fd, &c, 1) >= 0)
		;
	pthread_cleanup_pop(0);
	pthread_cleanup_pop(0);
	return NULL;
}

static void *spin_asynchronous(void *unused)
{
	int old;

	pthread_cleanup_push(clean, malloc(50));
	pthread_barrier_wait(&allocated);
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &old);
	for (volatile unsigned long spins = 0;; spins++)
		;
	pthread_cleanup_pop(0);
	return NULL;
}

static void cancel_twenty(const char *kind, void *(*work)(void *), void *arg)
{
	unsigned long cancelled = 0;

	cleaned = 0;
	for (int i = 0; i < 20; i++) {
		pthread_t thread;
		void *result;

		if (pthread_create(&thread, NULL, work, arg))
			_exit(1);
		pthread_barrier_wait(&allocated);
		pthread_cancel(thread);
		pthread_join(thread, &result);
		cancelled += result == PTHREAD_CANCELED;
	}
	say(kind);
	say_number(": ", cancelled, " cancelled, ");
	say_number("", cleaned, " cleaned\n");
}

int main(void)
{
	int fds[2];

	if (pipe(fds))
		return 1;
	pthread_barrier_init(&allocated, NULL, 2);
	cancel_twenty("deferred", wait_deferred, &fds[0]);
	cancel_twenty("asynchronous", spin_asynchronous, NULL);
	return 0;
}
