/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The user-space side of struct ap_pool: adds arrays of values before the programs need them, and takes back the
 * indexes that no program can reach any more (docs/live.md). */
#ifndef ALLOCPROF_LIVE_POOL_H
#define ALLOCPROF_LIVE_POOL_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "abi.h"

struct live_pool_options {
	int chunks_fd;		/* the programs' map of arrays */
	int free_fd;		/* their queue of free indexes */
	struct ap_pool *shared; /* as the programs see it */
	const char *name;	/* of the arrays, for those who list maps */
	size_t value_bytes;
	__u32 chunk_bits; /* values in an array, as a shift */
	__u32 ahead;	  /* values that are kept ready at least */
};

struct live_pool {
	struct live_pool_options options;
	struct live_pool_chunk {
		int fd;
		char *values; /* mapped */
	} * chunks;
	__u32 n_chunks;
	__u32 *free; /* indexes for which the programs' queue had no room */
	size_t n_free, free_room;
	bool is_full; /* the kernel gave no more */
};

/* The shared pool's max is set already. Makes nothing ready yet. */
void live_pool__init(struct live_pool *pool, const struct live_pool_options *options);
void live_pool__release(struct live_pool *pool);

/* Adds what is missing so that programs find room. Where the kernel gives none the pool stays as large as it is.
 * -ENOMEM, or what the kernel says, if there is nothing yet. */
int live_pool__keep_ready(struct live_pool *pool);

/* The value of @index, which programs may change meanwhile; NULL where there is none. */
void *live_pool__get(const struct live_pool *pool, __u32 index);

/* Zeroes the value of @index, which no program can reach, and lets programs have it again. -ENOMEM. */
int live_pool__give_back(struct live_pool *pool, __u32 index);

/* Values that programs have begun, without those that were given back. */
__u64 live_pool__used(const struct live_pool *pool);

/* Bytes of the kernel's memory that the arrays take. */
__u64 live_pool__bytes(const struct live_pool *pool);

#endif
