/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Options and progress of a session, which it shares with its engines. */
#ifndef ALLOCPROF_SESSION_OPTIONS_H
#define ALLOCPROF_SESSION_OPTIONS_H

#include <linux/types.h>
#include <stdbool.h>

struct probed_file;
struct definitions;

/* Functions are SYMBOL or SYMBOL@FILE, where FILE is a path or a library's soname; NULL: none. */
struct window_options {
	const char *within;   /* count only calls beneath it */
	const char *start_on; /* a process's window opens when it calls this function */
	const char *stop_on;  /* and closes when it calls this one */
	__u64 delay_ns;	      /* all windows are closed for so long */
	bool paused;	      /* all windows are closed until `allocprof ctl start` */
};

/* Whether any of them is set. */
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
	__u32 processes;	    /* followed at a time */
	__u32 threads;		    /* with live: threads with calls that have not returned */
	__u32 sites;		    /* probed functions, at most AP_MAX_SITES */
	bool no_scratch;	    /* no scratch slots */
	__u32 unread;		    /* number of counters whose first reads fail */
	bool no_last_read;	    /* reading events fails after the target has ended */
	bool no_multi, no_sessions; /* as on kernels without these links */
	bool no_sleepable;	    /* as on kernels where programs at probes cannot be */
	bool preempts;		    /* as on kernels that preempt programs at tracepoints */
};

enum session_engine {
	SESSION_ENGINE_AUTO,   /* uprobes; without the privileges for them preload, for a command */
	SESSION_ENGINE_UPROBE, /* BPF programs at uprobes */
	SESSION_ENGINE_PRELOAD, /* a library in the processes, docs/inside.md */
};

/* Shares of the memory that live blocks and records may take by default. */
#define SESSION_BLOCKS_SHARE  4
#define SESSION_RECORDS_SHARE 8

struct session_options {
	enum session_engine engine;
	bool launches;	   /* a command is launched; else a process is attached to */
	bool stacks;	   /* count by stack into a profile; else by function */
	__u64 functions;   /* mask of enum ap_function to report */
	bool live;	   /* follow blocks from allocation to free; needs all functions */
	__u64 max_live;	   /* maximum number of live blocks; 0: limited by memory */
	__u32 max_records; /* with live: maximum number of records; 0: limited by memory */
	/* Set by the session: the memory that live blocks and others take shares of, and, where a control group has a limit, what is
	 * free below it; else UINT64_MAX. */
	__u64 memory_bytes, free_bytes;
	__u64 interval_ns; /* between samples of the time line; 0: grows with the run */
	/* Sample one byte in so many, up to SAMPLING_MAX_BYTES; 0: count every call. Needs
	 * stacks. */
	__u64 sample_bytes;
	/* With live: path of the log of every event (event_log.h), which is new; NULL: none. */
	const char *events_path;
	bool throttle; /* slow the target down rather than lose events of the log */
	bool regions;  /* count by the program's regions, too */
	bool follow;   /* follow children; only with a launched command */
	bool isolates; /* a launched command sees copies of the probed files, which are its own */
	bool ends_translators; /* also probe files that a binary translator has mapped, which ends it */
	/* With -p and the engine preload: all threads of the process have to stop within this time; 0: 2 s. */
	__u64 stop_limit_ns;
	__u32 max_depth;	/* frames per stack, 1 to AP_MAX_DEPTH */
	__u32 stack_dump_bytes; /* maximum size of stack dumps, up to AP_MAX_STACK_DUMP */
	/* Programs and libraries that a launched command will use later, NULL-terminated, or NULL:
	 * their allocators are probed before it starts. */
	const char *const *expected;
	bool no_cache; /* neither read nor write the cache of unwind tables (table_cache.h) */
	/* Patterns of exported functions whose unknown effect is not reported; NULL-terminated, or
	 * NULL. */
	const char *const *ignored;
	const struct definitions
		*definitions; /* definitions besides malloc's, or NULL; owned by the caller */
	struct window_options window; /* the measured part of the run */
	/* Called with each line of libbpf's log, and of the verifier's if the kernel refuses a
	 * program; NULL: they are dropped. */
	void (*log)(const char *line);
	/* Called with each file that was found to have known or defined allocators, probed or not; NULL: nothing is. */
	void (*found)(const struct probed_file *file);
	struct session_limits limits;
};

/* Whether stacks are walked: for counts by stack, or for --within. */
static inline bool session_options__walk(const struct session_options *options)
{
	return options->stacks || options->window.within;
}

/* Whether the window has functions that open or close it. */
static inline bool session_options__have_functions(const struct session_options *options)
{
	const struct window_options *window = &options->window;

	return window->within || window->start_on || window->stop_on;
}

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
