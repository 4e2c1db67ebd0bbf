/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A process without privileges that speaks HTTP about a recording that goes on: one that answers requests, for profiles
 * for pprof and for metrics, or one that pushes profiles to a collector of OpenTelemetry. It gets copies of the recording
 * from its parent, which the first asks for, and reads each as any data file is
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
	bool is_restart;	  /* another process has answered, or pushed, before */
	/* It pushes, and the ones above but is_restart have no meaning; NULL: it answers. Has to stay. */
	const struct otlp_options *otlp;
};

struct http_process {
	pid_t pid;
	int channel; /* to be polled; readable: http_process__take() has something to do */
};

/* Starts the process. The caller must have one thread, and no memory that others share but such as
 * may be unmapped. Returns 0 or a negative errno with @error set. */
int http_process__start(const struct http_options *options, struct http_process *out,
			struct error *error);

/* Takes requests from the channel of one that answers. Returns 1 if a copy is wanted, 0 if not, or -EPIPE if the process has
 * ended or is ending. */
int http_process__take(struct http_process *process);

/* Takes from the channel of one that pushes what became of the last copy: @push, and in @text, of @size bytes, the reason
 * or "". Returns 1, 0 if nothing has come, or -EPIPE. */
int http_process__take_push(struct http_process *process, struct otlp_push *push, char *text,
			    size_t size);

/* Gives it the data file @fd, which stays the caller's. Returns 0 or a negative errno. */
int http_process__give(struct http_process *process, int fd, const struct http_costs *costs);
/* Answers that there is no copy, because of @why. */
int http_process__refuse(struct http_process *process, const char *why);
int http_process__set_token(struct http_process *process, const char *token);

/* Ends the process and waits for it. Returns its status, as waitpid(2) has it; 0 if there is none. */
int http_process__end(struct http_process *process);

#endif
