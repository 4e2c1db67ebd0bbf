/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Runs a target under a session: its signals and exit status. */
#ifndef ALLOCPROF_MEASURE_H
#define ALLOCPROF_MEASURE_H

#include <stdbool.h>

#include "measure_options.h"

/* What measuring changes of our own process, and the command is to find as it was. Zeroed at first; of one
 * or several runs. */
struct measure_surroundings {
	bool is_taken;
	int signal_fd; /* signals that ask for the end */
	struct target_inheritance inheritance;
};

/*
 * Opens a session, runs the target under it and finishes. 0 with *@session open, or a negative
 * errno with @error set, the exit status for that in *@status, and nothing open. @surroundings are taken
 * by the first run, and to be released after the last.
 */
int measure__run(const struct measure *measure, struct measure_surroundings *surroundings,
		 struct session **session, int *status, struct error *error);

/* Closes what measure__run() opened. */
void measure__close(struct session *session);

/* Whether a signal that asks for the end has come since a run looked. */
bool measure_surroundings__was_interrupted(const struct measure_surroundings *surroundings);
void measure_surroundings__release(struct measure_surroundings *surroundings);

#endif
