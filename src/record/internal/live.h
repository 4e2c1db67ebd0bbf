/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The user-space side of --live: makes room for the programs' records and blocks while they run, and
 * turns these into the profile's (docs/live.md). */
#ifndef ALLOCPROF_LIVE_H
#define ALLOCPROF_LIVE_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "abi.h"
#include "live_memory.h"
#include "live_records.h"

struct collector;
struct counters;
struct live;
struct profile;

struct live_options {
	int tables_fd; /* maps of the programs */
	int threads_fd;
	int stats_fd;
	int lifetimes_fd;     /* array of the two maps below */
	int lifetimes_fds[2]; /* programs start with the first */
	__u64 *lifetimes_inserted;
	__u32 drain_at; /* of these */
	struct counters *counters;
	struct ap_live *shared;
	__u64 max_blocks;  /* 0: what a quarter of the memory holds */
	__u64 interval_ns; /* between moments of the time line, 0: as the run grows */
	struct live_records_options records; /* without stacks there are no lifetimes either */
};

/* Makes the first maps. -ENOMEM, or what the kernel says. */
int live__new(const struct live_options *options, struct live **out);
void live__free(struct live *live);

/* The recording begins, at @now_ns of CLOCK_MONOTONIC. @is_new: the target has no memory yet; that of one
 * that was there before is measured first. */
void live__start(struct live *live, __u64 now_ns, bool is_new);

/* One record of the ring buffer; those that are not about live memory are left alone. -ENOMEM. */
int live__handle_record(struct live *live, const void *record, size_t size);

/* Keeps room ahead of the programs, drains the lifetimes when they run full, moves what is known of address
 * spaces that have ended into the profile of @collector, and adds to the time line when that is due. To be called
 * often, when all records of the ring buffer were handled. -ENOMEM, or what the kernel says. */
int live__attend(struct live *live, struct collector *collector);

/* Milliseconds until live__attend() wants to be called again at the latest, no more than @most. */
int live__timeout_ms(const struct live *live, int most);

/* Programs count nothing from here on; the recording ended at @end_ns of CLOCK_MONOTONIC, which is the
 * time line's last moment. */
int live__stop(struct live *live, __u64 end_ns);

/* What is left, when no program runs any more: blocks, lifetimes and time line into the profile of
 * @collector. */
int live__collect(struct live *live, struct collector *collector);

/*
 * For a snapshot: live__cut() makes ready in this process; in a forked child, and with no program
 * running since, live__collect_snapshot() does what live__stop() and live__collect() do at the end, and
 * leaves all as it is for the session that goes on.
 */
int live__cut(struct live *live);
int live__collect_snapshot(struct live *live, struct collector *collector, __u64 end_ns);

/* Changes whenever a program has done something with a call or a block. */
__u64 live__activity(const struct live *live);

/* Calls that had not returned when the recording ended; after live__collect(). */
__u64 live__unfinished(const struct live *live);

/* Blocks that ended with their address space at an exec, and their bytes; after live__collect(). */
__u64 live__discarded(const struct live *live, __u64 *size_bytes);

/* The records of functions, without stacks. */
int live__function(const struct live *live, enum ap_function function, struct ap_blocks *out);

/* How long the epochs are that lifetimes are counted in. */
__u64 live__epoch_ns(const struct live *live);

void live__memory(const struct live *live, struct live_memory *out);

#endif
