/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Events for executable mappings (PERF_RECORD_MMAP2) of all processes: they name files that a
 * short-lived process mapped, and report allocators that are not probed yet. */
#ifndef ALLOCPROF_MAPPING_EVENTS_H
#define ALLOCPROF_MAPPING_EVENTS_H

#include <linux/types.h>

#include "mapped_file.h"

struct error;
struct mapping_events;

struct mapping_event {
	__u64 time_ns; /* CLOCK_MONOTONIC */
	__u32 pid;     /* in our PID namespace */
	enum {
		MAPPING_ADDED,
		MAPPING_EXEC /* the process's earlier mappings are gone */
	} kind;
	__u64 start, end, offset; /* addresses; offset in the file */
	__u32 major, minor;
	__u64 inode, generation;
	char *path; /* from the kernel: "/usr/lib/…", "[vdso]", "//anon"; "" for an exec */
};

/* The mapped file; the event keeps ownership of its path. */
struct mapped_file mapping_event__file(const struct mapping_event *event);

/* Starts listening on all CPUs. */
int mapping_events__open(struct mapping_events **out, struct error *error);
void mapping_events__close(struct mapping_events *events);

/* Returns a descriptor that is readable when there are events. */
int mapping_events__fd(const struct mapping_events *events);

/* Calls @handle for all pending events, in order of time. */
void mapping_events__read(struct mapping_events *events,
			  void (*handle)(const struct mapping_event *event, void *context),
			  void *context);

/* Empties the rings, and keeps their events for the next mapping_events__read(). */
void mapping_events__gather(struct mapping_events *events);

/* To be called before the last call of mapping_events__lost(): looks for CPUs that came online
 * since the last read. */
void mapping_events__finish(struct mapping_events *events);

/* Returns the number of events that were lost because a ring was full. */
__u64 mapping_events__lost(const struct mapping_events *events);

#endif
