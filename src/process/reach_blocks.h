/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Blocks of a process by address. */
#ifndef ALLOCPROF_REACH_BLOCKS_H
#define ALLOCPROF_REACH_BLOCKS_H

#include <linux/types.h>
#include <stddef.h>

struct reach_blocks {
	__u64 *begins, *sizes; /* addresses, and requested bytes */
	size_t n, room;
};

/* Adds a block, in any order. Fails with -ENOMEM. */
int reach_blocks__add(struct reach_blocks *blocks, __u64 begin, __u64 size_bytes);
/* Sorts the blocks by ascending address, and removes those that begin within another one. Fails with
 * -ENOMEM. */
int reach_blocks__sort(struct reach_blocks *blocks);
void reach_blocks__release(struct reach_blocks *blocks);

#endif
