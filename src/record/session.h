/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * One measurement: load programs, set probes, run the target or attach to it, and get the results.
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

/* Sizes of a run's maps, 0 for the default; tests make them small to check that every loss is
 * reported. */
struct session_limits {
	__u32 counts;		    /* counters per map */
	__u32 ring_bytes;	    /* a power of two and of pages */
	__u32 stacks_sent;	    /* stacks noted as sent */
	__u32 tail_calls;	    /* threads between a hit and its noted tail call */
	__u32 processes;	    /* followed at a time */
	__u32 threads;		    /* with live: threads with calls that have not returned */
	bool no_scratch;	    /* no scratch slots */
	__u32 unread;		    /* number of counters whose first reads fail */
	bool no_last_read;	    /* reading events fails after the target has ended */
	bool no_multi, no_sessions; /* as on kernels without these links */
};

struct session_options {
	bool stacks;	   /* count by stack into a profile; else by function */
	__u64 functions;   /* mask of enum ap_function to report */
	bool live;	   /* follow blocks from allocation to free; needs all functions */
	__u64 max_live;	   /* maximum number of live blocks; 0: limited by memory */
	__u32 max_records; /* with live: maximum number of records; 0: limited by memory */
	__u64 interval_ns; /* between moments of the time line; 0: grows with the run */
	/* Sample one byte in so many, up to SAMPLING_MAX_BYTES; 0: count every call. Needs
	 * stacks. */
	__u64 sample_bytes;
	bool regions;		/* count by the program's regions, too */
	bool follow;		/* follow children; only with a launched command */
	__u32 max_depth;	/* frames per stack, 1 to AP_MAX_DEPTH */
	__u32 stack_dump_bytes; /* maximum size of user-stack snapshots, up to AP_MAX_STACK_DUMP */
	/* Programs and libraries that a launched command will use later, NULL-terminated, or NULL:
	 * their allocators are probed before it starts. */
	const char *const *expected;
	bool no_cache; /* neither read nor write the cache of unwind tables (table_cache.h) */
	/* Patterns of exported functions whose unknown effect is not reported; NULL-terminated, or
	 * NULL. */
	const char *const *ignored;
	const struct sources *sources; /* sources besides malloc's, or NULL; owned by the caller */
	struct window_options window;  /* the measured part of the run */
	/* Called with each line of libbpf's log, and of the verifier's if the kernel refuses a
	 * program; NULL: they are dropped. */
	void (*log)(const char *line);
	struct session_limits limits;
};

/* A function over all allocators; indexed by the sites' first function. */
struct session_function {
	bool probed; /* an allocator has a site of this function */
	struct ap_site_counts counts;
	char **aliases; /* other names at the same address; borrowed from the session */
	size_t n_aliases;
};

/* Statistics of live memory. */
struct session_live {
	/* By the sites' first function; without stacks only. */
	struct ap_blocks functions[AP_FUNCTIONS];
	__u64 stats[AP_STATS]; /* by enum ap_stat */
	__u64 unfinished;
	__u64 untracked; /* for all reasons */
	__u64 discarded, discarded_bytes;
	__u64 blocks, size_bytes; /* live at the end, also of processes that have ended */
	__u64 peak_bytes;
	__u64 epoch_ns;
	struct live_memory memory;
};

/* What `allocprof ctl` did during the run. */
struct session_marks {
	__u64 stops; /* times that the run's gate was closed */
	__u64 resets;
	bool is_dump; /* the recording went on after this profile was written */
};

/* A further event source during session__run(). */
struct session_attendant {
	int fd; /* -1: none */
	/* Called after each wait, whether or not @fd is readable, at least ten times per second. A
	 * negative errno ends the session. */
	int (*attend)(struct session *session, void *context);
	void *context;
};

/* The measured window. */
struct session_window {
	bool asked_for;	 /* else the whole run is measured */
	bool opened;	 /* at least once */
	const char *why; /* why it never opened, a clause; NULL if it did. Owned by the session. */
	__u64 undecided; /* calls whose incomplete stack may lack a --within function's frame */
	__u64 unnoticed; /* times that the kernel skipped the program that opens and closes it */
};

/* The regions that files of the target mark. */
struct session_regions {
	const struct region *list; /* sorted by name; owned by the session */
	size_t n;
	__u64 gaps[AP_REGION_GAPS];
	__u64 unnoticed; /* times that the kernel skipped the program at the marks */
	bool complete;	 /* no gaps, none unnoticed, and no session__region_gap() */
};

struct session_results {
	struct session_function functions[AP_FUNCTIONS];
	__u64 events;	   /* calls that happened, counted or lost; 0 without stacks */
	__u64 not_sampled; /* of these, not sampled */
	__u64 lost[AP_LOST_REASONS];
	__u64 lost_total;
	__u64 processes; /* followed processes */
	/* Failed reads of the programs' counters: numbers may be too small. */
	__u64 counters_unread;
	/* Not followed since the map was full: their calls are missing. */
	__u64 processes_unfollowed;
	/* Process records for which the ring buffer had no room: an allocator that such a process
	 * mapped later may have been missed. */
	__u64 processes_unnoticed;
	/* Processes that took memory from the kernel and hit no probe, and their programs, which
	 * the session owns; the list may be incomplete. */
	__u64 processes_unprobed;
	const struct unprobed_program *unprobed;
	size_t n_unprobed;
	__u64 not_nested; /* calls of sources beneath which calls were counted that should not be */
	__u64 relabelled; /* calls counted under the function they tail-called */
	/* munmap and mremap calls counted although bpf_find_vma() did not report in time what was
	 * mapped there. */
	__u64 mappings_unsure;
	__u64 operands_unread; /* USDT arguments that could not be read and count as 0 */
	/* Mapping events lost by the kernel: an allocator may have been missed. */
	__u64 mappings_lost;
	__u64 processes_left; /* that the command started and that outlive the measurement */
	/* Number and total time of hits' waits for user space or for other threads. */
	__u64 waits, waits_ns;
	/* Program or library of a Python that allocates small objects from its own arenas, or NULL.
	 * Owned by the session. */
	const char *python_arenas;
	bool has_live;
	struct session_live live;
	struct session_window window;
	struct session_regions regions;
	struct session_marks marks;
	bool complete; /* nothing lost, every allocator completely probed, every process followed */
	int exit_status;  /* of a launched command, as a shell reports it */
	bool is_attached; /* the target ran before */
	bool target_runs; /* the target still runs */
	bool interrupted; /* a signal to allocprof or the command ended the recording */
	pid_t target_pid;
	double elapsed_seconds, user_seconds, system_seconds; /* user and system: 0 with -p */
};

/* Loads the programs. -EPERM, -ENOSYS, …, and *@error has the reason. */
int session__open(const struct session_options *options, struct session **out, struct error *error);

/* Sets the probes and starts the command. -ENOENT, -EACCES as execvp(3). */
int session__launch(struct session *session, char *const argv[],
		    const struct target_inheritance *inheritance, struct error *error);

/* Sets the probes in a running process. */
int session__attach(struct session *session, pid_t pid, struct error *error);

/*
 * Follows the target until it ends, @duration_ns (0: no limit) has passed, or signals on @signal_fd
 * (a signalfd(2)) request the end. With an attached target the first signal ends the recording; a
 * launched target gets the first signal, and the second ends the recording. -ENOMEM ends it, too,
 * and sets *@error. @attendant may be NULL.
 */
int session__run(struct session *session, __u64 duration_ns, int signal_fd,
		 const struct session_attendant *attendant, struct error *error);

/* Functions for a running session, session_control.c. */

/* Progress of a running session. */
struct session_progress {
	__u64 elapsed_ns;
	__u64 calls; /* that happened, counted or lost */
	__u64 lost;  /* of these, as far as is known before the end */
	bool is_counting;
	bool has_live;
	__u64 live_size_bytes; /* of running processes */
};

/* Takes some tens of system calls, independently of the number of counters. */
void session__progress(const struct session *session, struct session_progress *progress);

/* Calls @visit for each followed process that has not ended, until it returns true; returns whether
 * it did. */
bool session__visit_processes(const struct session *session,
			      bool (*visit)(pid_t pid, void *context), void *context);

/* Opens or closes the run's gate (docs/windows.md). After closing it no call counts any more. */
int session__open_gate(struct session *session, bool open);
bool session__is_gate_open(const struct session *session);

/*
 * Restarts all counts, as if the recording began now. Running processes stay known.
 */
int session__reset(struct session *session, struct error *error);

/*
 * To write a profile of the run so far: session__cut() reads all counts into this process. In a
 * forked child, session__become_snapshot() then makes the child's copy of the session one that
 * ended at the cut, to be finished and reported; after it, no probe depends on the child. With live
 * session__finish() returns -EAGAIN in the child if the target allocated or freed meanwhile: then
 * retry. session__forget() makes the next profile begin at the last cut.
 */
int session__cut(struct session *session, struct error *error);
void session__become_snapshot(struct session *session);
void session__forget(struct session *session);
/* Whether session__forget() and session__reset() are possible; -EOPNOTSUPP sets *@error. */
int session__check_forget(const struct session *session, struct error *error);

/* Removes the probes and collects the remaining counts. The target continues if it has not
 * ended. */
int session__finish(struct session *session, struct error *error);

/* After session__finish(). */
void session__results(const struct session *session, struct session_results *results);

/* Number of instructions that the verifier processed for the program at the probes (with live, at
 * the entries); its limit is a million. 0 before Linux 5.16. */
__u32 session__verified_instructions(const struct session *session);

/* All allocators found, probed or not. */
const struct probed_allocator *session__allocators(const struct session *session, size_t *n);
/* Calls of the allocator's @i-th unknown function from outside of its file, which are not
 * counted. */
__u64 session__unknown_calls(const struct session *session,
			     const struct probed_allocator *allocator, size_t i);

/* Names of the sources' functions; owned by the session. NULL: no sources are defined. */
const struct source_names *session__source_names(const struct session *session);
const struct sources *session__sources(const struct session *session);
/* Whether no file of the run had any function of the source. */
bool session__lacks_source(const struct session *session, const struct source *source);

/* The @index-th sentence about what is unknown of regions, or NULL. */
const char *session__region_gap(const struct session *session, size_t index);

/* Parts of the session, to build a profile from; owned by the session. */
struct collector *session__collector(const struct session *session);
const struct kernel *session__kernel(const struct session *session);
/* session_options.sample_bytes. */
__u64 session__sample_bytes(const struct session *session);
const struct window_options *session__window(const struct session *session);
/* Of the last reset, if any. */
__u64 session__start_realtime_ns(const struct session *session);
/* When the run's gate was opened or closed last. */
__u64 session__gate_realtime_ns(const struct session *session);
pid_t session__target_pid(const struct session *session);

void session__close(struct session *session);

#endif
