/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a recording does for `allocprof ctl` while it runs. */
#ifndef ALLOCPROF_CONTROLLED_H
#define ALLOCPROF_CONTROLLED_H

#include "session.h"

struct controlled;
struct error;
struct measure;

/* Begins to listen. Without @measure's --paused *@out is NULL where that cannot be: the recording goes
 * on all the same. A negative errno with @error set. */
int controlled__begin(const struct measure *measure, struct controlled **out, struct error *error);

/* For session__run(); NULL for NULL. */
const struct session_attendant *controlled__attendant(const struct controlled *controlled);

/* The recording ends: nothing is asked for any more. */
void controlled__stop(struct controlled *controlled);

/* Waits until a dump that was begun is written; a signal on @signal_fd ends that. */
void controlled__end(struct controlled *controlled, int signal_fd);

#endif
