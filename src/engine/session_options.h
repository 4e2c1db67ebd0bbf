/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Options and progress of a session, which it shares with its engines. */
#ifndef ALLOCPROF_SESSION_OPTIONS_H
#define ALLOCPROF_SESSION_OPTIONS_H

#include <linux/types.h>
#include <stdbool.h>

struct probed_file;
struct process_joining;
struct definitions;
struct reach;
struct resident_memory;

/* Functions are given as SYMBOL or SYMBOL@FILE, where FILE is a path or a library's soname; NULL:
 * none. */
struct window_options {
	const char *within;   /* only calls beneath this function count */
	const char *start_on; /* a process's window opens when it calls this function */
	const char *stop_on;  /* and closes when it calls this function */
	__u64 delay_ns;	      /* for so long all windows are closed */
	bool paused;	      /* all windows are closed until `allocprof ctl start` */
};

/* Returns whether a signal, of signalfd_siginfo.ssi_signo, is among session_options.own_signals. */
static inline bool own_signals__have(__u32 own_signals, __u32 signo)
{
	return signo < 32 && own_signals & 1U << signo;
}

/* Returns whether any of them is set. */
static inline bool window_options__any(const struct window_options *options)
{
	return options->within || options->start_on || options->stop_on || options->delay_ns ||
	       options->paused;
}

/* Sizes of a run's maps, 0 for the default; tests make them small to check that every loss is
 * reported. */
struct session_limits {
	__u32 counts;		    /* counters per map */
	__u32 ring_bytes;	    /* a power of two and of pages */
	__u32 stacks_sent;	    /* stacks noted as sent */
	__u32 tail_calls;	    /* threads between a hit and its noted tail call */
	__u32 processes;	    /* processes that are followed at a time */
	__u32 threads;		    /* with live: threads with calls that have not returned */
	__u32 sites;		    /* probed functions, at most AP_MAX_SITES */
	bool no_scratch;	    /* no scratch slots */
	__u32 unread;		    /* how many counters cannot be read at first */
	__u32 check_ms;		    /* how long redirected calls are checked at most */
	bool no_last_read;	    /* reading events fails after the target has ended */
	bool no_multi, no_sessions; /* as on kernels that lack these links */
	bool no_sleepable;	    /* as on kernels where programs at probes cannot sleep */
	bool preempts;		    /* as on kernels that preempt programs at tracepoints */
};

enum session_engine {
	SESSION_ENGINE_AUTO,   /* uprobes; without the privileges for them preload, for a command */
	SESSION_ENGINE_UPROBE, /* BPF programs at uprobes */
	SESSION_ENGINE_PRELOAD, /* a library in the processes, docs/inside.md */
};

/* By default live blocks may take 1/SESSION_BLOCKS_SHARE of the memory, and records
 * 1/SESSION_RECORDS_SHARE. */
#define SESSION_BLOCKS_SHARE  4
#define SESSION_RECORDS_SHARE 8

struct session_options {
	enum session_engine engine;
	bool launches;	      /* a command is launched; else the session attaches to a process */
	char *const *command; /* the command, whose platform is written down; NULL: none is */
	/* Bit N: signal N is meant for this process, and neither ends the session nor goes to the
	 * command. */
	__u32 own_signals;
	bool stacks;	 /* count by stack into a profile; else by function */
	__u64 functions; /* mask of enum ap_function to report */
	bool live;	 /* follow blocks from allocation to free; needs all functions */
	/* With live: read which pages of processes are resident, and which blocks are on them. */
	bool resident;
	struct resident_memory
		*resident_memory; /* set by the session, which owns it; NULL without it */
	bool reachable;		  /* with live: search which blocks can be reached at the end */
	struct reach *reach;	  /* set by the session, which owns it; NULL without it */
	__u64 max_live;		  /* maximum number of live blocks; 0: limited by memory */
	__u32 max_records;	  /* with live: maximum number of records; 0: limited by memory */
	/* Set by the session: the memory of which live blocks and records take shares, and the
	 * memory that is free below a control group's limit; UINT64_MAX: there is no limit. */
	__u64 memory_bytes, free_bytes;
	__u64 interval_ns; /* time between samples of the time line; 0: it grows with the run */
	/* One byte in so many is sampled, up to AP_MAX_SAMPLE_BYTES; 0: every call counts. Needs
	 * stacks. */
	__u64 sample_bytes;
	/* With --live: path of a new file for the log of every event (event_log.h); NULL: none. */
	const char *events_path;
	/* With events_path: which blocks the log has; NULL: all. */
	const struct event_log_choice *events_choice;
	bool throttle;	      /* slow the target down rather than lose events of the log */
	bool regions;	      /* count by the program's regions, too */
	bool follow;	      /* follow children */
	bool omits_arguments; /* keep no arguments of processes, and none of the command */
	/* With running processes: a process that starts later is measured, too, if it has this; NULL:
	 * none is. */
	const struct process_joining *joins;
	bool isolates; /* a launched command sees copies of the probed files, which are its own */
	/* Also probe files that a process of a binary translator has mapped, which kills it. */
	bool ends_translators;
	/* With -p and the engine preload: time within which all threads of the process have to
	 * stop; 0: 2 s. */
	__u64 stop_limit_ns;
	__u32 max_depth;	/* frames per stack, up to AP_MAX_DEPTH; 0: stacks have none */
	__u32 stack_dump_bytes; /* maximum size of stack dumps, up to AP_MAX_STACK_DUMP */
	/* Programs and libraries that a launched command will use later: their allocators are
	 * probed before it starts. NULL-terminated, or NULL. */
	const char *const *expected;
	bool no_cache; /* neither read nor write the cache of unwind tables (table_cache.h) */
	/* Patterns of exported functions whose unknown effect is not reported; NULL-terminated, or
	 * NULL. */
	const char *const *ignored;
	const struct definitions
		*definitions; /* definitions besides malloc's, or NULL; owned by the caller */
	struct window_options window; /* the measured part of the run */
	/* If not NULL, called with each line of libbpf's log, and of the verifier's log if the
	 * kernel refuses a program. */
	void (*log)(const char *line);
	/* If not NULL, called with each file in which known or defined allocators were found,
	 * probed or not. */
	void (*found)(const struct probed_file *file);
	struct session_limits limits;
};

/* Returns whether stacks are walked: for counts by stack, or for --within. */
static inline bool session_options__walk(const struct session_options *options)
{
	return options->stacks || options->window.within;
}

/* Returns whether the window has functions that open or close it. */
static inline bool session_options__have_functions(const struct session_options *options)
{
	const struct window_options *window = &options->window;

	return window->within || window->start_on || window->stop_on;
}

/* Progress of a running session. */
struct session_progress {
	__u64 elapsed_ns;
	__u64 calls; /* number of calls that happened, counted or lost */
	__u64 lost;  /* number of lost calls, as far as it is known before the end */
	bool is_counting;
	bool has_live;
	__u64 live_size_bytes; /* bytes that are live in running processes */
};

#endif
