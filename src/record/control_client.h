/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The client side of `allocprof ctl` (control.h). */
#ifndef ALLOCPROF_CONTROL_CLIENT_H
#define ALLOCPROF_CONTROL_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "control_directory.h"

struct error;

struct control_recording {
	pid_t pid;    /* of allocprof */
	pid_t target; /* first process of the recording */
	char state[32], since[32], command[256];
};

struct control_recordings {
	struct control_recording *list; /* sorted by pid */
	size_t n, room;
};

/* Finds all running recordings that answer, and removes stale sockets. */
int control_recordings__find(struct control_recordings *recordings, struct error *error);
void control_recordings__release(struct control_recordings *recordings);

/* Sends @request to the recording @pid and waits for its answer, without a time limit. @reply gets
 * the text, *@is_done whether it was carried out. */
int control_client__ask(pid_t pid, const char *request, bool *is_done,
			char reply[CONTROL_MAX_REPLY], struct error *error);

#endif
