/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Serves the requests of `allocprof ctl` during a recording. */
#ifndef ALLOCPROF_CONTROLLED_H
#define ALLOCPROF_CONTROLLED_H

#include "session.h"

struct controlled;
struct error;
struct measure;

/*
 * Begins to listen. If that fails, *@out is NULL and the recording goes on, unless @measure has
 * --paused: then a negative errno with @error set.
 */
int controlled__begin(const struct measure *measure, struct controlled **out, struct error *error);

/* The attendant for session__run(); NULL for NULL. */
const struct session_attendant *controlled__attendant(const struct controlled *controlled);

/* Stops listening: the recording ends. */
void controlled__stop(struct controlled *controlled);

/* Waits until a running dump is written; a signal on @signal_fd aborts the dump. */
void controlled__end(struct controlled *controlled, int signal_fd);

#endif
