/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The user-space side of struct ap_pool: adds arrays of values before the programs need them, and
 * reuses indexes that no program can reach any more (docs/live.md). */
#ifndef ALLOCPROF_LIVE_POOL_H
#define ALLOCPROF_LIVE_POOL_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "abi.h"

struct live_pool_options {
	int chunks_fd;		/* the programs' map of arrays */
	int free_fd;		/* the programs' queue of free indexes */
	struct ap_pool *shared; /* shared with the programs */
	struct slots *slots;	/* NULL: maps come into their slots at once */
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

/* options->shared->max is set already. Makes no values ready yet. */
void live_pool__init(struct live_pool *pool, const struct live_pool_options *options);
void live_pool__release(struct live_pool *pool);

/* Adds arrays so that programs find room. If the kernel refuses more, the pool keeps its size.
 * -ENOMEM, or an errno of bpf(2), if it has no array yet. */
int live_pool__keep_ready(struct live_pool *pool);

/* The value of @index, which programs may change concurrently; NULL if there is none. */
void *live_pool__get(const struct live_pool *pool, __u32 index);

/* Zeroes the value of @index, which no program can reach, and returns the index to the programs.
 * -ENOMEM. */
int live_pool__give_back(struct live_pool *pool, __u32 index);

/* Values in use: allocated by programs, and not returned. */
__u64 live_pool__used(const struct live_pool *pool);

/* Bytes of kernel memory in the arrays. */
__u64 live_pool__bytes(const struct live_pool *pool);

#endif
