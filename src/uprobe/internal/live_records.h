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
#include <stddef.h>

#include "abi.h"

struct live_pool_options {
	int chunks_fd;		/* the programs' map of arrays */
	int free_fd;		/* the programs' queue of free indexes */
	struct ap_pool *shared; /* shared with the programs */
	struct slots *slots;	/* NULL: maps are put into their slots at once */
	const char *name;	/* name of the arrays' maps */
	size_t value_bytes;
	__u32 chunk_bits; /* log2 of the values per array */
	__u32 ahead;	  /* minimum number of values to keep ready */
};

struct live_pool {
	struct live_pool_options options;
	struct live_pool_chunk {
		int fd;
		char *values; /* mmap()ed */
	} * chunks;
	__u32 n_chunks;
	__u32 *free; /* indexes for which the programs' queue had no room */
	size_t n_free, free_room;
	bool is_full; /* the kernel refused another array */
};

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
	bool stacks; /* without stacks there is one record per function */
};

/* Creates the first maps. Fails with -ENOMEM, or an errno of bpf(2). */
int live_records__new(const struct live_records_options *options, struct live_records **out);
void live_records__free(struct live_records *records);

/* Adds records ahead of the programs. Fails with -ENOMEM, or an errno of bpf(2). */
int live_records__keep_ready(struct live_records *records);

/* Returns whether to call live_records__retire(), provided that some address space has ended. */
bool live_records__want_to_retire(const struct live_records *records);

/* Adds the records of ended address spaces to @live. @collector must know all of their stacks, and
 * their blocks must have been removed from the tables. Fails with -ENOMEM, or an errno of bpf(2). */
int live_records__retire(struct live_records *records, struct live_collector *live,
			 struct collector *collector);

/* Adds all other records; no program runs any more. */
int live_records__collect(struct live_records *records, struct live_collector *live,
			  struct collector *collector);

/* Returns the largest number of records that were in use at a time; only with stacks. */
__u64 live_records__most_used(const struct live_records *records);

/* Returns the most kernel memory that records and their tables have occupied, in bytes. */
__u64 live_records__bytes(const struct live_records *records);

#endif
