/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Serves the requests of `allocprof ctl` during a recording. */
#ifndef ALLOCPROF_CONTROLLED_H
#define ALLOCPROF_CONTROLLED_H

#include "session.h"

struct controlled;
struct error;
struct measure;

/*
 * Begins to listen for requests. Returns 0, or a negative errno with @error set if @measure has
 * --paused and listening fails. Without --paused such a failure is no error: *@out is NULL, and
 * the recording goes on.
 */
int controlled__begin(const struct measure *measure, struct controlled **out, struct error *error);

/* Returns the attendant for session__run(); NULL if @controlled is NULL. */
const struct session_attendant *controlled__attendant(const struct controlled *controlled);

/* Stops listening, because the recording ends. */
void controlled__stop(struct controlled *controlled);

/* Waits until a running dump is written; a signal on @signal_fd aborts the dump. */
void controlled__end(struct controlled *controlled, int signal_fd);

#endif
