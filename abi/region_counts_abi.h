/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The counters that the BPF programs keep by regions (docs/regions.md), and user space reads. */
#ifndef ALLOCPROF_REGION_COUNTS_ABI_H
#define ALLOCPROF_REGION_COUNTS_ABI_H

#include "abi.h"

/* Counters of a set of open regions, per CPU. */
struct ap_region_counts {
	struct ap_site_counts functions[AP_FUNCTIONS];
	__u64 stats[AP_STATS]; /* with live: results of calls, and freed blocks */
};

#endif
