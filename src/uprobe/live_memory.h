/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef ALLOCPROF_LIVE_MEMORY_H
#define ALLOCPROF_LIVE_MEMORY_H

#include <linux/types.h>

/* Kernel memory of --live, used and allowed. */
struct live_memory {
	/* Maxima during the run. */
	__u64 block_bytes;  /* tables of live blocks */
	__u64 record_bytes; /* records */
	__u64 entries;	    /* live blocks in the tables, as observed */
	__u64 max_blocks;   /* limit of live blocks */
	__u64 records;	    /* records in use */
	__u64 max_records;  /* limit of records */
};

#endif
