/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Moves what an engine knows of live memory into the profile (docs/live.md): records, the blocks
 * that were not freed, lifetimes, and the time line. Each engine keeps these data in its own way.
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
struct live_totals;
struct mapping_totals;
struct reach;
struct resident_memory;
struct timeline_sample;

struct live_collector_options {
	__u32 max_records;
	bool sample; /* blocks are sampled, and each stands for several */
	__u32 sample_unit_shift;
	/* Without stacks there is one record per function, and nothing goes into a profile. */
	bool stacks;
	/* Memory of processes, of which live blocks have parts; it belongs to the session. NULL:
	 * that is not asked for. */
	struct resident_memory *resident;
	/* What was found out about which blocks can be reached, as well; NULL: nothing is. */
	const struct reach *reach;
	__u64 interval_ns; /* time between samples of the time line; 0: it grows with the run */
	/* The current epoch length, as log2, and the number of the last generation of the peak,
	 * which change while blocks are counted. */
	const __u32 *epoch_shift;
	const __u64 *generation;
	const pid_t
		*target; /* id of the process with which the recording ends; 0 before it begins */
};

/* Returns NULL if there is no memory. */
struct live_collector *live_collector__new(const struct live_collector_options *options);
void live_collector__free(struct live_collector *live);

/* To be called when the recording begins, at @now_ns of CLOCK_MONOTONIC. @is_new: the target has
 * allocated nothing yet, so the time line begins with 0. */
void live_collector__start(struct live_collector *live, __u64 now_ns, bool is_new);
/* Returns how many records and lifetimes had numbers that cannot be right, and were limited. */
__u64 live_collector__implausible(const struct live_collector *live);
/* To be called when the recording has ended, at @end_ns. */
void live_collector__end(struct live_collector *live, __u64 end_ns);
bool live_collector__has_ended(const struct live_collector *live);

/* Handles the records of processes, and ignores others. Fails with -ENOMEM. */
int live_collector__handle_record(struct live_collector *live, const void *record, size_t size);

/* Returns whether address spaces have ended since the last live_collector__retire(). */
bool live_collector__may_retire(const struct live_collector *live);
/* Returns whether an address space is in use; one without a record of its end is. */
bool live_collector__is_used(const struct live_collector *live, __u32 space);
/* Returns the address space of a process; 0: it is unknown. */
__u32 live_collector__space(const struct live_collector *live, pid_t pid);
/* Returns whether a program still runs in its address space. */
bool live_collector__is_program_used(const struct live_collector *live, __u32 program);

/* Adds blocks that lived for a time. Fails with -ENOMEM, or -EINVAL for an invalid record. */
int live_collector__add_lifetime(struct live_collector *live, const struct ap_lifetime_key *key,
				 __u64 blocks, __u64 size_bytes);

/* Adds a block that was not freed: as discarded if an exec ended its address space, else as live.
 * Fails with -ENOMEM or -EINVAL. */
int live_collector__add_block(struct live_collector *live, const struct ap_block_key *at,
			      const struct ap_block *block);

/*
 * Adds the record at @index. @collector must know its stack, and its blocks must have been added.
 * @histograms may be NULL. @retires: other records may still be counted. If another record gets
 * the index, live_collector__release_index() must follow. Fails with -ENOMEM.
 */
int live_collector__add_record(struct live_collector *live, struct collector *collector,
			       const struct ap_count_key *key, __u32 index,
			       const struct ap_blocks *record,
			       const struct ap_histograms *histograms, bool retires);
void live_collector__release_index(struct live_collector *live, __u32 index);

/* To be called when all records of ended address spaces were added: moves their lifetimes. Fails
 * with -ENOMEM. */
int live_collector__retire(struct live_collector *live, struct collector *collector);
/* To be called when all records were added: moves what is left, and the time line. Fails with
 * -ENOMEM. */
int live_collector__finish(struct live_collector *live, struct collector *collector);

/* Returns the nanoseconds until the next sample of the time line is due. */
__u64 live_collector__due_ns(const struct live_collector *live);
/* Adds @sample to the time line; sets its time and memory sizes. @begin_ns is when reading its
 * other figures began: if reading takes long, samples become rarer. Fails with -ENOMEM. */
int live_collector__add_timeline_sample(struct live_collector *live, struct timeline_sample *sample,
					__u64 begin_ns);
/* Returns whether all processes of the run have ended. */
bool live_collector__is_deserted(const struct live_collector *live);

/* Returns how many blocks were live when an exec replaced their address space, and their bytes in
 * *@size_bytes. */
__u64 live_collector__discarded(const struct live_collector *live, __u64 *size_bytes);

/* Sets what became of mappings; zeros if none were followed. */
void live_collector__mappings(const struct live_collector *live, struct mapping_totals *totals);

/* Stores when the first epoch of lifetimes began, and how long they are. */
void live_collector__epochs(const struct live_collector *live, struct live_totals *out);

#endif
