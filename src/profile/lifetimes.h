/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Blocks by record and the epochs of their birth and death. Epochs become longer as a recording goes
 * on; what is there is folded to the longer ones.
 */
#ifndef ALLOCPROF_LIFETIMES_H
#define ALLOCPROF_LIFETIMES_H

#include <linux/types.h>
#include <stdbool.h>

#include "abi.h"

struct lifetimes;

/* NULL without memory. */
struct lifetimes *lifetimes__new(void);
void lifetimes__free(struct lifetimes *lifetimes);

/* Adds blocks under @key, whose died may be PROFILE_LIVE. -ENOMEM. */
int lifetimes__add(struct lifetimes *lifetimes, const struct ap_lifetime_key *key, __u64 blocks,
		   __u64 size_bytes);

/* The length of the epochs, as a shift. */
__u32 lifetimes__shift(const struct lifetimes *lifetimes);

/* 1 where it took the lifetime, 0 where that shall stay, or a negative errno. The key's shift is lifetimes__shift(). */
typedef int (*lifetimes_move_fn)(void *context, const struct ap_lifetime_key *key,
				 const struct ap_lifetime *sum);

/* Offers each lifetime to @move once. -ENOMEM, or what @move returned; lifetimes may be missing then. */
int lifetimes__move(struct lifetimes *lifetimes, lifetimes_move_fn move, void *context);

#endif
