/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Internals of a session. */
#ifndef ALLOCPROF_SESSION_INTERNAL_H
#define ALLOCPROF_SESSION_INTERNAL_H

#include "engine.h"
#include "session.h"
#include "target.h"

struct session {
	struct session_options options;
	struct engine *engine;
	struct profile *profile;
	struct target target;
	__u64 start_realtime_ns;
	unsigned int n_signals;
	__u64 since_ns; /* CLOCK_MONOTONIC, of the last reset; 0: none */
	bool is_gate_open;
	__u64 gate_realtime_ns;
	/* CLOCK_MONOTONIC at which the window opens (--delay); 0: not scheduled. */
	__u64 opens_at_ns;
	struct session_marks marks;
	bool is_snapshot;
	__u64 cut_ns;			/* CLOCK_MONOTONIC, of the last cut */
	struct session_results results; /* after session__finish() */
};

/* Fills session->results, when the engine has finished. */
void session__collect_results(struct session *session);

#endif
