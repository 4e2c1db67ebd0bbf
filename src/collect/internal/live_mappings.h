/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Follows anonymous mappings of a run with --live (docs/mappings.md): which ranges of an address
 * space are mapped, by which call, and what became of what the calls of a record have mapped. One
 * call's mapping is like a block that can end in parts. Numbers of records are those that the live
 * collector assigns, which are not reused.
 */
#ifndef ALLOCPROF_LIVE_MAPPINGS_H
#define ALLOCPROF_LIVE_MAPPINGS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "profile.h"
#include "profile_totals.h"
#include "record_abi.h"

struct live_mappings;

/* Bytes of one call's mapping that ended, or that were left when its address space ended. */
struct mapping_end {
	__u32 number; /* of the record */
	__u64 birth_ns, end_ns;
	__u64 size_bytes;
	__u64 mappings; /* 1: with these bytes the whole mapping has ended; else 0 */
	enum {
		MAPPING_UNMAPPED,
		MAPPING_DISCARDED, /* an exec ended the address space */
		MAPPING_LEFT,	   /* an exit ended the address space, or the recording has ended */
	} how;
};

/* A mapping that is live at the end, or when its address space ended. */
struct live_mapping {
	__u32 number;
	struct profile_mapping mapping; /* without the count */
};

struct live_mappings_options {
	/* Called with each end. Fails with -ENOMEM. */
	int (*on_end)(void *context, const struct mapping_end *end);
	void *context;
};

/* Returns NULL if there is no memory. */
struct live_mappings *live_mappings__new(const struct live_mappings_options *options);
void live_mappings__free(struct live_mappings *mappings);

/* Handles what a system call did. @number is that of @change's record, 0 if it has none. Fails with
 * -ENOMEM. */
int live_mappings__handle(struct live_mappings *mappings, const struct ap_mapping_record *change,
			  __u32 number);

/* Handles the end of an address space, by an exec if @is_discarded, else by an exit. Fails with
 * -ENOMEM. */
int live_mappings__end_space(struct live_mappings *mappings, __u32 space, __u64 end_ns,
			     bool is_discarded);

/* To be called when the recording has ended: accounts what is left. Fails with -ENOMEM. */
int live_mappings__finish(struct live_mappings *mappings, __u64 end_ns);

/* The blocks of a record, and whether its address space has ended, so that they do not change any
 * more; peak and the count are not set. */
struct mapping_sums {
	struct profile_blocks blocks;
	__u64 oldest_ns; /* CLOCK_MONOTONIC; 0: none is live */
};

/* Returns the sums of the record with @number, or NULL. */
const struct mapping_sums *live_mappings__sums(const struct live_mappings *mappings, __u32 number);
/* Frees the sums, of which only the peak stays. For a record whose address space has ended. */
void live_mappings__retire(struct live_mappings *mappings, __u32 number);
/* Returns what of the record's mappings was live when most of all was. To be called after
 * live_mappings__finish(). */
void live_mappings__peak(const struct live_mappings *mappings, __u32 number, __u64 *peak,
			 __u64 *peak_bytes);
/* Returns the largest number of a record, whose sums there may be. */
__u32 live_mappings__n_numbers(const struct live_mappings *mappings);

const struct live_mapping *live_mappings__list(const struct live_mappings *mappings, size_t *n);

const struct mapping_totals *live_mappings__totals(const struct live_mappings *mappings);

#endif
