/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The user-space side of the records of --live: adds records ahead of the programs, and moves those
 * of ended address spaces into the profile, so that their memory is reused; at the end it moves the
 * others.
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
	bool stacks; /* else there is one record per function */
};

/* Creates the first maps. -ENOMEM, or an errno of bpf(2). */
int live_records__new(const struct live_records_options *options, struct live_records **out);
void live_records__free(struct live_records *records);

/* Adds records ahead of the programs. -ENOMEM, or an errno of bpf(2). */
int live_records__keep_ready(struct live_records *records);

/* A unique number for the record that is at @index now; indexes are reused, numbers are not.
 * -ENOMEM, or -EINVAL for an invalid index. */
int live_records__number(struct live_records *records, __u32 index, __u32 *number);

/* Notes blocks of the record at @index that were not freed: discarded by an exec, or live since
 * @birth_ns (CLOCK_MONOTONIC). -ENOMEM, -EINVAL. */
int live_records__add_discarded(struct live_records *records, __u32 index,
				const struct ap_count *sum);
int live_records__add_live(struct live_records *records, __u32 index, __u64 birth_ns);

/* Whether to call live_records__retire(), if some address space has ended. */
bool live_records__want_to_retire(const struct live_records *records);

/* Moves the records of ended address spaces into the profile of @collector, which knows all of
 * their stacks. Blocks of these spaces were removed from the tables before. -ENOMEM, or an errno of
 * bpf(2). */
int live_records__retire(struct live_records *records, const struct live_spaces *spaces,
			 struct collector *collector);

/* Moves all other records; no program runs any more. */
int live_records__collect(struct live_records *records, const struct live_spaces *spaces,
			  struct collector *collector);

/* The profile's count of the record with @number, 0 if it has none. */
__u32 live_records__count(const struct live_records *records, __u32 number);

/* Record of a function, without stacks. -ENOENT. */
int live_records__function(const struct live_records *records, enum ap_function function,
			   struct ap_blocks *out);

/* Maximum number of records in use at a time; only with stacks. */
__u64 live_records__most_used(const struct live_records *records);

/* Maximum of the kernel memory of records and their tables, in bytes. */
__u64 live_records__bytes(const struct live_records *records);

#endif
