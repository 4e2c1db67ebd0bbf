/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The process that asks servers of debug files, and its parent, exchange over one socket (SOCK_SEQPACKET):
 *
 *	parent: a build id, lower-case hex		client: NOTE with a struct debuginfod_progress, any number of times
 *							client: GIVE with a descriptor, or the error
 */
#ifndef ALLOCPROF_DEBUGINFOD_INTERNAL_H
#define ALLOCPROF_DEBUGINFOD_INTERNAL_H

#include <stdbool.h>
#include <sys/types.h>

/* elfutils' client takes build ids of up to this length. */
#define MAX_REQUEST 256

/* Bytes; what the client says when its servers have sent nothing may be no number of bytes. */
struct debuginfod_progress {
	long done, total;
};

/* Runs in the forked child. */
void debuginfod__serve(int socket, pid_t parent) __attribute__((noreturn));

/*
 * The cache of root where nobody called by sudo. The client that writes to it is nobody: it gets a directory of its own
 * below the one that elfutils' other clients use.
 */
bool debuginfod_cache__is_roots(void);
/* In the child, before it becomes nobody: makes that directory, and has the client use it. If it cannot be had, the client
 * goes on as it is. */
void debuginfod_cache__enter(void);
/* In the parent: the debug file that another client of root's has kept: a descriptor, or a negative errno. */
int debuginfod_cache__open(const char *build_id);

#endif
