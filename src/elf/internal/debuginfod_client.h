/* SPDX-License-Identifier: GPL-3.0-or-later */
/* elfutils' client of debuginfod servers, as the confined process uses it: its library
 * (debuginfod_library.c), or its program (debuginfod_program.c) in an allocprof that loads no libraries. */
#ifndef ALLOCPROF_DEBUGINFOD_CLIENT_H
#define ALLOCPROF_DEBUGINFOD_CLIENT_H

#include "confinement.h"

/* What is called during a download with numbers of bytes. Until a server has sent something, @done may be a
 * number of steps. A nonzero result aborts the download. */
struct debuginfod_reporter {
	int (*report)(void *context, long done, long total);
	void *context;
};

struct debuginfod_client;

/* What the client has to be allowed. */
extern const enum confinement_kind debuginfod_client__confinement;

/* Returns the client, which stays until the process ends; NULL if it is not installed or there is no memory. @reporter
 * has to stay. */
struct debuginfod_client *debuginfod_client__open(const struct debuginfod_reporter *reporter);

/* Fetches a debug file, or finds it in the client's cache. Returns a descriptor that the caller closes, or a negative
 * errno: -ENOENT if no server has it. Ends this process where the program is not installed or a report aborts it. */
int debuginfod_client__find(struct debuginfod_client *client, const char *build_id);

#endif
