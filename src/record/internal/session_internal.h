/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Internals of a session. */
#ifndef ALLOCPROF_SESSION_INTERNAL_H
#define ALLOCPROF_SESSION_INTERNAL_H

#include <time.h>

#include "count_maps.h"
#include "counters.h"
#include "kernel.h"
#include "mapping_events.h"
#include "session.h"
#include "target.h"
#include "unprobed.h"

struct allocprof_bpf;
struct bpf_program;
struct cpython;
struct gate;
struct regions;
struct mapping_events;
struct probes;
struct ring_reader;

/* A mapping of a process that may turn out to be followed. */
struct mapping_candidate {
	struct mapping_event event;
	struct mapping_candidate *next;
};

/* The programs' counters at one moment. */
struct session_counters {
	__u64 stats[AP_STATS];
	__u64 recursion, gate_recursion; /* times that the kernel skipped programs */
	__u64 mappings_lost;
	__u64 processes; /* followed processes that had ended */
};

struct session {
	struct session_options options;
	struct kernel kernel;
	struct allocprof_bpf *skeleton;
	struct allocprof_bpf *late; /* second load of the object with live_entry alone, or NULL */
	struct ring_reader *ring;
	struct mapping_events *mapping_events;
	struct probes *probes;
	struct collector *collector;
	struct count_maps counts;
	struct counters *counters;
	__u64 unread_at_end; /* counters->unread when the recording was finished */
	struct live *live;   /* NULL without --live */
	struct gate *gate;   /* NULL: the whole run is measured */
	struct cpython *cpython;
	struct unprobed unprobed;
	struct regions *regions; /* NULL: no regions */
	pid_t late_pid;		 /* process whose new mapping is being probed, else 0 */
	struct target target;
	struct mapping_candidate *candidates, **candidates_end;
	__u64 mappings_dropped; /* lost for want of memory */
	__u64 start_realtime_ns;
	unsigned int n_signals;
	bool multi;    /* one uprobe_multi link per allocator, else one perf event per probe */
	bool sessions; /* uprobe sessions: one program at entry and return */
	__u64 processes_left;
	__u64 since_ns; /* CLOCK_MONOTONIC, of the last reset; 0: none */
	__u64 gate_realtime_ns;
	/* CLOCK_MONOTONIC at which the window opens (--delay); 0: not scheduled. */
	__u64 opens_at_ns;
	struct session_marks marks;
	struct session_counters forgotten; /* counters at the last reset, to subtract */
	__u64 forgotten_events;
	bool is_snapshot;
	struct session_counters at_cut;
	__u64 events_at_cut; /* number of calls that a snapshot must account for at least */
	__u64 cut_ns;	     /* CLOCK_MONOTONIC */
	__u64 live_activity; /* live__activity() before the cut */
};

/* Whether stacks are walked: to be recorded, or for --within. */
bool session_options__walk(const struct session_options *options);
bool session_options__have_functions(const struct session_options *options);
/* With live: maximum number of records. */
__u32 session_options__max_records(const struct session_options *options);

/* Loads the programs and maps that the session's options need. */
int session__load_programs(struct session *session, struct error *error);
/* Program at the entries of allocating functions; with sessions it may not be loaded. */
struct bpf_program *session__entry_program(const struct session *session);
/* Program at USDT probes of sources. */
struct bpf_program *session__usdt_program(const struct session *session);
/* With sessions: loads the program for entries of allocators whose returns must not be probed. They
 * are rare, and verification takes 0.2 s, so it is loaded only when the first one is found. */
int session__load_entry(struct session *session, struct bpf_program **program, struct error *error);

int session__read_events(struct session *session);
/* Reads only the mapping events, which are needed to unwind snapshots. */
void session__read_mappings(struct session *session);

/* Sums over CPUs and programs since the session began, including what a reset forgot. */
__u64 session__raw_stat(const struct session *session, __u32 which);
__u64 session__recursion_misses(const struct session *session);
__u64 session__gate_recursion_misses(const struct session *session);
/* Number of lost file mapping events since the session began. */
__u64 session__mappings_lost(const struct session *session);
/* Number of calls since the last reset, by the programs' own counter. */
__u64 session__count_events(const struct session *session);
/* Calls of reported functions by the sites' counters, which programs use without stacks. */
__u64 session__count_site_calls(const struct session *session);
/* Calls lost for @reason, which is not AP_LOST_UNACCOUNTED. */
__u64 session__count_lost(const struct session *session, enum ap_lost reason);
/* In the snapshot's child. -EAGAIN with live: a program ran meanwhile. */
int session__collect_snapshot(struct session *session);
__u64 session__count_followed(const struct session *session);

/* session_unprobed.c: programs that took memory without hitting a probe. Whether this kernel and
 * the selected functions allow to find them. */
bool session__finds_unprobed(const struct session *session);
void session__choose_unprobed(struct session *session);
int session__attach_unprobed(struct session *session, struct error *error);
/* Finds those that still run; to be called before probes are detached. */
void session__look_for_unprobed(struct session *session);
int session__handle_unprobed(struct session *session, const void *record, size_t size);

/* session_events.c: callbacks to read pending mapping events, to find a file's functions of
 * --within, and to identify the file that is mapped at an address of allocprof. */
void session__refresh_mappings(void *context);
const struct ap_within *session__code_within(int fd, const char *path, void *context);
int session__set_within(__u32 module, const struct ap_within *within, void *context);
int session__identify_file(const void *address, struct file_identity *identity, void *context);

#endif
