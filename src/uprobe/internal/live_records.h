/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The programs' records of --live: adds records ahead of the programs, and hands those of ended
 * address spaces to the live collector, so that their memory is reused; at the end it hands over the
 * others.
 */
#ifndef ALLOCPROF_LIVE_RECORDS_H
#define ALLOCPROF_LIVE_RECORDS_H

#include <linux/types.h>
#include <stdbool.h>

#include "abi.h"
#include "live_pool.h"

struct collector;
struct live_collector;
struct live_records;

struct live_records_options {
	int records_fd; /* maps of the programs */
	int histograms_fd;
	int free_records_fd;
	int free_histograms_fd;
	int index_tables_fd;
	struct ap_live *shared;
	struct slots *slots; /* puts maps into those of the programs */
	__u32 max_records;
	bool sample;
	bool stacks; /* else there is one record per function */
};

/* Creates the first maps. -ENOMEM, or an errno of bpf(2). */
int live_records__new(const struct live_records_options *options, struct live_records **out);
void live_records__free(struct live_records *records);

/* Adds records ahead of the programs. -ENOMEM, or an errno of bpf(2). */
int live_records__keep_ready(struct live_records *records);

/* Whether to call live_records__retire(), if some address space has ended. */
bool live_records__want_to_retire(const struct live_records *records);

/* Adds the records of ended address spaces to @live. @collector knows all of their stacks; blocks of
 * these spaces were removed from the tables before. -ENOMEM, or an errno of bpf(2). */
int live_records__retire(struct live_records *records, struct live_collector *live,
			 struct collector *collector);

/* Adds all other records; no program runs any more. */
int live_records__collect(struct live_records *records, struct live_collector *live,
			  struct collector *collector);

/* Maximum number of records in use at a time; only with stacks. */
__u64 live_records__most_used(const struct live_records *records);

/* Maximum of the kernel memory of records and their tables, in bytes. */
__u64 live_records__bytes(const struct live_records *records);

#endif
