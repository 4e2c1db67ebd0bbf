/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The progress line during a measurement. */
#ifndef ALLOCPROF_MEASURE_PROGRESS_H
#define ALLOCPROF_MEASURE_PROGRESS_H

#include "progress.h"
#include "session.h"
#include "user_terminal.h"

struct measure;

struct measure_progress {
	const struct measure *measure;
	const struct session_attendant *next; /* the attendant that this one wraps, or NULL */
	struct session_attendant attendant;   /* to be passed to session__run() */
	struct progress progress;
};

/* @next may be NULL. */
void measure_progress__begin(struct measure_progress *progress, const struct measure *measure,
			     const struct session_attendant *next);

/*
 * Suppresses the progress line while a process that @session follows may write to our terminal.
 * Call it with NULL before the session is closed.
 */
void measure_progress__yield_to(const struct session *session);

#endif
