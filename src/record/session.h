/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Makes one measurement: loads programs, sets probes, runs the target or attaches to it, and
 * returns the profile. session__open → session__launch or session__attach → session__run →
 * session__finish → profile → session__close.
 */
#ifndef ALLOCPROF_SESSION_H
#define ALLOCPROF_SESSION_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "probed_file.h"
#include "session_options.h"

struct error;
struct profile;
struct process_set;
struct profile_rss_sample;
struct session;
struct symbols;
struct target_inheritance;

/* A further event source during session__run(). */
struct session_attendant {
	int fd; /* a descriptor to wait for; -1: none */
	/* Called after each wait, whether or not @fd is readable, at least ten times per second. A
	 * negative errno ends the session. */
	int (*attend)(struct session *session, void *context);
	void *context;
};

/* Loads the programs. Returns -EPERM, -ENOSYS or another errno, and *@error has the reason. */
int session__open(const struct session_options *options, struct session **out, struct error *error);

/*
 * Instead of a target, and in place of session__open() and all functions down to session__finish(): makes the
 * profile of what @n processes have kept in files of their own (`allocprof env`).
 */
int session__salvage(char *const *paths, size_t n, struct session **out, struct error *error);

/* How the process of such a file has ended, as far as that is known. */
enum session_salvaged_end {
	SALVAGED_RUNS, /* it goes on: the profile is of the moment of the reading */
	SALVAGED_EXITED,
	SALVAGED_EXECED,
	SALVAGED_KILLED,    /* it could not say: the counts are complete up to its last call */
	SALVAGED_UNBEGUN,   /* it was killed before it had counted anything */
	SALVAGED_NO_ROOM,   /* it could not begin to count */
	SALVAGED_ELSEWHERE, /* it is of another PID namespace, and runs or was killed */
};

struct session_salvaged {
	const char *path;
	pid_t pid; /* in its own PID namespace */
	enum session_salvaged_end end;
};

/* Stores the file number @index, in the order in which their programs began. Returns false if there are
 * fewer. */
bool session__salvaged(const struct session *session, size_t index, struct session_salvaged *out);

/* Returns the sentence that says why a file was left out, which has nothing to read; NULL if fewer were. */
const char *session__salvage_skipped(const struct session *session, size_t index);

/* Sets the probes and starts the command. Fails with the errors of execvp(3): -ENOENT, -EACCES. */
int session__launch(struct session *session, char *const argv[],
		    const struct target_inheritance *inheritance, struct error *error);

/* Sets the probes in running processes. */
int session__attach(struct session *session, struct process_set *set, struct error *error);

/*
 * Follows the target until it ends, @duration_ns (0: no limit) has passed, or signals on @signal_fd
 * (a signalfd(2)) request the end. With an attached target the first signal ends the recording; a
 * launched target gets the first signal, and the second ends the recording. -ENOMEM ends it, too,
 * and sets *@error. @attendant may be NULL.
 */
int session__run(struct session *session, __u64 duration_ns, int signal_fd,
		 const struct session_attendant *attendant, struct error *error);

/* Functions for a running session, session_control.c. */

/* Fills @progress. Takes some tens of system calls, independently of the number of counters. */
void session__progress(const struct session *session, struct session_progress *progress);

/* Memory that the processes of a session use, and events at which a copy is written. */
struct session_use {
	__u64 rss_bytes;  /* sum of their resident memory, in which shared pages count for each */
	__u64 live_bytes; /* with --live */
	/* Memory that the control group with the least free memory uses, without pages of files
	 * that the kernel can drop, and its limit; 0: there is none. */
	__u64 group_bytes, group_limit_bytes;
	__u64 oom_kills; /* number of processes of the group that the kernel has killed since
			  * the target is in it */
	/* How often this process has got SIGUSR1 and SIGUSR2 of session_options.own_signals. */
	__u64 signals[2];
};

/* Fills @use. Takes some system calls for each process. */
void session__use(struct session *session, struct session_use *use);

/* Calls @visit for each followed process that has not ended, until it returns true. Returns
 * whether it did. */
bool session__visit_processes(const struct session *session,
			      bool (*visit)(pid_t pid, void *context), void *context);

/* Opens or closes the run's gate (docs/windows.md). No call counts after it was closed. */
int session__open_gate(struct session *session, bool open);
bool session__is_gate_open(const struct session *session);

/*
 * Restarts all counts, as if the recording began now. Running processes stay known.
 */
int session__reset(struct session *session, struct error *error);

/*
 * Functions to write a profile of the run so far. session__cut() reads all counts into this
 * process. In a forked child, session__become_snapshot() then makes the child's copy of the
 * session one that ended at the cut, to be finished and reported; after it, no probe depends on
 * the child. With --live session__finish() returns -EAGAIN in the child if the target allocated or
 * freed meanwhile: then the caller tries again. @may_be_torn: it returns 0 instead, and the
 * profile has GAP_TORN. session__forget() makes the next profile begin at the last cut. If the
 * child fails after that, session__lose_forgotten() counts the forgotten calls as lost ones in the
 * next profile.
 */
int session__cut(struct session *session, struct error *error);
/* Notes that a copy of the recording was written, of the moment of the last session__cut(). @why: as below, or "". */
void session__mark_dump(struct session *session, const char *why);
/* @why: the limit that was reached (record --dump-at), which the profile keeps, or NULL. */
void session__become_snapshot(struct session *session, bool may_be_torn, const char *why);
/* Holds all followed processes (hold.h) until session__let_go(), so that a cut with --live
 * succeeds. Waits at most @most_ns until all stand still. Returns -EPERM or another errno with
 * *@error set. */
int session__hold(struct session *session, __u64 most_ns, struct error *error);
void session__let_go(struct session *session);
/* Returns whether session__search_held() is to be called for each copy (--reachable). */
bool session__searches(const struct session *session);
/* Searches the memory of all held processes for what reaches their blocks, for the copy that is made
 * next. Returns 0 or -ENOMEM. */
int session__search_held(struct session *session);
/* Keeps the parts of the resident memory of a copy (--resident), for this recording's time line.
 * Returns 0 or -ENOMEM. */
int session__keep_rss_sample(struct session *session, const struct profile_rss_sample *sample);
void session__forget(struct session *session);
void session__lose_forgotten(struct session *session);
/* Checks whether session__forget() and session__reset() are possible. Returns 0, or -EOPNOTSUPP
 * with *@error set. */
int session__check_forget(const struct session *session, struct error *error);

/* A limit of memory that a control group sets for this process. */
struct session_memory {
	const char *group;
	/* @free_bytes: memory that was free when the session was opened. */
	__u64 limit_bytes, free_bytes;
	__u64 own_bytes;  /* what this process and the kernel use for the session now */
	__u64 most_bytes; /* what live blocks may take in addition, if the limit bounds that */
};

/* To be called after session__open(). Returns false if there is no limit. */
bool session__memory_group(const struct session *session, struct session_memory *out);

/* Removes the probes, and completes the profile with the remaining counts and a description of the
 * run. A target that has not ended goes on. */
int session__finish(struct session *session, struct error *error);

/* Returns the profile, which belongs to the session. To be called after session__finish(). */
struct profile *session__profile(const struct session *session);
/*
 * Names the frames of the finished session's profile with linker names. Without @files names only
 * frames that have no file, of the vDSO and JITs. @symbols must have no modules yet. Returns 0 or
 * -ENOMEM.
 */
int session__symbolize(const struct session *session, struct symbols *symbols, bool files);

/* Returns the name of the engine that measures, as --engine takes it. */
const char *session__engine(const struct session *session);

/* Returns when the recording started, or was last reset, in ns of CLOCK_REALTIME. */
__u64 session__start_realtime_ns(const struct session *session);
/* Returns when the run's gate was opened or closed last, in ns of CLOCK_REALTIME. */
__u64 session__gate_realtime_ns(const struct session *session);
pid_t session__target_pid(const struct session *session);

void session__close(struct session *session);

#endif
