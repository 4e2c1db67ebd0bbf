/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Blocks by record and by the epochs of their birth and death. Epochs grow during a recording;
 * existing entries are then merged into longer ones. */
#ifndef ALLOCPROF_LIFETIMES_H
#define ALLOCPROF_LIFETIMES_H

#include <linux/types.h>
#include <stdbool.h>

#include "abi.h"

struct lifetimes;

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
