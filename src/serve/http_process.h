/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A process without privileges that answers HTTP requests about a recording that goes on: profiles for
 * pprof, and metrics. It asks its parent for copies of the recording, and reads each as any data file is
 * read. Whatever comes over the network is read in this process alone.
 */
#ifndef ALLOCPROF_HTTP_PROCESS_H
#define ALLOCPROF_HTTP_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "http_types.h"

struct error;

struct http_options {
	int listener;	   /* a listening socket, which stays the caller's */
	const char *token; /* what clients have to know, up to HTTP_MAX_TOKEN bytes; "": nothing */
	unsigned int most_series; /* functions, and processes, that metrics have apart */
	bool is_restart;	  /* another process has answered before */
};

struct http_process {
	pid_t pid;
	int channel; /* to be polled; readable: http_process__take() has something to do */
};

/* Starts the process. The caller must have one thread, and no memory that others share but such as
 * may be unmapped. Returns 0 or a negative errno with @error set. */
int http_process__start(const struct http_options *options, struct http_process *out,
			struct error *error);

/* Takes requests from the channel. Returns 1 if a copy is wanted, 0 if not, or -EPIPE if the process has
 * ended or is ending. */
int http_process__take(struct http_process *process);

/* Answers with the data file @fd, which stays the caller's. Returns 0 or a negative errno. */
int http_process__give(struct http_process *process, int fd, const struct http_costs *costs);
/* Answers that there is no copy, because of @why. */
int http_process__refuse(struct http_process *process, const char *why);
int http_process__set_token(struct http_process *process, const char *token);

/* Ends the process and waits for it. Returns its status, as waitpid(2) has it; 0 if there is none. */
int http_process__end(struct http_process *process);

#endif
