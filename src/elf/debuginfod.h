/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Debug files from the servers that the user named in DEBUGINFOD_URLS. elfutils' client runs in a child
 * process: it may wait for minutes without asking anybody whether to go on, and a process can be ended.
 */
#ifndef ALLOCPROF_DEBUGINFOD_H
#define ALLOCPROF_DEBUGINFOD_H

#include <stdbool.h>

struct debuginfod;

struct debuginfod_options {
	/* A file is given up, and the servers with it, where nearly nothing came for so long; and all files
	 * together may take no longer than the second. */
	unsigned int timeout_ms, total_ms;
	/* Called some times a second while a file is fetched: bytes that are there, and that there will
	 * be (0: unknown, then both are). Nonzero ends the fetching. */
	int (*progress)(void *context, long done_bytes, long total_bytes);
	void *context;
};

/* Whether the user named any. */
bool debuginfod__has_servers(void);

/*
 * Starts the child, which ends with this process and must not be started while there are other threads.
 * NULL where no server is named, or there is no memory or no process to be had. Nothing is contacted.
 */
struct debuginfod *debuginfod__new(const struct debuginfod_options *options);
/* Ends the child, whatever it does. */
void debuginfod__free(struct debuginfod *debuginfod);

/*
 * Fetches the debug file of the build id (lower-case hex). 0 and its path, to be freed; -ENOENT where no
 * server has it; or what the client said, -ECONNREFUSED for example. These end the child, and all later
 * calls return the same: -ETIMEDOUT and -ETIME (the first and the second limit), -ECANCELED (by progress()),
 * and -ECHILD where there is no client library or it crashed.
 */
int debuginfod__fetch(struct debuginfod *debuginfod, const char *build_id, char **path);

/* Whether the child was ended. */
bool debuginfod__is_ended(const struct debuginfod *debuginfod);

#endif
