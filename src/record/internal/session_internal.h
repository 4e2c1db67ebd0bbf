/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a session is made of, for the files that implement it. */
#ifndef ALLOCPROF_SESSION_INTERNAL_H
#define ALLOCPROF_SESSION_INTERNAL_H

#include <time.h>

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

/* A mapping whose process may turn out to be followed. */
struct candidate {
	struct mapping_event event;
	struct candidate *next;
};

/* The programs' counters at one moment. */
struct session_counters {
	__u64 stats[AP_STATS];
	__u64 recursion, gate_recursion; /* runs that the kernel left out */
	__u64 mappings_lost;
	__u64 processes; /* that had ended */
};

struct session {
	struct session_options options;
	struct kernel kernel;
	struct allocprof_bpf *skeleton;
	struct allocprof_bpf *late; /* with what was not needed at first, or NULL */
	struct ring_reader *ring;
	struct mapping_events *mapping_events;
	struct probes *probes;
	struct collector *collector;
	struct counters *counters;
	__u64 unread_at_end; /* of them, when the recording was finished */
	struct live *live;   /* NULL without */
	struct gate *gate;   /* NULL: all of the run is measured */
	struct cpython *cpython;
	struct unprobed unprobed;
	struct regions *regions; /* NULL: they are not looked for */
	pid_t late_pid;		 /* process that has mapped what is looked at now, else 0 */
	struct target target;
	struct candidate *candidates, **candidates_end;
	__u64 mappings_dropped; /* that there was no memory for */
	__u64 start_realtime_ns;
	unsigned int n_signals;
	bool multi;    /* one uprobe_multi link per allocator, else a perf event per probe */
	bool sessions; /* entry and return by one program */
	__u64 processes_left;
	__u64 since_ns; /* CLOCK_MONOTONIC, of the last reset; 0: there was none */
	__u64 gate_realtime_ns;
	__u64 opens_at_ns; /* CLOCK_MONOTONIC, the run's gate by itself; 0: never, or it was moved */
	struct session_marks marks;
	struct session_counters forgotten; /* what of them is not reported any more */
	__u64 forgotten_events;
	bool is_snapshot;
	struct session_counters at_cut;
	__u64 events_at_cut; /* that a snapshot has to account for at least */
	__u64 cut_ns;	     /* CLOCK_MONOTONIC */
	__u64 live_activity; /* before the cut, with live */
};

/* Stacks are walked to be kept, or to see what a call is within. */
bool session_options__walk(const struct session_options *options);
bool session_options__have_functions(const struct session_options *options);
/* Records with live at the most. */
__u32 session_options__max_records(const struct session_options *options);

/* Loads what the session's options need, with maps of their sizes. */
int session__load_programs(struct session *session, struct error *error);
/* What goes to the entries of allocating functions; with sessions it may not be loaded. */
struct bpf_program *session__entry_program(const struct session *session);
/* What goes to USDT probes of sources. */
struct bpf_program *session__usdt_program(const struct session *session);
/* With sessions: the program for the entries of allocators whose returns must not be probed. There is
 * rarely one, and the kernel takes 0.2 s to verify it, so it is loaded when the first is found. */
int session__load_entry(struct session *session, struct bpf_program **program, struct error *error);

int session__read_events(struct session *session);
/* Only what processes have mapped: what was mapped before a dump, so that it can be unwound. */
void session__read_mappings(struct session *session);

/* Sums over CPUs and programs since the session began, whatever was forgotten. */
__u64 session__raw_stat(const struct session *session, __u32 which);
__u64 session__recursion_misses(const struct session *session);
__u64 session__gate_recursion_misses(const struct session *session);
/* Mappings of files that went unnoticed since the session began. */
__u64 session__mappings_lost(const struct session *session);
/* Calls that happened and were not forgotten, by the programs' own counter. */
__u64 session__count_events(const struct session *session);
/* Calls of reported functions by the counters of sites, which are in use without stacks. */
__u64 session__count_site_calls(const struct session *session);
/* Calls lost for @reason, which the programs know: any but AP_LOST_UNACCOUNTED. */
__u64 session__count_lost(const struct session *session, enum ap_lost reason);
/* In the child. -EAGAIN with live: something happened meanwhile. */
int session__collect_snapshot(struct session *session);
__u64 session__count_followed(const struct session *session);

/* session_unprobed.c: programs that took memory and hit no probe. Whether the kernel lets them be found, and
 * enough is probed. */
bool session__finds_unprobed(const struct session *session);
void session__choose_unprobed(struct session *session);
int session__attach_unprobed(struct session *session, struct error *error);
/* While probes are set: those that go on. */
void session__look_for_unprobed(struct session *session);
int session__handle_unprobed(struct session *session, const void *record, size_t size);

/* session_events.c, for what finds files: mapping events up to now are read; where a function's code is within which
 * calls count; which file the programs see at an address of ours. */
void session__refresh_mappings(void *context);
const struct ap_within *session__code_within(int fd, const char *path, void *context);
int session__identify_file(const void *address, struct file_identity *identity, void *context);

#endif
