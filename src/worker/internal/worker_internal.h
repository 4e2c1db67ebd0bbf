/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A worker and its parent exchange packets over one socket. For each request
 *
 *	the parent sends: REQUESTS..., REQUEST
 *	the worker sends: PART..., DONE
 *
 * Meanwhile, any number of times,
 *
 *	the worker sends: OPEN, NAME, STATUS or ASK, and waits; the parent answers: GIVE
 *	the worker sends: NOTE, which has no answer
 */
#ifndef ALLOCPROF_WORKER_INTERNAL_H
#define ALLOCPROF_WORKER_INTERNAL_H

#include <sys/stat.h>
#include <sys/types.h>

#include "wire.h"
#include "worker.h"

/* Returns a descriptor of the file at @path, which the parent has opened, or a negative errno.
 * Async-signal-safe. */
int worker_request__open(const char *path);
/* Has the parent write the fstat(2) of @fd to *@out. Returns 0 or a negative errno.
 * Async-signal-safe. */
int worker_request__status(int fd, struct stat *out);
/* Has the parent write the path of @fd to @path, at most @size bytes, without NUL. Returns the
 * length or a negative errno. Async-signal-safe. */
ssize_t worker_request__name(int fd, char *path, size_t size);

#endif
