/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Internals of a session. */
#ifndef ALLOCPROF_SESSION_INTERNAL_H
#define ALLOCPROF_SESSION_INTERNAL_H

#include "engine.h"
#include "memory_group.h"
#include "session.h"
#include "target.h"

/* Effects of `allocprof ctl` on the run. */
struct session_marks {
	__u64 stops; /* times that the run's gate was closed */
	__u64 resets;
	bool is_dump; /* the recording went on after this profile was written */
};

#define SESSION_MAX_ENGINES 2

/* A position in the list of the files of all engines, which have more while the target runs; zeroed it is before the first. */
struct session_files {
	struct probed_file file;
	size_t engine; /* that has it; it is the last of those that it has shown */
	size_t n_seen[SESSION_MAX_ENGINES];
};

struct session {
	struct session_options options;
	/* The first one is the one that was asked for. */
	struct engine *engines[SESSION_MAX_ENGINES];
	size_t n_engines;
	int epoll_fd;	/* of session__run(); -1: it does not run */
	bool has_begun; /* the engines were started */
	int no_fallback; /* why there is no fallback engine: a negative errno; 0: it was not needed yet */
	struct profile *profile;
	char *const *argv;	   /* of a launched command */
	struct session_files told; /* those that options.found() was called with */
	struct target target;
	struct attached attached; /* if the target was not launched */
	struct memory_group group,
		target_group; /* without a limit where there is none, or none is known */
	bool is_in_group;     /* this process is in the one that limits the target */
	int kills_fd;	      /* of the OOM killer in the target's group; -1: not known */
	__u64 kills_before;
	__u64 start_realtime_ns;
	unsigned int n_signals;
	__u64 since_ns; /* CLOCK_MONOTONIC, of the last reset; 0: none */
	bool is_gate_open;
	__u64 gate_realtime_ns;
	/* CLOCK_MONOTONIC at which the window opens (--delay); 0: not scheduled. */
	__u64 opens_at_ns;
	struct session_marks marks;
	bool is_snapshot;
	size_t log_stacks; /* in a snapshot: the first ids of stacks, which the log of events has, too */
	bool may_be_torn; /* a snapshot is kept where the target allocated or freed meanwhile, and says so */
	__u64 torn_ms;	   /* how long it was read then */
	struct hold *hold; /* of all processes, for a cut; NULL: they run */
	__u64 cut_ns;	   /* CLOCK_MONOTONIC, of the last cut */
};

static inline const struct engine_operations *session__operations(const struct session *session,
								  size_t engine)
{
	return session->engines[engine]->operations;
}

/* Sets what @options say of memory, and *@group where a control group limits that. */
void session__take_shares(struct session_options *options, struct memory_group *group);

/* session_engines.c: opens the engine that was asked for. */
int session__open_engine(struct session *session, struct error *error);
/* Whether @err, of an engine that was opened, says that the kernel refuses uprobes or bpf(2). */
bool session__lacks_uprobes(int err);

/* Sets at->file to the next file that was found to have known or defined allocators, probed or not; false if there are no
 * more yet. */
bool session__next_file(const struct session *session, struct session_files *at);

/* Completes the profile, when the engines have finished. -ENOMEM. */
int session__complete_profile(struct session *session);

#endif
