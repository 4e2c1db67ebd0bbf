/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The line of progress on the terminal while a target is measured. */
#ifndef ALLOCPROF_MEASURE_PROGRESS_H
#define ALLOCPROF_MEASURE_PROGRESS_H

#include "progress.h"
#include "session.h"
#include "terminal_users.h"

struct measure;

struct measure_progress {
	const struct measure *measure;
	const struct session_attendant *next; /* what it was put before, or NULL */
	struct session_attendant attendant;   /* for session__run() */
	struct progress progress;
};

/* @next may be NULL. */
void measure_progress__begin(struct measure_progress *progress, const struct measure *measure,
			     const struct session_attendant *next);

/* From now on no progress is shown while a process that @session follows may write to our terminal; with
 * NULL, which has to come before the session is closed, it is nobody's. */
void measure_progress__yield_to(const struct session *session);

#endif
