/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The programs' maps of --live: makes room for their records and blocks while they run, and hands
 * them to the live collector (docs/live.md). */
#ifndef ALLOCPROF_LIVE_H
#define ALLOCPROF_LIVE_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "abi.h"
#include "live_records.h"
#include "profile_totals.h"

struct collector;
struct counters;
struct live;
struct live_totals;
struct reach;
struct reach_process;
struct resident_memory;
struct profile;

struct live_options {
	int tables_fd; /* maps of the programs */
	int threads_fd;
	int stats_fd;
	int lifetimes_fd;     /* map of maps that holds the current one of the two below */
	int lifetimes_fds[2]; /* programs start with the first */
	__u64 *lifetimes_inserted;
	struct slots *slots; /* puts maps into those of the programs */
	__u32 drain_at;	     /* number of new lifetimes at which they are moved to the profile */
	struct counters *counters;
	struct ap_live *shared;
	const pid_t *target; /* of struct live_collector_options */
	__u64 max_blocks;    /* 0: as many as fit in most_bytes */
	__u64 most_bytes;    /* if @max_blocks is 0: bytes of kernel memory for blocks */
	/* As in struct live_collector_options. */
	struct resident_memory *resident;
	const struct reach *reach;
	__u64 interval_ns; /* time between samples of the time line; 0: it grows with the run */
	__u32 sample_unit_shift;
	/* If not NULL, called with each call that has not returned at the end, and its thread. */
	void (*on_unfinished)(void *context, const struct ap_pending *pending, __u32 thread);
	void *context;
	struct live_records_options records; /* without stacks there are no lifetimes */
};

/* Implements read_blocks() of engine.h. */
int live__read_blocks(const struct live *live, pid_t pid, struct reach_process *out);

/* Creates the first maps. Fails with -ENOMEM, or an errno of bpf(2). */
int live__new(const struct live_options *options, struct live **out);
void live__free(struct live *live);

/* To be called when the recording begins, at @now_ns of CLOCK_MONOTONIC. @is_new: the target has
 * allocated nothing yet, so the time line begins with 0. */
void live__start(struct live *live, __u64 now_ns, bool is_new);

/* Handles the records of the ring buffer about live memory, and ignores others. Fails with
 * -ENOMEM. */
int live__handle_record(struct live *live, const void *record, size_t size);

/* Adds records and tables ahead of the programs, drains the lifetimes when they run full, moves
 * records of ended address spaces into the profile of @collector, and adds to the time line when
 * that is due. To be called often, when all records of the ring buffer were handled. Fails with
 * -ENOMEM, or an errno of bpf(2). */
int live__attend(struct live *live, struct collector *collector);

/* Milliseconds until live__attend() must be called again, at most @most. */
int live__timeout_ms(const struct live *live, int most);

/* To be called when programs count nothing any more. @end_ns (CLOCK_MONOTONIC) is the end of the
 * recording, for which the time line gets its last sample. */
int live__stop(struct live *live, __u64 end_ns);

/* Moves the remaining blocks, lifetimes and the time line into the profile of @collector; no
 * program runs any more. */
int live__collect(struct live *live, struct collector *collector);

/*
 * For a snapshot of the profile: live__cut() prepares it in this process. In a forked child,
 * live__collect_snapshot() then does what live__stop() and live__collect() do at the end, without a
 * change to the maps that the session uses on. No program may have run in between.
 */
int live__cut(struct live *live);
int live__collect_snapshot(struct live *live, struct collector *collector, __u64 end_ns);

/* Returns a sum that changes whenever a program has handled a call or a block. */
__u64 live__activity(const struct live *live);

/* Returns the number of calls that had not returned when the recording ended. To be called after
 * live__collect(). */
__u64 live__unfinished(const struct live *live);

/* Returns the number of records and lifetimes whose numbers cannot be right: see
 * live_collector__implausible(). */
__u64 live__implausible(const struct live *live);

/* Returns how many blocks were live when an exec replaced their address space, and their bytes in
 * *@size_bytes. To be called after live__collect(). */
__u64 live__discarded(const struct live *live, __u64 *size_bytes);

/* Sets what became of mappings. To be called after live__collect(). */
void live__mappings(const struct live *live, struct mapping_totals *totals);

/* Stores when the first epoch of lifetimes began, and how long they are. */
void live__epochs(const struct live *live, struct live_totals *out);

void live__memory(const struct live *live, struct live_memory *out);

#endif
