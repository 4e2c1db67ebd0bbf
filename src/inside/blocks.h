/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The process's live blocks, by address. */
#ifndef ALLOCPROF_INSIDE_BLOCKS_H
#define ALLOCPROF_INSIDE_BLOCKS_H

#include <stdbool.h>

#include "abi.h"

struct inside_program;

/* Called when a program begins. Also for a forked child of a measured program: the child begins
 * without blocks. */
void blocks__begin(struct inside_program *program);

/* Adds a block. Fails with -EEXIST if the table had another block at @address, whose end was not
 * seen; it is stored in *@stale. Fails with -ENOSPC if there is no room, or as many blocks are
 * live as are allowed. Fails with -ENOMEM if the file system of the shared memory is full. No lock
 * is needed, since only one thread at a time uses an address. */
int blocks__put(__u64 address, const struct ap_block *block, struct ap_block *stale);

/* With sampling few blocks are followed. This array counts them by a part of the address. A count
 * that has reached FOLLOWED_MOST stays there. A jump out of a signal handler may leave a count too
 * high, never too low. */
#define FOLLOWED_SHIFT 15
#define FOLLOWED_MOST  0xff

extern __u8 blocks_followed[1 << FOLLOWED_SHIFT] __attribute__((visibility("hidden")));

/* Neighbouring blocks share a count; blocks that are 1 MiB apart, as large ones often are, do not. */
static inline __u8 *blocks__followed(__u64 address)
{
	return &blocks_followed[(address >> 5 ^ address >> 20) & ((1 << FOLLOWED_SHIFT) - 1)];
}

/* With sampling: returns false if the block is certainly not followed, so that the table need not
 * be searched. */
static inline bool blocks__may_have(__u64 address)
{
	return __atomic_load_n(blocks__followed(address), __ATOMIC_RELAXED);
}

/* Returns the number of blocks in the tables, or 0 where their number is not limited. */
__s64 blocks__count(void);

/* Returns whether the block is in a table. */
bool blocks__has(__u64 address);

/* Removes the block from its table and stores it in *@out. Returns false if there is none. */
bool blocks__take(__u64 address, struct ap_block *out);

#endif
