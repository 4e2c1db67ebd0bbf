/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * One measurement: programs loaded, probes set, the target run or attached to, and what was found.
 * session__open → session__launch or session__attach → session__run → session__finish → results →
 * session__close.
 */
#ifndef ALLOCPROF_SESSION_H
#define ALLOCPROF_SESSION_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "abi.h"
#include "gate.h"
#include "live_memory.h"
#include "regions.h"
#include "target.h"

struct collector;
struct error;
struct kernel;
struct probed_allocator;
struct session;
struct source;
struct source_names;
struct sources;

/* Sizes that bound a run, 0 for the default; made small to show that nothing is lost unnoticed. */
struct session_limits {
	__u32 counts;		    /* counters per map */
	__u32 ring_bytes;	    /* of the ring buffer, a power of two and of pages */
	__u32 stacks_sent;	    /* stacks that are known to have been sent */
	__u32 tail_calls;	    /* threads that may stand before a forced tail call */
	__u32 processes;	    /* followed at a time */
	__u32 threads;		    /* whose calls are followed, with live */
	bool no_scratch;	    /* nothing to build stacks in */
	__u32 unread;		    /* counters that cannot be read, the first ones */
	bool no_last_read;	    /* what comes when the target has ended cannot be read */
	bool no_multi, no_sessions; /* as on kernels that lack these links */
};

struct session_options {
	bool stacks;	   /* count by stack into a profile; else by function only */
	__u64 functions;   /* mask of enum ap_function to report */
	bool live;	   /* follow blocks from their birth to their end; needs all functions */
	__u64 max_live;	   /* blocks at a time that are followed, 0: as the memory allows */
	__u32 max_records; /* with live, stacks of processes at a time, 0: the same */
	__u64 interval_ns; /* between moments of the time line, 0: as the run grows */
	/* Of so many bytes one is chosen, to SAMPLING_MAX_BYTES; 0: every call counts. Needs stacks. */
	__u64 sample_bytes;
	bool regions;		/* count by the regions that the program marks, too */
	bool follow;		/* children too; only with a launched command */
	__u32 max_depth;	/* frames per stack, 1 to AP_MAX_DEPTH */
	__u32 stack_dump_bytes; /* sent at the most where tables do not suffice, to AP_MAX_STACK_DUMP */
	/* Programs and libraries that a launched command will use later, NULL-terminated, or NULL:
	 * they are looked at, and their allocators probed, before it starts. */
	const char *const *expected;
	bool no_cache; /* unwind tables are neither taken from table_cache.h's directory nor kept there */
	/* Patterns of names of functions that an allocator exports and that it need not be told of that they are
	 * not known; NULL-terminated, or NULL. */
	const char *const *ignored;
	const struct sources *sources; /* that count besides malloc's, or NULL; the caller's */
	struct window_options window;  /* what is counted of the run */
	/* Called with each line of libbpf's log and, where the kernel refuses a program, of the verifier's; NULL:
	 * they are dropped. */
	void (*log)(const char *line);
	struct session_limits limits;
};

/* Per function over all allocators; [AP_FUNCTIONS] by leading function of a site. */
struct session_function {
	bool probed; /* an allocator has a site under this leading name */
	struct ap_site_counts counts;
	char **aliases; /* other names of the site; borrowed from the session */
	size_t n_aliases;
};

/* What became of the memory, with live. */
struct session_live {
	/* By leading function; without stacks only. */
	struct ap_blocks functions[AP_FUNCTIONS];
	__u64 stats[AP_STATS]; /* by enum ap_stat */
	__u64 unfinished;
	__u64 untracked; /* all reasons */
	__u64 discarded, discarded_bytes;
	__u64 blocks, size_bytes; /* live, of processes that have ended too */
	__u64 peak_bytes;
	__u64 epoch_ns;
	struct live_memory memory;
};

/* What was done while it ran, by `allocprof ctl`. */
struct session_marks {
	__u64 stops; /* times that the run's gate was shut */
	__u64 resets;
	bool is_dump; /* it still ran when this was made */
};

/* Something else that is waited for while a session runs. */
struct session_attendant {
	int fd; /* -1: none */
	/* Called at each turn, whether @fd is readable or not, and ten times a second at least. A
	 * negative errno ends the session. */
	int (*attend)(struct session *session, void *context);
	void *context;
};

/* The measured window. */
struct session_window {
	bool asked_for;	 /* else all of the run is measured */
	bool opened;	 /* at least once */
	const char *why; /* it never opened, a clause; NULL where it did. The session's. */
	__u64 undecided; /* calls whose stack did not tell whether they were within */
	__u64 unnoticed; /* times that the kernel left the program out that opens and closes it */
};

/* The regions that files of the target mark. */
struct session_regions {
	const struct region *list; /* the session's, in the order of their names */
	size_t n;
	__u64 gaps[AP_REGION_GAPS];
	__u64 unnoticed; /* times that the kernel left the program out that opens and closes them */
	bool complete;	 /* none of these, and no sentence of session__region_gap() */
};

struct session_results {
	struct session_function functions[AP_FUNCTIONS];
	__u64 events;	   /* calls that happened, counted or lost; only with stacks, else 0 */
	__u64 not_sampled; /* of them, that sampling passed by */
	__u64 lost[AP_LOST_REASONS];
	__u64 lost_total;
	__u64 processes;       /* followed, of which some may share a pid over time */
	__u64 counters_unread; /* the kernel did not let them be read: numbers may be too small */
	__u64 processes_unfollowed; /* the set was full: all their calls are missing */
	/* Beginnings and ends of processes for which the ring buffer had no room: an allocator that one of them
	 * mapped later may have been missed. */
	__u64 processes_unnoticed;
	/* Processes that took memory from the kernel and called no function that is probed, and their
	 * programs, which the session owns and of which some may be missing. */
	__u64 processes_unprobed;
	const struct unprobed_program *unprobed;
	size_t n_unprobed;
	__u64 not_nested; /* calls of sources: what is beneath them was counted, and should not */
	__u64 relabelled; /* calls counted under the function they tail-called */
	/* Calls of munmap and mremap that count although the kernel did not tell in time what was mapped there. */
	__u64 mappings_unsure;
	__u64 operands_unread; /* arguments of USDT probes that counted as 0, as they could not be read */
	__u64 mappings_lost; /* that the kernel had no room to tell of: an allocator may have been missed */
	__u64 processes_left; /* that the command started and that outlive the measurement */
	/* Hits that were held up until user space had made what they needed, and how long all together. */
	__u64 waits, waits_ns;
	/* Program or library of a Python that keeps small objects in arenas of its own, NULL: none was
	 * seen. The session's. */
	const char *python_arenas;
	bool has_live;
	struct session_live live;
	struct session_window window;
	struct session_regions regions;
	struct session_marks marks;
	bool complete;	  /* nothing lost, no allocator with a gap, no process unfollowed */
	int exit_status;  /* of a launched command, as a shell reports it */
	bool is_attached; /* the target ran before we came */
	bool target_runs; /* it goes on without us */
	bool interrupted; /* a signal asked for the end, of us or of the command */
	pid_t target_pid;
	double elapsed_seconds, user_seconds, system_seconds; /* user and system 0 with -p */
};

/* Loads the programs. Needs privileges: -EPERM, -ENOSYS, … with the sentence. */
int session__open(const struct session_options *options, struct session **out, struct error *error);

/* Sets the probes and lets the command go. -ENOENT, -EACCES as execvp(3). */
int session__launch(struct session *session, char *const argv[],
		    const struct target_inheritance *inheritance, struct error *error);

/* Sets the probes in a process that runs. */
int session__attach(struct session *session, pid_t pid, struct error *error);

/*
 * Follows the target until it ends, @duration_ns (0: no limit) are over, or signals on @signal_fd
 * (a signalfd(2)) ask for the end: with an attached target the first does, a launched one gets the
 * first itself and the second ends the recording. -ENOMEM ends it as well, with the sentence.
 * @attendant may be NULL.
 */
int session__run(struct session *session, __u64 duration_ns, int signal_fd,
		 const struct session_attendant *attendant, struct error *error);

/* While it runs, session_control.c: */

/* How far it is. */
struct session_progress {
	__u64 elapsed_ns;
	__u64 calls; /* that happened, counted or lost */
	__u64 lost;  /* of them, as far as is known before the end */
	bool is_counting;
	bool has_live;
	__u64 live_size_bytes; /* of processes that run */
};

/* Takes some tens of system calls, however much was counted. */
void session__progress(const struct session *session, struct session_progress *progress);

/* Calls @visit with each process that is followed and has not ended, until it returns true; returns the
 * same. */
bool session__visit_processes(const struct session *session,
			      bool (*visit)(pid_t pid, void *context), void *context);

/* Opens or shuts the gate of the run (docs/windows.md). When it has been shut no call counts any more. */
int session__open_gate(struct session *session, bool open);
bool session__is_gate_open(const struct session *session);

/*
 * Forgets what was counted, as if the recording began now: what belongs to a process that runs is known
 * on, calls and blocks are not.
 */
int session__reset(struct session *session, struct error *error);

/*
 * For a profile of what was counted so far: session__cut() brings it into this process, where it stays
 * part of the session; then, in a forked child, session__become_snapshot() makes the copy of the session
 * there one that ended then: to be finished and reported. When it has returned, no probe depends on the
 * child. With live session__finish() gives -EAGAIN there if the target allocated or freed meanwhile: then
 * try again. session__forget() makes the next profile begin at
 * the last cut.
 */
int session__cut(struct session *session, struct error *error);
void session__become_snapshot(struct session *session);
void session__forget(struct session *session);
/* Whether session__forget() and session__reset() can be; -EOPNOTSUPP with the sentence. */
int session__check_forget(const struct session *session, struct error *error);

/* Removes the probes and collects what is left. The target goes on if it has not ended. */
int session__finish(struct session *session, struct error *error);

/* After session__finish(). */
void session__results(const struct session *session, struct session_results *results);

/* Instructions that the kernel's verifier went through to accept the program at the probes, with live the
 * one at the entries; its limit is a million. 0 before Linux 5.16. */
__u32 session__verified_instructions(const struct session *session);

/* The allocators that were probed, or not. */
const struct probed_allocator *session__allocators(const struct session *session, size_t *n);
/* Calls of the allocator's @i-th unknown function by others than itself, which are in no count. */
__u64 session__unknown_calls(const struct session *session,
			     const struct probed_allocator *allocator, size_t i);

/* What the functions of the run are called; the session's. NULL: no sources are defined. */
const struct source_names *session__source_names(const struct session *session);
const struct sources *session__sources(const struct session *session);
/* Whether no file of the run had any function of the source. */
bool session__lacks_source(const struct session *session, const struct source *source);

/* The @index-th sentence that says what is not known of regions, or NULL. */
const char *session__region_gap(const struct session *session, size_t index);

/* Parts of it for those who turn it into a profile; owned by the session. */
struct collector *session__collector(const struct session *session);
const struct kernel *session__kernel(const struct session *session);
/* session_options.sample_bytes. */
__u64 session__sample_bytes(const struct session *session);
const struct window_options *session__window(const struct session *session);
__u64 session__start_realtime_ns(const struct session *session); /* of the last reset, if any */
__u64 session__gate_realtime_ns(const struct session *session);	 /* when the run's gate was moved */
pid_t session__target_pid(const struct session *session);

void session__close(struct session *session);

#endif
