// SPDX-License-Identifier: GPL-3.0-or-later
/* Starts threads that take no signals. */
#include "thread.h"

#include <signal.h>

bool thread__start(pthread_t *thread, void *(*run)(void *context), void *context)
{
	sigset_t all, before;
	bool started;

	sigfillset(&all);
	if (pthread_sigmask(SIG_SETMASK, &all, &before))
		return false;
	started = !pthread_create(thread, NULL, run, context);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return started;
}
