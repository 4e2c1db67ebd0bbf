/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Starts threads beside the one that handles signals. */
#ifndef ALLOCPROF_THREAD_H
#define ALLOCPROF_THREAD_H

#include <pthread.h>
#include <stdbool.h>

/* Starts a thread that takes no signals: those that the first thread has blocked, to read them from
 * a signalfd(2), would end the process otherwise. Returns false if none can be started. */
bool thread__start(pthread_t *thread, void *(*run)(void *context), void *context);

#endif
