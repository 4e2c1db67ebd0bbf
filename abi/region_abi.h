/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Regions that a program marks (docs/regions.md), as the BPF programs and user space share them. */
#ifndef ALLOCPROF_REGION_ABI_H
#define ALLOCPROF_REGION_ABI_H

#include <linux/types.h>

/* The function that marks call. Only the preloaded library defines it. */
#define AP_REGION_MARK_FUNCTION "allocprof_mark_"
/* And the one by which a program reads its figures. */
#define AP_REGION_READ_FUNCTION "allocprof_read_"

/* Maximum number of regions of a program, of distinct sets of open regions (set 0 is empty), and
 * of regions that one thread has open, where nested begins of one region count each. */
#define AP_MAX_REGIONS	    64
#define AP_MAX_REGION_SETS  64
#define AP_MAX_OPEN_REGIONS 16

/* Longest name of a region in bytes. Longer and empty names are invalid. */
#define AP_REGION_NAME_BYTES 200

/* The set of a thread whose combination of open regions found no free set. */
#define AP_NO_REGION_SET 0xffffffffU

/* The actions of a mark. The cookie of its probe is mark * AP_MAX_REGIONS + region. */
enum ap_region_mark {
	AP_REGION_BEGIN, /* open the region until a mark ends it */
	AP_REGION_ENTER, /* open the region until a mark or the return of its frame ends it */
	AP_REGION_END,
	AP_REGION_LEAVE,  /* end the region of the last AP_REGION_ENTER, whichever region that is */
	AP_REGION_RESUME, /* open the region until a mark ends it, whatever becomes of the frame */
	/* None: it is where the program reads its figures, and sees that a probe is set. */
	AP_REGION_READ,
};

/* Events that leave the regions of a call unknown. region_gap__name() has the printable names. */
enum ap_region_gap {
	AP_REGION_GAP_DEPTH,   /* begins in a thread that has AP_MAX_OPEN_REGIONS open */
	AP_REGION_GAP_THREADS, /* begins in threads for which the map had no room */
	AP_REGION_GAP_SETS,    /* calls in a combination of regions that found no free set */
	AP_REGION_GAPS,
};

/* A region that a thread has open. */
struct ap_open_region {
	__u64 sp, ip; /* stack pointer and instruction pointer at the begin mark */
	__u32 region;
	__u8 scoped;	/* 1: ends with its frame */
	__u8 alternate; /* 1: begun on the alternate signal stack */
	__u16 pad;	/* 0 */
};

struct ap_region_thread {
	__u32 n;
	__u32 set;   /* set of the open regions, or AP_NO_REGION_SET */
	__u64 floor; /* lowest SP of the scoped open regions; all ones if there are none */
	struct ap_open_region open[AP_MAX_OPEN_REGIONS];
};

struct ap_regions {
	__u32 active; /* set by user space; 1: a file with regions is probed */
	__u32 zero;   /* always 0, which the verifier does not know */
	/* The sets in use, as bit masks of regions; 0: free. */
	__u64 masks[AP_MAX_REGION_SETS];
};

#endif
