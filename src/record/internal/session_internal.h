/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Internals of a session. */
#ifndef ALLOCPROF_SESSION_INTERNAL_H
#define ALLOCPROF_SESSION_INTERNAL_H

#include "attached.h"
#include "engine.h"
#include "memory_group.h"
#include "session.h"
#include "target.h"

/* What several engines put into lists of the results. */
struct session_lists {
	struct region *regions;
	size_t n_regions, regions_room;
};

struct session {
	struct session_options options;
	/* The first one is the one that was asked for. */
	struct engine *engines[SESSION_MAX_ENGINES];
	size_t n_engines;
	int epoll_fd;	/* of session__run(); -1: it does not run */
	bool has_begun; /* the engines were started */
	int no_second; /* why there is no second engine: a negative errno; 0: it was not needed yet */
	struct profile *profile;
	struct target target;
	struct attached attached; /* if the target was not launched */
	struct memory_group group,
		target_group; /* without a limit where there is none, or none is known */
	bool is_in_group;     /* this process is in the one that limits the target */
	int kills_fd;	      /* of the OOM killer in the target's group; -1: not known */
	__u64 kills_before;
	char *children; /* at the end of an attachment: lines "PID COMMAND", or NULL */
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
	/* After session__finish(). */
	struct session_results results;
	struct session_lists lists; /* what @results refers to */
};

static inline const struct engine_operations *session__operations(const struct session *session,
								  size_t engine)
{
	return session->engines[engine]->operations;
}

/* Sets what @options say of memory, and *@group where a control group limits that. */
void session__take_shares(struct session_options *options, struct memory_group *group);

/* session_engines.c: opens the engine that was asked for. */
/* Whether @err, of an engine that was opened, says that the kernel refuses uprobes or bpf(2). */
bool session__lacks_uprobes(int err);
int session__open_engine(struct session *session, struct error *error);

/* Adds the results @from of one engine to @into; @lists has what these refer to. -ENOMEM. */
int session_results__merge(struct session_results *into, const struct session_results *from,
			   struct session_lists *lists);
void session_lists__release(struct session_lists *lists);

/* Fills session->results, when the engines have finished. -ENOMEM. */
int session__collect_results(struct session *session);

#endif
