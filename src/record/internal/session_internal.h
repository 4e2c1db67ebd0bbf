/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Internals of a session. */
#ifndef ALLOCPROF_SESSION_INTERNAL_H
#define ALLOCPROF_SESSION_INTERNAL_H

#include "bypass.h"
#include "mapped_file.h"
#include "engine.h"
#include "exit_stop.h"
#include "memory_group.h"
#include "platform.h"
#include "session.h"
#include "target.h"

/* Effects of `allocprof ctl` on the run. */
struct session_marks {
	__u64 stops; /* how often the run's gate was closed */
	__u64 resets;
	bool is_dump;	     /* the recording went on after this profile was written */
	const char *dump_at; /* the limit that was reached then; NULL: none */
	/* When copies were written, and the gate was opened or closed. */
	struct profile_mark *list;
	size_t n, room;
};

#define SESSION_MAX_ENGINES 2

/* A position in the list of the files of all engines, which grows while the target runs. Zeroed,
 * it is in front of the first file. */
struct session_files {
	struct probed_file file;
	/* Engine that has the file, which is the last one that the engine has listed. */
	size_t engine;
	size_t n_seen[SESSION_MAX_ENGINES];
};

/* How many processes are checked at most: their calls take two traps each meanwhile. */
#define MOST_CHECKS 8

/* The check whether redirected calls of a process come to the engine. */
struct session_check {
	pid_t pid;
	struct file_identity program; /* all 0: it is not known */
	struct bypass *bypass;	      /* NULL: it has ended */
	__u64 end_ns;		      /* when it ends at the latest, CLOCK_MONOTONIC */
	struct bypass_result result;
};

struct session {
	struct session_options options;
	/* The first engine is the one that was asked for. */
	struct engine *engines[SESSION_MAX_ENGINES];
	size_t n_engines;
	int epoll_fd;	/* of session__run(); -1: it does not run */
	bool has_begun; /* the engines were started */
	/* Why there is no fallback engine, a negative errno; 0: it has not been needed yet. */
	int no_fallback;
	struct profile *profile;
	char *const *argv; /* the launched command */
	/* Files of processes that are read instead of measuring a target, or NULL. */
	struct own_files *salvaged;
	struct session_files told; /* the files for which options.found() was called */
	struct target target;
	struct platform platform; /* of the command; empty without stacks, and with -p */
	struct attached attached; /* description of the target if it was not launched */
	struct memory_group group,
		target_group; /* no limit: the target's group has none, or none is known */
	bool is_in_group;     /* this process is in the group that limits the target */
	int kills_fd;	      /* count of the OOM killer in the target's group; -1: not known */
	__u64 kills_before;
	struct session_check checks[MOST_CHECKS]; /* of redirected calls */
	size_t n_checks;
	bool is_checking;
	__u64 start_realtime_ns;
	unsigned int n_signals;
	__u64 n_own_signals[2]; /* of SIGUSR1 and SIGUSR2 among options.own_signals */
	__u64 since_ns;		/* time of the last reset, CLOCK_MONOTONIC; 0: none */
	bool is_gate_open;
	__u64 gate_realtime_ns;
	/* CLOCK_MONOTONIC at which the window opens (--delay); 0: not scheduled. */
	__u64 opens_at_ns;
	struct session_marks marks;
	bool is_snapshot;
	/* In a snapshot: number of stack ids, from the first on, that the log of events has, too. */
	size_t log_stacks;
	/* A snapshot is kept even if the target allocated or freed meanwhile; the profile says so. */
	bool may_be_torn;
	__u64 torn_ms;	   /* how long reading that snapshot took, in ms */
	struct hold *hold; /* holds all processes for a cut; NULL: they run */
	__u64 cut_ns;	   /* time of the last cut, CLOCK_MONOTONIC */
	/* With --resident or --reachable: stops the command when it exits. */
	struct exit_stop exit_stop;
	/* With --resident: the parts of the resident memory when copies were made. */
	struct profile_rss_sample *rss_samples;
	size_t n_rss_samples, rss_samples_room;
};

static inline const struct engine_operations *session__operations(const struct session *session,
								  size_t engine)
{
	return session->engines[engine]->operations;
}

/* Sets the fields of @options about memory, and *@group if a control group limits memory. */
void session__take_shares(struct session_options *options, struct memory_group *group);

/* session_engines.c: opens the engine that was asked for. */
int session__open_engine(struct session *session, struct error *error);
/* Returns whether @err, an engine's error of open(), means that the kernel refuses uprobes or
 * bpf(2). */
bool session__lacks_uprobes(int err);

/* Sets at->file to the next file with known or defined allocators, probed or not. Returns false if
 * there are no more yet. */
bool session__next_file(const struct session *session, struct session_files *at);

/* session_use.c: notes the state of the target's control group, which may be another one than this
 * process's, and another one than before. */
void session__watch_group(struct session *session);
/* Returns how many processes of the group the kernel has killed for want of memory. */
__u64 session__count_kills(const struct session *session);

/* session_bypass.c: begins to check whether the redirected calls of the processes that were attached
 * to come to the engine: one process of each program. */
void session__begin_bypass_check(struct session *session);
/* Ends the check when it has taken long enough. Fails with -ENOMEM, as the next two do. */
int session__attend_bypass_check(struct session *session);
int session__end_bypass_check(struct session *session);
void session__free_bypass_check(struct session *session);
/* Returns the number of calls that were checked. */
__u64 session__checked_calls(const struct session *session);
/* Adds to the profile what the check has found. */
int session__add_bypasses(const struct session *session);

/* session_memory.c: allocates what keeps the findings, before the engines are opened. */
int session__open_memory(struct session *session, struct error *error);
/* Returns whether the processes' memory is read at all. */
static inline bool session__reads_memory(const struct session *session)
{
	return session->options.resident || session->options.reachable;
}
/* To be called before the command runs, or when the engine is attached. Fails with -ENOMEM, as the
 * next two do. */
int session__begin_memory(struct session *session);
/* To be called after each SIGCHLD: reads the command's memory when it exits. */
int session__attend_memory(struct session *session);
/* Reads the memory of the processes that run at the end, or in a snapshot. The engines count no
 * further call then. */
int session__read_memory(struct session *session);
/* Adds the samples of resident memory to the completed profile, and that of its end. */
int session__add_rss_samples(struct session *session);
/* Adds what happened so far to the profile. */
int session__add_marks(struct session *session);

/* Completes the profile. To be called when the engines have finished. Fails with -ENOMEM. */
int session__complete_profile(struct session *session);

#endif
