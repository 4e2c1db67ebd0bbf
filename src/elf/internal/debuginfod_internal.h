/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The process that asks servers for debug files and its parent exchange messages over one socket (SOCK_SEQPACKET):
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

/* Bytes. Until a server has sent something, @done may be a number of steps. */
struct debuginfod_progress {
	long done, total;
};

/* Runs in the forked child. */
void debuginfod__serve(int socket, pid_t parent) __attribute__((noreturn));

/*
 * Root's cache, where root did not come by sudo. The client belongs to the user nobody then, and gets a directory of its own
 * below the one that elfutils' other clients use.
 */
bool debuginfod_cache__is_roots(void);
/* In the child, before it becomes that user: makes the directory, and has the client use it. If it cannot be made, or others
 * than root may write to a part of its path, the client is left without one. */
void debuginfod_cache__enter(void);
/* In the parent: a debug file that another client of root's has kept, as a descriptor, or a negative errno. */
int debuginfod_cache__open(const char *build_id);

#endif
