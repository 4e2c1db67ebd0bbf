/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What user space keeps for each record of --live. */
#ifndef ALLOCPROF_LIVE_NOTES_H
#define ALLOCPROF_LIVE_NOTES_H

#include <linux/types.h>
#include <stddef.h>

#include "abi.h"
#include "profile.h"

/* A record's number, which is never reused, and its blocks that were not freed. */
struct live_note {
	__u32 number; /* 0: none assigned */
	__u64 discarded, discarded_bytes;
	struct profile_estimate of_discarded; /* with sampling */
	__u64 oldest_ns; /* birth of the oldest live block, 0 if none is live */
	/* Sums of live blocks, by enum profile_reach; NULL: none. */
	struct profile_reached *reached;
};

struct live_notes {
	__u32 max_records;
	struct live_note *notes; /* indexed by the record's index */
	size_t n_notes;
	__u32 *counts; /* the profile's counts, indexed by the record's number - 1 */
	size_t counts_room;
	__u32 n_numbers;
};

void live_notes__release(struct live_notes *notes);

/* Stores a unique number for the record that is at @index now; indexes are reused, numbers are
 * not. Fails with -ENOMEM, or -EINVAL for an invalid index. */
int live_notes__number(struct live_notes *notes, __u32 index, __u32 *number);

/* Note blocks of the record at @index that were not freed: they were discarded by an exec, or are
 * live since @birth_ns (CLOCK_MONOTONIC). Fail with -ENOMEM or -EINVAL. */
int live_notes__add_discarded(struct live_notes *notes, __u32 index, const struct ap_count *sum,
			      const struct profile_estimate *estimate);
int live_notes__add_live(struct live_notes *notes, __u32 index, __u64 birth_ns);
int live_notes__add_reached(struct live_notes *notes, __u32 index, enum profile_reach reach,
			    const struct ap_count *sum);

/* Returns the note at @index; an empty one if nothing was noted. */
const struct live_note *live_notes__get(const struct live_notes *notes, __u32 index);

/* To be called when another record gets the index. */
void live_notes__clear(struct live_notes *notes, __u32 index);

/* Returns the profile's count of the record with @number; 0 if it has none. */
__u32 live_notes__count(const struct live_notes *notes, __u32 number);
void live_notes__set_count(struct live_notes *notes, const struct live_note *note, __u32 count);

#endif
