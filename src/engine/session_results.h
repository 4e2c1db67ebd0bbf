/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a session has measured: filled by its engine and by the session. */
#ifndef ALLOCPROF_SESSION_RESULTS_H
#define ALLOCPROF_SESSION_RESULTS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "abi.h"
#include "event_log.h"
#include "gaps.h"
#include "record_abi.h"

/* Kernel memory of --live, used and allowed. */
struct live_memory {
	/* Maxima during the run. */
	__u64 block_bytes;  /* tables of live blocks */
	__u64 record_bytes; /* records */
	__u64 entries;	    /* live blocks in the tables, as observed */
	__u64 max_blocks;   /* limit of live blocks */
	__u64 records;	    /* records in use */
	__u64 max_records;  /* limit of records */
};

struct profile;

struct region {
	const char *name; /* printable */
	__u64 entered;	  /* number of begins, by all threads */
	struct ap_site_counts counts[AP_FUNCTIONS];
	__u64 stats[AP_STATS]; /* with live, by enum ap_stat; only some are counted by region */
};

/* Adds @more to @sum; each number saturates at AP_MAX_SUM. */
void site_counts__add(struct ap_site_counts *sum, const struct ap_site_counts *more);

/* Processes that ended with the same program name. */
struct unprobed_program {
	char name[AP_COMM_LEN + 1]; /* the kernel's comm: truncated, control characters replaced */
	__u32 pid;		    /* of the first one */
	__u64 processes;
	__u64 size_bytes; /* taken from the kernel and not returned */
};

/* A function over all allocators; indexed by the sites' first function. */
struct session_function {
	bool probed; /* an allocator has a site of this function */
	struct ap_site_counts counts;
	char *const *aliases; /* other names at the same address; owned by the engine */
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

/* Returns the number of frees of unknown blocks, of all families. */
static inline __u64 session_live__frees_unknown(const struct session_live *live)
{
	__u64 sum = 0;

	for (int i = 0; i < AP_FAMILIES; i++)
		sum += live->stats[AP_STAT_FREES_UNKNOWN + i];
	return sum;
}

/* Effects of `allocprof ctl` on the run. */
struct session_marks {
	__u64 stops; /* times that the run's gate was closed */
	__u64 resets;
	bool is_dump; /* the recording went on after this profile was written */
};

/* The measured window. */
struct session_window {
	bool asked_for;	 /* else the whole run is measured */
	bool opened;	 /* at least once */
	const char *why; /* why it never opened, a clause; NULL if it did. Owned by the session. */
	__u64 undecided; /* calls whose incomplete stack may lack a --within function's frame */
};

/* The regions that files of the target mark. */
struct session_regions {
	const struct region *list; /* sorted by name; owned by the session */
	size_t n;
	bool complete; /* no gaps of regions */
};

struct session_results {
	struct session_function functions[AP_FUNCTIONS];
	__u64 events;	   /* calls that happened, counted or lost; 0 without stacks */
	__u64 not_sampled; /* of these, not sampled */
	__u64 attributed;  /* of these, in the profile; with sampling, of the sampled calls */
	__u64 lost[AP_LOST_REASONS];
	__u64 lost_total;
	__u64 processes;	 /* followed processes */
	__u64 gaps[GAP_NUMBERS]; /* those of which only a number is known */
	/* It has all gaps after session__finish(); owned by the session. */
	const struct profile *gaps_of;
	/* Processes that took memory from the kernel and hit no probe, or could not be measured. */
	__u64 processes_unprobed;
	/* Programs that the second engine measured, and its name; owned by the session. @size_bytes is unused. */
	const char *second_engine;
	const struct unprobed_program *second_programs;
	size_t n_second_programs;
	__u64 impossible; /* calls for more than any process can have, whose bytes are in no sum */
	__u64 relabelled; /* calls counted under the function they tail-called */
	__u64 processes_left; /* that the command started and that outlive the measurement */
	/* Number and total time of hits' waits for user space or for other threads. */
	__u64 waits, waits_ns;
	/* Threads that are not counted by their own name, but by one for many. */
	__u64 common_names;
	/* Lines "RUNTIME PATH" of runtimes that allocate from memory of their own (runtimes.h); NULL: none.
	 * Owned by the session. */
	const char *own_heaps;
	bool has_live;
	struct session_live live;
	struct event_log_results events_log;
	struct session_window window;
	struct session_regions regions;
	struct session_marks marks;
	bool complete; /* nothing lost, every allocator completely probed, every process followed */
	int exit_status; /* of a launched command, as a shell reports it */
	int exit_signal; /* that ended it; 0: none */
	/* Processes of the target's control group that the kernel's OOM killer has ended meanwhile, and its limit; 0: none, or not
	 * known. */
	__u64 oom_kills, group_limit_bytes;
	bool is_in_group; /* allocprof is in that group, too */
	__u64 own_bytes; /* memory of allocprof's, and of the kernel and the target for it, at the end */
	bool is_attached; /* the target ran before */
	bool target_runs; /* the target still runs */
	bool interrupted; /* a signal to allocprof or the command ended the recording */
	pid_t target_pid;
	/* These describe an attached target; each is NULL or 0 if it is unknown. The session owns them. */
	const char *target_command;  /* as a shell would take it */
	const char *target_children; /* lines "PID COMMAND" */
	__u64 target_rss_bytes;	     /* resident when the recording began */
	double elapsed_seconds, user_seconds, system_seconds; /* user and system: 0 with -p */
};

/* Progress of a running session. */
struct session_progress {
	__u64 elapsed_ns;
	__u64 calls; /* that happened, counted or lost */
	__u64 lost;  /* of these, as far as is known before the end */
	bool is_counting;
	bool has_live;
	__u64 live_size_bytes; /* of running processes */
};

#endif
