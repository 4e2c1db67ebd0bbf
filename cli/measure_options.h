/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Options and target of the commands that measure. */
#ifndef ALLOCPROF_MEASURE_OPTIONS_H
#define ALLOCPROF_MEASURE_OPTIONS_H

#include <argp.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "session.h"
#include "definitions.h"
#include "dump_limits.h"
#include "process_set.h"

struct error;
struct options_input;
struct process_set;
struct profile;
struct recorder_owner;
struct window_options;

#define MEASURE_MAX_EXPECTED 64

struct measure {
	/* The process that had this one started (recorder.h), or NULL. */
	const struct recorder_owner *owner;
	struct session_options session;
	bool has_engine; /* --engine was given */
	/* Processes that are measured, which measure__find_processes() searches for; freed by
	 * measure__release(). NULL: a command is launched. */
	struct process_set *set;
	/* Arguments of --name, --cgroup and, if there is no command, --user. */
	struct process_choice choice;
	const char *group_option; /* the option that has named a control group; NULL: none has */
	bool all;		  /* --all: no choice */
	bool follows;		  /* --follow was given */
	pid_t pid;		  /* the first process; 0: a command is launched */
	char **argv;	  /* the command, which ends with NULL; NULL if there is a process */
	const char *user; /* argument of --user, if there is a command that runs as it; else NULL */
	__u64 duration_ns; /* 0: the measurement lasts until the target ends */
	const char *expected[MEASURE_MAX_EXPECTED + 1]; /* arguments of --expect; ends with NULL */
	size_t n_expected;
	const char *ignored[MEASURE_MAX_EXPECTED + 1]; /* arguments of --ignore; ends with NULL */
	size_t n_ignored;
	struct definitions definitions; /* definitions of --allocator and --probe */
	bool follows_mappings;		/* --live takes --allocator mmap, too */
	bool estimates;			/* numbers may be estimates with a stated error */
	const char *probes[AP_MAX_DEFINITIONS];
	size_t n_probes;
	/* Arguments of --probe-in; ends with NULL. */
	const char *probe_files[MEASURE_MAX_EXPECTED + 1];
	size_t n_probe_files;
	const char *selected; /* argument of -e; NULL: not given */
	bool faults;	      /* --faults was given */
	bool quiet;	      /* print only warnings and errors */
	bool verbose;	      /* print the probes and libbpf's log */
	/* The run is one of a series, which allocprof-ctl(1) cannot control. */
	bool repeats;
	/*
	 * Writes the profile of the finished @session to @path and the number of its calls to
	 * @calls, for `allocprof ctl dump`, or at a limit; measure.dump_path is where the final
	 * profile goes. @replaces: fast, without names, and in the place of an older file, for a
	 * checkpoint or at the peak, or with @path NULL for the owner. NULL: the command writes no
	 * profile.
	 */
	int (*dump)(void *context, struct session *session, const char *path, bool replaces,
		    __u64 *calls, struct error *error);
	void *dump_context;
	const char *dump_path;
	/* Path where the profile is kept while it grows, or NULL. *@is_kept is set when the first
	 * one begins. */
	const char *checkpoint_path;
	bool *is_kept;
	struct dump_limits dump_limits; /* of --dump-at */
	/* Path of the copy at the peak (--dump-at=peak), or NULL. *@has_peak is set at the end if it
	 * was written. */
	const char *peak_path;
	bool *has_peak;
	__u64 n_kept_dumps; /* how many of these copies are kept; 0: all */
	/* Resident memory of the process from which on it is measured; 0: from the beginning. */
	__u64 begin_rss_bytes;
};

/* Keys of the options in this file, and the first key for a command's own options. */
enum {
	OPT_NO_FOLLOW = 1024,
	OPT_DURATION,
	OPT_MAX_DEPTH,
	OPT_EXPECT,
	OPT_IGNORE,
	OPT_STACK_DUMP,
	OPT_NO_CACHE,
	OPT_INJECT,
	OPT_ALLOCATOR,
	OPT_FAULTS,
	OPT_PROBE,
	OPT_PROBE_IN,
	OPT_USDT,
	OPT_ENGINE,
	OPT_USER,
	OPT_ISOLATE,
	OPT_NO_ISOLATE,
	OPT_FORCE,
	OPT_STOP_LIMIT,
	OPT_NAME,
	OPT_CGROUP,
	OPT_UNIT,
	OPT_CONTAINER,
	OPT_FOLLOW,
	OPT_LIVE,
	OPT_SAMPLE,
	OPT_MAX_LIVE,
	OPT_MAX_RECORDS,
};

/* Rows of an argp table. Each command takes the rows that it has use for. */
/* Versions of clang-format disagree on these lines. */
/* clang-format off */
#define MEASURE_OPTIONS_PID                                                                        \
	{ "pid", 'p', "PID[,PID...]", 0,                                                           \
	  "Attach to these processes instead of running a command", 0 },                           \
	{ "name", OPT_NAME, "NAME", 0,                                                             \
	  "Attach to the processes of programs of this name, with * and ?, also to those that "    \
	  "start later", 0 },                                                                      \
	{ "cgroup", OPT_CGROUP, "GROUP", 0,                                                        \
	  "The same with those of a control group: its path, or a part of that", 0 },              \
	{ "unit", OPT_UNIT, "UNIT", 0,                                                             \
	  "The same with those of a unit of systemd: nginx or nginx.service", 0 },                 \
	{ "container", OPT_CONTAINER, "NAME|ID", 0,                                                \
	  "The same with those of a container of docker, podman, containerd, CRI-O or runc", 0 },  \
	{ "all", 'a', NULL, 0, "Attach to all processes, also to those that start later", 0 },     \
	{ "follow", OPT_FOLLOW, NULL, 0,                                                           \
	  "With -p: also the processes that it starts from then on", 0 },                          \
	{ "stop-limit", OPT_STOP_LIMIT, "TIME", 0,                                                 \
	  "With -p and --engine=preload: end if the threads take longer to stop (default: 2s)", 0 }
#define MEASURE_OPTION_NO_FOLLOW                                                                   \
	{ "no-follow", OPT_NO_FOLLOW, NULL, 0,                                                     \
	  "Only the command itself, not the processes that it starts", 0 }
#define MEASURE_OPTION_USER                                                                        \
	{ "user", OPT_USER, "NAME", 0,                                                             \
	  "Run the command as this user, with its groups; with options that search for processes: only its", 0 }
#define MEASURE_OPTIONS_ISOLATE                                                                    \
	{ "isolate", OPT_ISOLATE, NULL, 0,                                                         \
	  "Give the command copies of the probed files, so that no other process meets the probes", 0 }, \
	{ "no-isolate", OPT_NO_ISOLATE, NULL, 0,                                                   \
	  "Probe the files that all processes share (default)", 0 },                               \
	{ "force", OPT_FORCE, NULL, 0,                                                             \
	  "Set probes even where valgrind runs a process with the same files, which they end", 0 }
#define MEASURE_OPTION_EVENTS                                                                      \
	{ "event", 'e', "LIST", 0,                                                                 \
	  "Only these functions, separated by commas: malloc, calloc, realloc, reallocarray, "     \
	  "posix_memalign, aligned_alloc, memalign, valloc, pvalloc, free; new, delete and others " \
	  "of other allocators", 0 }
#define MEASURE_OPTION_DURATION                                                                    \
	{ "duration", OPT_DURATION, "TIME", 0,                                                     \
	  "End after TIME: a number with ms, s, m or h; the target goes on", 0 }
#define MEASURE_OPTION_VERBOSE                                                                     \
	{ "verbose", 'v', NULL, 0,                                                                 \
	  "Say what is probed, and what the kernel and libbpf say when they refuse a program", 0 }
#define MEASURE_OPTION_QUIET { "quiet", 'q', NULL, 0, "Say nothing but what is wrong or missing", 0 }
#define MEASURE_OPTION_EXPECT                                                                      \
	{ "expect", OPT_EXPECT, "FILE", 0,                                                         \
	  "A program or library that the command will use later: probe its allocator now", 0 }
#define MEASURE_OPTION_ENGINE                                                                      \
	{ "engine", OPT_ENGINE, "NAME", 0,                                                         \
	  "Count calls with this engine: uprobe, in the kernel; preload, by a library that is loaded "\
	  "into the command, without privileges, or with -p into the process; or auto (default)", 0 }
#define MEASURE_OPTION_NO_CACHE                                                                    \
	{ "no-cache", OPT_NO_CACHE, NULL, 0,                                                       \
	  "Make all unwind tables anew, and keep none for the next time", 0 }
#define MEASURE_OPTION_IGNORE                                                                      \
	{ "ignore", OPT_IGNORE, "FUNCTION", 0,                                                     \
	  "This exported function of an allocator hands out no memory: do not report it", 0 }
#define MEASURE_OPTION_FAULTS                                                                      \
	{ "faults", OPT_FAULTS, NULL, 0,                                                           \
	  "Count page faults, by which memory becomes resident, and nothing else: short for "      \
	  "--allocator faults -e minor-fault,major-fault", 0 }
#define MEASURE_OPTIONS_DEFINITIONS                                                                    \
	{ "allocator", OPT_ALLOCATOR, "LIST", 0,                                                   \
	  "Count what these definitions of allocators and pools say, too, separated by commas: "   \
	  "names, or files with a / in their path (allocprof-allocators(5)); mmap: what is taken "  \
	  "from the kernel; faults: page faults", 0 },                                             \
	{ "probe", OPT_PROBE, "FUNCTIONS", 0,                                                      \
	  "Count these functions, too: 'alloc=pool_get(size=arg0), free=pool_put(ptr=arg0)'", 0 }, \
	{ "probe-in", OPT_PROBE_IN, "FILE", 0,                                                     \
	  "Look for the functions of --probe in FILE alone", 0 },                                   \
	{ "usdt", OPT_USDT, "FILE:PROBES", 0,                                                      \
	  "Count these USDT probes of FILE, too: "                                                 \
	  "'app:alloc=pool:get(size=arg1)->arg0, free=pool:put(ptr=arg0)'", 0 }
/* Options of record, which also those commands take that have it record for them (recorder.h). */
#define RECORD_OPTION_LIVE { "live", OPT_LIVE, NULL, 0, "Follow memory until it is freed", 0 }
#define RECORD_OPTION_SAMPLE                                                                       \
	{ "sample", OPT_SAMPLE, "BYTES", 0,                                                        \
	  "Sample one call for about every BYTES requested, and estimate the rest", 0 }
#define RECORD_OPTIONS_LIMITS                                                                      \
	{ "max-depth", OPT_MAX_DEPTH, "N", 0, "Keep N frames of a stack, 1 to 512 (default 127)",  \
	  0 },                                                                                     \
	{ "stack-dump", OPT_STACK_DUMP, "BYTES", 0,                                                \
	  "Send up to BYTES of stack where unwind tables do not suffice (default 16384)", 0 },     \
	{ "max-live", OPT_MAX_LIVE, "N", 0,                                                        \
	  "With --live, follow N blocks at a time at the most (default: what a quarter of the "    \
	  "memory holds)", 0 },                                                                    \
	{ "max-records", OPT_MAX_RECORDS, "N", 0,                                                  \
	  "With --live, keep N stacks of processes at a time at the most (default: what an eighth " \
	  "of the memory holds)", 0 }
/* For tests that provoke each kind of loss. */
#define MEASURE_OPTION_INJECT { "inject", OPT_INJECT, "LIST", OPTION_HIDDEN, NULL, 0 }
/* clang-format on */

/* Parses one of these options, or a word of the target's command. Returns OPTIONS_UNKNOWN for any
 * other key. */
int measure__parse(struct measure *measure, int key, char *arg, struct options_input *input);

/* Derives the engine and the definitions from all options together, whatever the target is.
 * Returns 0, or -EINVAL with @error set. */
int measure__resolve(struct measure *measure, struct error *error);

/*
 * Checks what can be checked only when all options are known: that there is one target, the
 * definitions, and the selected functions. Returns 0, or -EINVAL with @error set.
 */
int measure__check(struct measure *measure, const char *command, struct error *error);

/* Returns whether running processes are measured, and no command. */
bool measure__attaches(const struct measure *measure);

/* Finds the processes that --name and --cgroup name, and decides whether their children are
 * followed. Returns 0 or a negative errno with @error set. */
int measure__find_processes(struct measure *measure, struct error *error);
void measure__release(struct measure *measure);

enum {
	OPT_WITHIN = 1100,
	OPT_START_ON,
	OPT_STOP_ON,
	OPT_DELAY,
	OPT_PAUSED,
};

/* Rows of an argp table. */
/* clang-format off */
#define WINDOW_OPTIONS                                                                             \
	{ "within", OPT_WITHIN, "FUNCTION", 0,                                                     \
	  "Only calls made while FUNCTION, SYMBOL or SYMBOL@FILE, is on the thread's stack", 0 },  \
	{ "start-on", OPT_START_ON, "FUNCTION", 0,                                                 \
	  "Begin in each process when it calls FUNCTION", 0 },                                     \
	{ "stop-on", OPT_STOP_ON, "FUNCTION", 0,                                                   \
	  "Stop in each process when it calls FUNCTION", 0 },                                      \
	{ "delay", OPT_DELAY, "TIME", 0,                                                           \
	  "Begin after TIME: a number with ms, s, m or h", 0 },                                    \
	{ "paused", OPT_PAUSED, NULL, 0, "Begin when `allocprof ctl start` says so", 0 }
/* clang-format on */

/* Returns the exit status of a command that measured: that of an error also if nothing was
 * measured. */
int window_options__status(const struct profile *profile);

#endif
