/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Debug files from the servers that the user named in DEBUGINFOD_URLS, by elfutils' client. */
#ifndef ALLOCPROF_DEBUGINFOD_H
#define ALLOCPROF_DEBUGINFOD_H

#include <stdbool.h>

struct debuginfod;

/* Told while a file is fetched: bytes that are there and that there will be (0: unknown). Nonzero ends
 * the fetching. */
typedef int (*debuginfod_progress_fn)(void *context, long done_bytes, long total_bytes);

/* NULL where there is no client library, no server is named, or no memory. Nothing is contacted. */
struct debuginfod *debuginfod__new(debuginfod_progress_fn progress, void *context);
void debuginfod__free(struct debuginfod *debuginfod);

/* The debug file of the build id (lower-case hex) as a file descriptor, or a negative errno: -ENOENT
 * where no server has it, -EINTR where @progress ended it. */
int debuginfod__fetch(struct debuginfod *debuginfod, const char *build_id, char **path);

#endif
