/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The user-space side of the records that --live counts in: makes room for them, moves those of address spaces
 * that have ended into the profile, so that programs can use their memory again, and at the end all of them.
 */
#ifndef ALLOCPROF_LIVE_RECORDS_H
#define ALLOCPROF_LIVE_RECORDS_H

#include <linux/types.h>
#include <stdbool.h>

#include "abi.h"
#include "live_pool.h"
#include "profile.h"

struct collector;
struct live_records;
struct live_spaces;

struct live_records_options {
	int records_fd; /* maps of the programs */
	int histograms_fd;
	int free_records_fd;
	int free_histograms_fd;
	int index_tables_fd;
	struct ap_live *shared;
	__u32 max_records;
	bool sample;
	__u32 sample_unit_shift;
	bool stacks; /* else records are by function alone */
};

/* Makes the first maps. -ENOMEM, or what the kernel says. */
int live_records__new(const struct live_records_options *options, struct live_records **out);
void live_records__free(struct live_records *records);

/* Keeps room ahead of the programs. -ENOMEM, or what the kernel says. */
int live_records__keep_ready(struct live_records *records);

/* A number for the record that the programs now have at @index: no other record gets it, also when the index is
 * used again. -ENOMEM; -EINVAL where there can be no such index. */
int live_records__number(struct live_records *records, __u32 index, __u32 *number);

/* Notes of the record at @index that @sum of its blocks were not freed: discarded by an exec, or live since
 * @birth_ns (CLOCK_MONOTONIC). -ENOMEM, -EINVAL. */
int live_records__add_discarded(struct live_records *records, __u32 index,
				const struct ap_count *sum);
int live_records__add_live(struct live_records *records, __u32 index, __u64 birth_ns);

/* Whether it is time for live_records__retire(), if some space has ended. */
bool live_records__want_to_retire(const struct live_records *records);

/* Moves the records of spaces that have ended into the profile of @collector, which knows all of their stacks;
 * what the tables of blocks have of these was noted before. -ENOMEM, or what the kernel says. */
int live_records__retire(struct live_records *records, const struct live_spaces *spaces,
			 struct collector *collector);

/* The same with all that are left; no program runs any more. */
int live_records__collect(struct live_records *records, const struct live_spaces *spaces,
			  struct collector *collector);

/* The profile's count that the record with @number has become, 0 for none. */
__u32 live_records__count(const struct live_records *records, __u32 number);

/* The records of functions, without stacks. -ENOENT. */
int live_records__function(const struct live_records *records, enum ap_function function,
			   struct ap_blocks *out);

/* Records that were in use at a time, at the most; of stacks only. */
__u64 live_records__most_used(const struct live_records *records);

/* Bytes of the kernel's memory that records and their tables take at the most. */
__u64 live_records__bytes(const struct live_records *records);

#endif
