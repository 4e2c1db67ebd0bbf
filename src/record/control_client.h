/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Who wants something of a recording that runs (control.h). */
#ifndef ALLOCPROF_CONTROL_CLIENT_H
#define ALLOCPROF_CONTROL_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "control_directory.h"

struct error;

struct control_recording {
	pid_t pid;    /* of the recording */
	pid_t target; /* that it began with */
	char state[32], since[32], command[256];
};

struct control_recordings {
	struct control_recording *list; /* by pid */
	size_t n;
};

/* All that run and answer; sockets that nobody listens at are removed. */
int control_recordings__find(struct control_recordings *recordings, struct error *error);
void control_recordings__release(struct control_recordings *recordings);

/* @reply gets what the recording @pid said, and *@is_done whether it did what was asked. Waits as long as
 * that takes. */
int control_client__ask(pid_t pid, const char *request, bool *is_done,
			char reply[CONTROL_MAX_REPLY], struct error *error);

#endif
