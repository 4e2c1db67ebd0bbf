/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Fetches debug files from the servers in DEBUGINFOD_URLS. elfutils' client runs in a child
 * process, because it may block for minutes without calling back, and a process can be killed. */
#ifndef ALLOCPROF_DEBUGINFOD_H
#define ALLOCPROF_DEBUGINFOD_H

#include <stdbool.h>

struct debuginfod;

struct debuginfod_options {
	/* Without progress for @timeout_ms the file and the servers are given up; @total_ms limits
	 * all files together. */
	unsigned int timeout_ms, total_ms;
	/* Called a few times a second during a download: bytes received, and in total (if unknown,
	 * both are 0). Nonzero aborts the download. */
	int (*progress)(void *context, long done_bytes, long total_bytes);
	void *context;
};

/* Whether DEBUGINFOD_URLS names a server. */
bool debuginfod__has_servers(void);

/* Starts the child, which ends with this process; call it before there are other threads. NULL if
 * no server is named, or without memory or process. Contacts no server. */
struct debuginfod *debuginfod__new(const struct debuginfod_options *options);
/* Kills the child. */
void debuginfod__free(struct debuginfod *debuginfod);

/*
 * Fetches the debug file of a build id (lower-case hex). A descriptor that the caller closes; -ENOENT if no server has it;
 * or the client's error, such as -ECONNREFUSED. These kill the child, and all later calls return the same: -ETIMEDOUT and
 * -ETIME (the first and the second limit), -ECANCELED (by progress()), and -ECHILD (no client library, or it crashed).
 */
int debuginfod__fetch(struct debuginfod *debuginfod, const char *build_id);

/* Whether the child has ended. */
bool debuginfod__is_ended(const struct debuginfod *debuginfod);

#endif
