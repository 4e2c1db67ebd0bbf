/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `allocprof export --format=events`. */
#ifndef ALLOCPROF_EXPORT_EVENTS_RUN_H
#define ALLOCPROF_EXPORT_EVENTS_RUN_H

#include <stdbool.h>

#include "data_paths.h"
#include "export_events.h"

/*
 * Writes the log of the data file @paths names, or that log itself. Says on stderr what it lacks.
 * Returns the exit status; with @strict EXIT_INCOMPLETE where it lacks anything.
 */
int export_events__run(const struct data_paths *paths, enum backtrace backtrace, bool strict);

#endif
