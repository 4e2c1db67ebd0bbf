/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef ALLOCPROF_LIVE_MEMORY_H
#define ALLOCPROF_LIVE_MEMORY_H

#include <linux/types.h>

/* What live memory takes and may take. */
struct live_memory {
	/* The kernel's memory, at the most. */
	__u64 block_bytes;  /* for the tables of live blocks */
	__u64 record_bytes; /* for the records of their stacks */
	__u64 entries;	    /* blocks in the tables then, as often as it was looked */
	__u64 max_blocks;   /* that fit */
	__u64 records;	    /* stacks by process, thread name and function then */
	__u64 max_records;  /* that fit */
};

#endif
