/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Moves what an engine knows of live memory into the profile (docs/live.md): records, the blocks
 * that were not freed, lifetimes, and the time line. Where these are kept is the engine's.
 */
#ifndef ALLOCPROF_LIVE_COLLECTOR_H
#define ALLOCPROF_LIVE_COLLECTOR_H

#include <linux/types.h>
#include <stdbool.h>
#include <sys/types.h>
#include <stddef.h>

#include "abi.h"

struct collector;
struct live_collector;
struct timeline_sample;

struct live_collector_options {
	__u32 max_records;
	bool sample; /* blocks are sampled, and each stands for several */
	__u32 sample_unit_shift;
	bool stacks; /* else there is one record per function, and nothing goes into a profile */
	__u64 interval_ns; /* between samples of the time line; 0: grows with the run */
	/* Current epoch length and number of the last peak generation, which change while blocks
	 * are counted. */
	const __u32 *epoch_shift;
	const __u64 *generation;
	const pid_t
		*target; /* id of the process with which the recording ends; 0 before it begins */
};

/* NULL if there is no memory. */
struct live_collector *live_collector__new(const struct live_collector_options *options);
void live_collector__free(struct live_collector *live);

/* The recording begins, at @now_ns of CLOCK_MONOTONIC. @is_new: the target has allocated nothing
 * yet, so the time line begins with 0. */
void live_collector__start(struct live_collector *live, __u64 now_ns, bool is_new);
/* Number of records and lifetimes whose numbers cannot be right, and were cut to what can be. */
__u64 live_collector__implausible(const struct live_collector *live);
/* The recording has ended, at @end_ns. */
void live_collector__end(struct live_collector *live, __u64 end_ns);
bool live_collector__has_ended(const struct live_collector *live);

/* Handles the process records, and ignores others. -ENOMEM. */
int live_collector__handle_record(struct live_collector *live, const void *record, size_t size);

/* Whether address spaces have ended since the last live_collector__retire(). */
bool live_collector__may_retire(const struct live_collector *live);
/* Whether an address space is in use; one without a record of its end is. */
bool live_collector__is_used(const struct live_collector *live, __u32 space);
/* Whether a program still runs in its address space. */
bool live_collector__is_program_used(const struct live_collector *live, __u32 program);

/* Adds blocks that lived for a time. -ENOMEM, or -EINVAL for an invalid record. */
int live_collector__add_lifetime(struct live_collector *live, const struct ap_lifetime_key *key,
				 __u64 blocks, __u64 size_bytes);

/* Accounts a block of @space that was not freed: as discarded if an exec ended its address space,
 * else as live. -ENOMEM, -EINVAL. */
int live_collector__add_block(struct live_collector *live, __u32 space,
			      const struct ap_block *block);

/*
 * Adds the record at @index, whose stack @collector knows, and whose blocks were added before.
 * @histograms may be NULL. @retires: others may still be counted. live_collector__release_index()
 * must follow if another record gets the index. -ENOMEM.
 */
int live_collector__add_record(struct live_collector *live, struct collector *collector,
			       const struct ap_count_key *key, __u32 index,
			       const struct ap_blocks *record,
			       const struct ap_histograms *histograms, bool retires);
void live_collector__release_index(struct live_collector *live, __u32 index);

/* All records of ended address spaces were added: moves their lifetimes. -ENOMEM. */
int live_collector__retire(struct live_collector *live, struct collector *collector);
/* All records were added: moves what is left, and the time line. -ENOMEM. */
int live_collector__finish(struct live_collector *live, struct collector *collector);

/* Nanoseconds until the next sample of the time line is due. */
__u64 live_collector__due_ns(const struct live_collector *live);
/* Adds @sample to the time line, whose time and memory sizes this sets. @begin_ns is when its other
 * figures began to be read: readings that take long make samples rarer. -ENOMEM. */
int live_collector__add_timeline_sample(struct live_collector *live, struct timeline_sample *sample,
					__u64 begin_ns);
/* Whether all processes of the run have ended. */
bool live_collector__is_deserted(const struct live_collector *live);

/* Blocks that were live when an exec replaced their address space, and their bytes. */
__u64 live_collector__discarded(const struct live_collector *live, __u64 *size_bytes);

/* Length of the epochs of lifetimes. */
__u64 live_collector__epoch_ns(const struct live_collector *live);

#endif
