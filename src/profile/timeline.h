/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Keeps what a recording knows over time: samples of its memory, and blocks by the epochs of their
 * birth and death. */
#ifndef ALLOCPROF_TIMELINE_H
#define ALLOCPROF_TIMELINE_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "abi.h"
#include "profile.h"

struct lifetimes;

/* The time line. Zeroed except for @interval_ns it is empty. */
struct timeline {
	/* 0: the interval grows with the recording, so that there are between TIMELINE_SAMPLES / 2
	 * and TIMELINE_SAMPLES samples. */
	__u64 interval_ns;
	struct timeline_sample *samples;
	size_t n, room;
	__u64 step_ns, next_ns; /* times since the start */
};

#define TIMELINE_SAMPLES 200

/* Returns the nanoseconds from @time_ns (since the start) until the next sample is due; 0: it is
 * due. */
__u64 timeline__due_ns(const struct timeline *timeline, __u64 time_ns);

/* Delays the next sample to at least @pause_ns after the last one. */
void timeline__pause(struct timeline *timeline, __u64 pause_ns);

/* Adds a sample; replaces the last one if it is not later. Returns 0 or -ENOMEM. */
int timeline__add(struct timeline *timeline, const struct timeline_sample *sample);
void timeline__release(struct timeline *timeline);

/* Lifetime of blocks of a record in epochs of 2^@shift ns. @died and @exited are as in struct
 * profile_lifetime. */
struct lifetime_key {
	__u32 record, shift;
	__u32 born, died, exited;
};

/* Returns NULL if there is no memory. */
struct lifetimes *lifetimes__new(void);
void lifetimes__free(struct lifetimes *lifetimes);

/* Adds blocks under @key. Returns 0 or -ENOMEM. */
int lifetimes__add(struct lifetimes *lifetimes, const struct lifetime_key *key, __u64 blocks,
		   __u64 size_bytes);

/* Returns log2 of the current epoch length, as in a key's shift. */
__u32 lifetimes__shift(const struct lifetimes *lifetimes);

/* Returns 1 if it has taken the lifetime, 0 if the lifetime has to stay, or a negative errno. The
 * key's shift is lifetimes__shift(). */
typedef int (*lifetimes_move_fn)(void *context, const struct lifetime_key *key,
				 const struct ap_lifetime *sum);

/* Calls @move once for each lifetime. Returns 0, -ENOMEM, or what @move has returned; on failure
 * lifetimes may be missing. */
int lifetimes__move(struct lifetimes *lifetimes, lifetimes_move_fn move, void *context);

#endif
