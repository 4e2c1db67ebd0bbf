/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Regions that a program marks, as programs and user space share them: docs/regions.md. */
#ifndef ALLOCPROF_REGION_ABI_H
#define ALLOCPROF_REGION_ABI_H

#include <linux/types.h>

/* Regions of a program (docs/regions.md): names, sets of open ones that are counted apart, the empty
 * one being 0, and those that a thread can have open, each time that one recurs counted. */
#define AP_MAX_REGIONS	    64
#define AP_MAX_REGION_SETS  64
#define AP_MAX_OPEN_REGIONS 16

/* Set of a thread whose regions are more sets than there is room for. */
#define AP_NO_REGION_SET 0xffffffffU

/* What a mark does. The cookie of its probe is this, times AP_MAX_REGIONS, plus the region. */
enum ap_region_mark {
	AP_REGION_BEGIN, /* opens the region, to a mark of its end */
	AP_REGION_ENTER, /* the same; it ends with the frame at the latest */
	AP_REGION_END,
	AP_REGION_LEAVE, /* ends what AP_REGION_ENTER opened last, whatever the region */
};

/* Why regions are not known. Names for people: region_gap__name(). */
enum ap_region_gap {
	AP_REGION_GAP_DEPTH,   /* begins within AP_MAX_OPEN_REGIONS others */
	AP_REGION_GAP_THREADS, /* begins by threads that there was no room for */
	AP_REGION_GAP_SETS,    /* calls in a set of regions that there was no room for */
	AP_REGION_GAPS,
};

/* A region that a thread has open. */
struct ap_open_region {
	__u64 sp, ip; /* at its beginning */
	__u32 region;
	__u8 scoped;	/* ends with the frame */
	__u8 alternate; /* begun by a signal's handler, on a stack of its own */
	__u16 pad;	/* 0 */
};

struct ap_region_thread {
	__u32 n;
	__u32 set;   /* of those that are open, or AP_NO_REGION_SET */
	__u64 floor; /* the lowest SP of those that end with a frame, all ones without */
	struct ap_open_region open[AP_MAX_OPEN_REGIONS];
};

struct ap_regions {
	__u32 active; /* set by user space: 1 where a file with regions is probed */
	__u32 zero;   /* stays so */
	/* The sets that were met, as bit masks; 0 where none was yet. */
	__u64 masks[AP_MAX_REGION_SETS];
};

#endif
