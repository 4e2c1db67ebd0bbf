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

/* Takes one of them out, the last that came first; its key's shift is lifetimes__shift(). False where none is left.
 * Nothing may be added afterwards. */
bool lifetimes__take(struct lifetimes *lifetimes, struct ap_lifetime_key *key,
		     struct ap_lifetime *sum);

#endif
