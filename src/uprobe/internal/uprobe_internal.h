/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Internals of the uprobe engine. */
#ifndef ALLOCPROF_UPROBE_INTERNAL_H
#define ALLOCPROF_UPROBE_INTERNAL_H

#include <time.h>

#include "bpf_maps.h"
#include "engine.h"
#include "event_abi.h"
#include "event_log.h"
#include "kernel.h"
#include "kernel_types.h"
#include "mapping_events.h"
#include "target.h"
#include "unprobed.h"

struct allocprof_bpf;
struct bpf_program;
struct collector_code;
struct faults;
struct gate;
struct kernel_types;
struct mapping_events;
struct parser;
struct probes;
struct pythons;
struct regions;
struct ring_reader;
struct runtimes;
struct slots;
struct stat;

/* A mapping of a process that may turn out to be followed. */
struct mapping_candidate {
	struct mapping_event event;
	struct mapping_candidate *next;
};

/* The programs' counters at one moment. */
struct uprobe_counters {
	__u64 stats[AP_STATS];
	__u64 recursion, gate_recursion; /* times that the kernel skipped programs */
	__u64 mappings_lost;
	__u64 processes; /* followed processes that had ended */
};

/* Private to uprobe_fallback.c. */
struct fallback;
/* Private to uprobe_programs.c. */
struct late_program;

/* How often, and after how many microseconds, the memory of a control group is checked again: the
 * kernel frees the maps of an earlier session only when no sleepable program runs any more, which
 * takes longer on a busy machine, and until then they count as used. */
#define MEMORY_TRIES   10
#define MEMORY_WAIT_US 100000

/* Size of the ring buffer with --events: a million events, of 64 bytes,
 * which a busy thread makes in two seconds. */
#define EVENTS_RING_BYTES (64 << 20)

struct uprobe {
	struct engine engine;
	struct session_options options;
	const struct target *target;
	bool has_stopped; /* no call counts any more */
	struct kernel kernel;
	struct kernel_types *kernel_types; /* NULL when the programs are loaded */
	/* File of the types that the programs use; -1: the kernel's are used. */
	int types_fd;
	struct sleepable sleepable; /* functions of the kernel that the programs call */
	struct allocprof_bpf *skeleton;
	struct late_program *late; /* list of the programs that uprobe__load_late() has loaded */
	struct ring_reader *ring;
	struct mapping_events *mapping_events;
	struct probes *probes;
	struct parser *parser;	 /* reads files for this thread */
	struct profile *profile; /* belongs to the session */
	struct collector *collector;
	struct slots *slots;
	struct count_maps counts;
	struct counters *counters;
	struct live *live;		     /* NULL without --live */
	struct event_collector *events;	     /* NULL without --events, and in a snapshot */
	struct event_log_results log_at_cut; /* results of the log at the cut, only in a snapshot */
	struct gate *gate;		     /* NULL: the whole run is measured */
	struct pythons *pythons;	     /* NULL without stacks */
	struct runtimes *runtimes;
	struct unprobed unprobed;
	struct regions *regions; /* NULL: no regions */
	struct faults *faults;	 /* NULL: page faults are not counted */
	pid_t late_pid;		 /* process whose new mapping is being probed, else 0 */
	struct mapping_candidate *candidates, **candidates_end;
	__u64 mappings_dropped; /* number of mapping events that were lost for want of memory */
	bool multi;    /* one uprobe_multi link per allocator, else one perf event per probe */
	bool sessions; /* the kernel supports uprobe sessions: one program at entry and return */
	int read_err;  /* error of reading records before uprobe__read_events() was called */
	struct fallback *fallback; /* NULL: this is the session's only engine */
	__u64 processes_left;
	struct uprobe_counters forgotten; /* counters at the last reset, to subtract */
	/* Number of calls that all resets together have forgotten. */
	__u64 forgotten_events;
	__u64 last_forgotten_events; /* number of calls that the last reset has forgotten */
	bool is_snapshot;
	struct uprobe_counters at_cut;
	__u64 events_at_cut; /* number of calls that a snapshot must account for at least */
	__u64 cut_ns;	     /* CLOCK_MONOTONIC */
	__u64 live_activity; /* live__activity() before the cut */
};

/* Returns the struct of which @engine is a part. */
static inline struct uprobe *uprobe__of(const struct engine *engine)
{
	return (struct uprobe *)engine;
}

/* With --live: returns the largest number of records. */
__u32 uprobe__max_records(const struct session_options *options);

/* Loads the programs and maps that the options need. */
int uprobe__load_programs(struct uprobe *uprobe, struct error *error);
bool uprobe__is_preempted(const struct uprobe *uprobe);
/* Returns the program at the entries of allocating functions; with sessions it may not be loaded. */
struct bpf_program *uprobe__entry_program(const struct uprobe *uprobe);
/* Returns the program at USDT probes of definitions. */
struct bpf_program *uprobe__usdt_program(const struct uprobe *uprobe);
/*
 * If *@program was left out when the programs were loaded, loads it by itself, once, and stores
 * the loaded one in *@program. For programs that few targets need: at the marks of regions, at
 * functions of unknown effect and, with sessions, at entries of allocators whose returns must not
 * be probed.
 */
int uprobe__load_late(struct uprobe *uprobe, struct bpf_program **program, struct error *error);
/* Returns @program of the skeleton, or the one that uprobe__load_late() has loaded in its place. */
struct bpf_program *uprobe__loaded(const struct uprobe *uprobe, struct bpf_program *program);
void uprobe__free_late(struct uprobe *uprobe);

/* uprobe_start.c, uprobe_events.c, uprobe_cut.c, uprobe_results.c: operations of the engine
 * (engine.h). */
int uprobe__read_blocks(struct engine *engine, pid_t pid, struct reach_process *out);
int uprobe__stop(struct engine *engine);
int uprobe__await_child(struct engine *engine, bool awaits, struct error *error);
int uprobe__launch(struct engine *engine, char *const argv[], struct error *error);
int uprobe__attach(struct engine *engine, struct error *error);
int uprobe__attach_more(struct engine *engine, size_t from, struct error *error);
int uprobe__start(struct engine *engine, __u64 now_ns, struct error *error);
int uprobe__watch(const struct engine *engine, int epoll_fd);
int uprobe__read(struct engine *engine);
int uprobe__timeout_ms(const struct engine *engine, int most);
int uprobe__finish(struct engine *engine);
int uprobe__open_gate(struct engine *engine, bool open);
void uprobe__progress(const struct engine *engine, struct session_progress *progress);
int uprobe__cut(struct engine *engine, __u64 *cut_ns);
void uprobe__become_snapshot(struct engine *engine);
void uprobe__forget(struct engine *engine);
void uprobe__lose_forgotten(struct engine *engine);
int uprobe__reset(struct engine *engine, __u64 *cut_ns);
int uprobe__results(struct engine *engine);
bool uprobe__file(const struct engine *engine, size_t index, struct probed_file *out);
__u64 uprobe__unknown_calls(const struct engine *engine, size_t file, size_t index);

int uprobe__read_events(struct uprobe *uprobe);
/* Reads only the mapping events, which are needed to unwind stack dumps. */
void uprobe__read_mappings(struct uprobe *uprobe);
/* Returns how to run @program at probes that only @pid hits; 0: every process. */
struct probe_program uprobe__at_probes(struct uprobe *uprobe, struct bpf_program *program,
				       pid_t pid);

/* Return sums over CPUs and programs since the engine was opened, including what a reset forgot. */
__u64 uprobe__raw_stat(const struct uprobe *uprobe, __u32 which);
__u64 uprobe__recursion_misses(const struct uprobe *uprobe);
__u64 uprobe__gate_recursion_misses(const struct uprobe *uprobe);
/* Returns the number of lost file mapping events since the engine was opened. */
__u64 uprobe__mappings_lost(const struct uprobe *uprobe);
/* Returns the number of calls since the last reset, by the programs' own counter. */
__u64 uprobe__count_events(const struct uprobe *uprobe);
/* Returns the number of calls of reported functions by the sites' counters, which programs use
 * without stacks. */
__u64 uprobe__count_site_calls(const struct uprobe *uprobe);
/* Returns the number of calls that were lost for @reason, which is not AP_LOST_UNACCOUNTED. */
__u64 uprobe__count_lost(const struct uprobe *uprobe, enum ap_lost reason);
/* To be called in the snapshot's child. With --live returns -EAGAIN if a program ran meanwhile. */
int uprobe__collect_snapshot(struct uprobe *uprobe);
__u64 uprobe__count_followed(const struct uprobe *uprobe);

/* uprobe_start.c: makes the list of probes, beside another engine. */
int uprobe__new_fallback_probes(struct uprobe *uprobe, struct error *error);
int uprobe__open_regions(struct uprobe *uprobe, pid_t pid);

/* Tells the programs the control group of which processes that start later are followed, before they
 * are attached. */
int uprobe__open_joined_group(struct uprobe *uprobe, struct error *error);
/* Follows @pid, a number of allocprof's PID namespace. @waits: its calls count only after its next
 * exec; until then another engine counts them. */
int uprobe__seed(struct uprobe *uprobe, pid_t pid, bool waits, struct error *error);

/* uprobe_fallback.c: the functions for a session in which another engine counts the calls of some
 * of the processes. */
int uprobe__new_fallback(struct uprobe *uprobe);
void uprobe__free_fallback(struct uprobe *uprobe);
int uprobe__take_over(struct engine *engine, const struct handover *process, struct error *error);
bool uprobe__find_program(const struct engine *engine, __u32 program,
			  struct followed_by_other *out);
int uprobe__handle_program(struct uprobe *uprobe, const void *record, size_t size);
void uprobe__detach_fallback(struct uprobe *uprobe);
/* To be called after finish(): lists the programs that this engine has measured beside the other
 * one. Fails with -ENOMEM. */
int uprobe__list_fallback(struct uprobe *uprobe);
const struct unprobed *uprobe__fallback_programs(const struct uprobe *uprobe);
/* Says which engine counted the calls of @pid, a followed process, at @time_ns. */
enum measuring_engine {
	MEASURED_BY_UPROBE,
	MEASURED_BY_OTHER,
	MEASURED_BY_UNKNOWN, /* the process may still report that another engine counts */
};
enum measuring_engine uprobe__measuring_engine(const struct uprobe *uprobe, pid_t pid,
					       __u64 time_ns);

/* uprobe_events.c: programs that took memory without hitting a probe. uprobe__finds_unprobed()
 * returns whether this kernel and the selected functions permit to find them. */
bool uprobe__finds_unprobed(const struct uprobe *uprobe);
void uprobe__choose_unprobed(struct uprobe *uprobe);
int uprobe__attach_unprobed(struct uprobe *uprobe, struct error *error);
/* If page faults are counted: notes what the kernel has counted for each thread, and finds which of
 * these faults no program saw. */
void uprobe__look_at_faults(struct uprobe *uprobe);
int uprobe__handle_unprobed(struct uprobe *uprobe, const void *record, size_t size);

/* uprobe_start.c: returns the descriptor of the copy that a launched command sees instead of @fd,
 * which belongs to the isolation, or @fd itself. @makes: makes a copy if there is none yet. */
int uprobe__isolate(const struct uprobe *uprobe, int fd, const char *path, bool makes);
/* Callback: returns a new descriptor of the file of which @fd is a copy, or a negative errno. */
int uprobe__original(int fd, void *context);

/* uprobe_events.c: callbacks to read pending mapping events, to find a file's functions of
 * --within, and to identify the file that is mapped at an address of allocprof. */
void uprobe__refresh_mappings(void *context);
const struct ap_within *uprobe__code_within(int fd, const char *path, void *context);
int uprobe__meet_module(__u32 module, int fd, const char *path, struct collector_code *loop,
			void *context);
int uprobe__set_within(__u32 module, const struct ap_within *within, void *context);
/* Runs an iterator to its end. Returns 0 or a negative errno. */
int uprobe__iterate(const struct bpf_program *program);
/* Runs @program, which looks at a mapping of allocprof itself. While another thread of allocprof
 * maps memory it fails with -EBUSY, and is run again. Returns the program's result. */
int uprobe__look_at_own(const struct bpf_program *program, void *args, size_t size);
int uprobe__identify_file(const void *address, struct file_identity *identity, void *context);

#endif
