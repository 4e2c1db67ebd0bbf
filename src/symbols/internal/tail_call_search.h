/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Finds out which functions ended by a tail call between two frames, by the machine code of the
 * files, in a worker.
 */
#ifndef ALLOCPROF_TAIL_CALL_SEARCH_H
#define ALLOCPROF_TAIL_CALL_SEARCH_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "hash_table.h"

struct elf_file;
struct profile;
struct profile_stack;

/* Pairs of adjacent frames, and the tail calls between them. */

/* How many consecutive tail calls are looked for. */
#define TAIL_CALLS_MAX 8

struct tail_call {
	__u32 module;
	__u32 pad;    /* 0: calls are compared as bytes */
	__u64 offset; /* address behind the jump */
};

struct tail_call_pair {
	__u32 inner; /* frame id, or 0 */
	__u32 outer;
	__u32 function; /* enum ap_function, the allocator's function, if @inner is 0 */
	__u32 n;
	struct tail_call calls[TAIL_CALLS_MAX]; /* innermost first */
};

/* A set of pairs. Zeroed except for @seed, which hash_seed() makes, it is empty. */
struct tail_call_pairs {
	struct tail_call_pair *list;
	size_t n, room;
	struct hash_table index;
	__u64 seed;
};

/* Returns the entry with the frames and the function of @wanted; NULL if there is none. */
const struct tail_call_pair *tail_call_pairs__find(const struct tail_call_pairs *pairs,
						   const struct tail_call_pair *wanted);
/* Adds a pair. Returns 0 or -ENOMEM. */
int tail_call_pairs__add(struct tail_call_pairs *pairs, const struct tail_call_pair *pair);

/* Returns whether there may be tail calls between the allocator's function and the first frame. */
bool stack__may_begin(const struct profile *profile, const struct profile_stack *stack);
/* Returns whether there may be tail calls between the frame at @i and the next one: if neither of
 * the two is itself a tail call's. */
bool stack__may_have_between(const struct profile *profile, const struct profile_stack *stack,
			     __u32 i);
/* Sets *@out, which the caller frees, to the set of the allocator's functions that each stack
 * called. Returns 0 or -ENOMEM. */
int stacks__functions(const struct profile *profile, __u64 **out);

struct tail_call_files {
	/* Opens the file of @module, an id of the profile. Returns 0, -ENOMEM, or another negative
	 * errno if it does not exist. */
	int (*open)(void *context, __u32 module, struct elf_file **out);
	void *context;
};

/* Adds each pair of adjacent frames of @profile's stacks to @pairs, with the tail calls that are
 * certain between them; most pairs have none. Returns 0 or -ENOMEM. */
int tail_calls__search(const struct profile *profile, const struct tail_call_files *files,
		       struct tail_call_pairs *pairs);

#endif
