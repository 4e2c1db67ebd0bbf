/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a recording keeps over time: samples of its memory, and blocks by the epochs of their birth and death. */
#ifndef ALLOCPROF_TIMELINE_H
#define ALLOCPROF_TIMELINE_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "abi.h"
#include "profile.h"

struct lifetimes;

/* Zeroed but for @interval_ns is an empty one. */
struct timeline {
	/* 0: grows with the recording, so that there are between TIMELINE_SAMPLES / 2 and
	 * TIMELINE_SAMPLES. */
	__u64 interval_ns;
	struct timeline_sample *samples;
	size_t n, room;
	__u64 step_ns, next_ns; /* since the start */
};

#define TIMELINE_SAMPLES 200

/* Nanoseconds from @time_ns (since the start) until the next sample is due; 0: now. */
__u64 timeline__due_ns(const struct timeline *timeline, __u64 time_ns);

/* Delays the next sample to at least @pause_ns after the last one. */
void timeline__pause(struct timeline *timeline, __u64 pause_ns);

/* Adds a sample; replaces the last one if it is not later. 0 or -ENOMEM. */
int timeline__add(struct timeline *timeline, const struct timeline_sample *sample);
void timeline__release(struct timeline *timeline);

/* Epochs of 2^@shift ns, of the blocks of a record; @died and @exited as in struct profile_lifetime. */
struct lifetime_key {
	__u32 record, shift;
	__u32 born, died, exited;
};

/* NULL without memory. */
struct lifetimes *lifetimes__new(void);
void lifetimes__free(struct lifetimes *lifetimes);

/* Adds blocks under @key. 0 or -ENOMEM. */
int lifetimes__add(struct lifetimes *lifetimes, const struct lifetime_key *key, __u64 blocks,
		   __u64 size_bytes);

/* log2 of the epoch length, as a shift of the key's epochs. */
__u32 lifetimes__shift(const struct lifetimes *lifetimes);

/* Returns 1 if it took the lifetime, 0 if that shall stay, or a negative errno. The key's shift is
 * lifetimes__shift(). */
typedef int (*lifetimes_move_fn)(void *context, const struct lifetime_key *key,
				 const struct ap_lifetime *sum);

/* Calls @move for each lifetime once. 0, -ENOMEM, or what @move returned; on failure lifetimes may
 * be missing. */
int lifetimes__move(struct lifetimes *lifetimes, lifetimes_move_fn move, void *context);

#endif
