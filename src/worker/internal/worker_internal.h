/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A worker and its parent exchange packets over one socket:
 *
 *	parent: REQUEST..., the last one flagged	worker: PART..., DONE
 *	in between, any number of times:	worker: OPEN, NAME, STATUS or ASK, and waits	parent: GIVE
 *						worker: NOTE
 */
#ifndef ALLOCPROF_WORKER_INTERNAL_H
#define ALLOCPROF_WORKER_INTERNAL_H

#include <sys/stat.h>
#include <sys/types.h>

#include "wire.h"
#include "worker.h"

/* A descriptor of the file at @path from the parent, or a negative errno. Async-signal-safe. */
int worker_request__open(const char *path);
/* What fstat(2) of @fd says to the parent. 0 or a negative errno. Async-signal-safe. */
int worker_request__status(int fd, struct stat *out);
/* The length of the path of @fd, at most @size, without NUL; or a negative errno. Async-signal-safe. */
ssize_t worker_request__name(int fd, char *path, size_t size);

/* Runs in the forked child, and does not return. */
void worker__serve(const struct worker_options *options, int socket, pid_t parent)
	__attribute__((noreturn));

#endif
