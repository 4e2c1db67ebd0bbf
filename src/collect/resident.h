/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Adds up what live blocks have of the resident memory of processes (record --resident). */
#ifndef ALLOCPROF_RESIDENT_H
#define ALLOCPROF_RESIDENT_H

#include <linux/types.h>
#include <stddef.h>

struct profile;
struct resident_process;

struct resident_block {
	__u64 begin;	  /* address */
	__u64 size_bytes; /* requested */
	__u32 space;	  /* number of the address space */
	__u32 count;	  /* the profile's; 0: none, and the block is left out */
};

/*
 * Adds to the profile what the @n blocks have of the process's memory, and what the rest is. The
 * blocks are sorted by address and do not overlap. @process: its id in the profile. Returns 0 or
 * -ENOMEM.
 */
int resident__account(struct resident_process *of, __u32 process,
		      const struct resident_block *blocks, size_t n, struct profile *profile);

#endif
