/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Runs a target under a session; handles signals and the exit status. */
#ifndef ALLOCPROF_MEASURE_H
#define ALLOCPROF_MEASURE_H

#include <stdbool.h>

#include "measure_options.h"
#include "user.h"

/*
 * Signal mask and limits as they were before measuring, which the command inherits. Zeroed at
 * first; shared by all runs of a series.
 */
struct measure_surroundings {
	bool has_mask;
	bool is_taken;
	int signal_fd; /* receives the signals that end the measurement */
	struct target_inheritance inheritance;
	struct target_user user; /* of --user */
};

/*
 * Opens a session, runs the target under it and finishes it. 0 with *@session open, or a negative
 * errno with @error set, the exit status in *@status, and nothing open. The first run fills
 * @surroundings; the caller releases them after the last.
 */
int measure__run(const struct measure *measure, struct measure_surroundings *surroundings,
		 struct session **session, int *status, struct error *error);

/* Closes what measure__run() opened. */
void measure__close(struct session *session);

/* Whether a signal that ends the measurement has arrived since the last check. */
bool measure_surroundings__was_interrupted(const struct measure_surroundings *surroundings);
void measure_surroundings__release(struct measure_surroundings *surroundings);

#endif
