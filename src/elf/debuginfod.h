/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Fetches debug files from the servers in DEBUGINFOD_URLS. elfutils' client runs in a child
 * process, since it may block for minutes without calling back, and a process can be killed. */
#ifndef ALLOCPROF_DEBUGINFOD_H
#define ALLOCPROF_DEBUGINFOD_H

#include <stdbool.h>

struct debuginfod;

struct debuginfod_options {
	/* After @timeout_ms without progress the file and the servers are given up; @total_ms
	 * limits all files together. */
	unsigned int timeout_ms, total_ms;
	/* Called a few times a second during a download with the bytes received, and in total (if
	 * unknown, both are 0). A nonzero result aborts the download. */
	int (*progress)(void *context, long done_bytes, long total_bytes);
	void *context;
};

/* What has to be installed to query servers: a library, or a program. */
extern const char *const debuginfod__client;

/* Returns whether DEBUGINFOD_URLS names a server. */
bool debuginfod__has_servers(void);

/* Starts the child, which ends with this process. To be called before there are other threads.
 * Returns NULL if no server is named, or there is no memory or process. Contacts no server. */
struct debuginfod *debuginfod__new(const struct debuginfod_options *options);
/* Kills the child. */
void debuginfod__free(struct debuginfod *debuginfod);

/*
 * Fetches the debug file of a build id (lower-case hex). Returns a descriptor that the caller
 * closes; -ENOENT if no server has it; or the client's error, such as -ECONNREFUSED. The following
 * errors kill the child, and all later calls return them again: -ETIMEDOUT and -ETIME (the first
 * and the second limit), -ECANCELED (by progress()), and -ECHILD (the client is not there, or it
 * crashed).
 */
int debuginfod__fetch(struct debuginfod *debuginfod, const char *build_id);

/* Returns whether the child has ended. */
bool debuginfod__is_ended(const struct debuginfod *debuginfod);

#endif
