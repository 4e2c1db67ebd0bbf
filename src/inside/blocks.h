/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The process's live blocks, by address. */
#ifndef ALLOCPROF_INSIDE_BLOCKS_H
#define ALLOCPROF_INSIDE_BLOCKS_H

#include <stdbool.h>

#include "abi.h"

struct inside_program;

/* A program begins, or is the forked child of another one: it has no blocks. */
void blocks__begin(struct inside_program *program);

/* -EEXIST: a block that is still there, and is stored in *@stale, has ended unseen. -ENOSPC: there is no room, or
 * as many are live as are allowed; -ENOMEM: the file system of the shared memory is full.
 * An address has one user at a time, who needs no lock. */
int blocks__put(__u64 address, const struct ap_block *block, struct ap_block *stale);

/* With sampling few blocks are followed: how many, by a part of the address. A count that has reached its most stays, and what a
 * jump out of a signal's handler leaves undone leaves it too high, never too low. */
#define FOLLOWED_SHIFT 15
#define FOLLOWED_MOST  0xff

extern __u8 blocks_followed[1 << FOLLOWED_SHIFT] __attribute__((visibility("hidden")));

/* Neighbours in memory are neighbours here, and what lies 1 MiB apart, as large blocks may, is not counted together. */
static inline __u8 *blocks__followed(__u64 address)
{
	return &blocks_followed[(address >> 5 ^ address >> 20) & ((1 << FOLLOWED_SHIFT) - 1)];
}

/* With sampling: false if the block is not there. No look into the table is needed then. */
static inline bool blocks__may_have(__u64 address)
{
	return __atomic_load_n(blocks__followed(address), __ATOMIC_RELAXED);
}

/* Number of blocks in the tables; 0 where their number is not limited. */
__s64 blocks__count(void);

/* Whether the block is there. */
bool blocks__has(__u64 address);

/* Removes the block; false if there is none. */
bool blocks__take(__u64 address, struct ap_block *out);

#endif
