/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Histogram buckets that are in a record itself, where only one thread writes it. */
#ifndef ALLOCPROF_SLOTS_ABI_H
#define ALLOCPROF_SLOTS_ABI_H

#include "abi.h"

/* The record's counter of the bucket @tag, from 1; it takes a free slot where there is none. NULL: all are taken. */
static inline __attribute__((always_inline)) __u64 *ap_blocks__slot(struct ap_blocks *blocks,
								    __u32 tag)
{
	for (int i = 0; i < AP_SLOTS; i++) {
		__u32 used = blocks->tags >> 8 * i & 0xff;

		if (!used) {
			blocks->tags |= (__u64)tag << 8 * i;
			used = tag;
		}
		if (used == tag)
			return &blocks->slots[i];
	}
	return 0;
}

#endif
