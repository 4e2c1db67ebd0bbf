/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Which functions ended by a tail call between two frames, by the machine code of the files: in a worker.
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

/* The most consecutive tail calls that are looked for. */
#define TAIL_CALLS_MAX 8

struct tail_call {
	__u32 module;
	__u32 pad;    /* 0: calls are compared as bytes */
	__u64 offset; /* after the jump */
};

struct tail_call_pair {
	__u32 inner; /* frame id, or 0 */
	__u32 outer;
	__u32 function; /* enum ap_function, the allocator's function, if @inner is 0 */
	__u32 n;
	struct tail_call calls[TAIL_CALLS_MAX]; /* innermost first */
};

/* Zeroed but for @seed, of hash_seed(), it is empty. */
struct tail_call_pairs {
	struct tail_call_pair *list;
	size_t n, room;
	struct hash_table index;
	__u64 seed;
};

void tail_call_pairs__release(struct tail_call_pairs *pairs);
/* The entry with the frames and the function of @wanted; NULL if there is none. */
const struct tail_call_pair *tail_call_pairs__find(const struct tail_call_pairs *pairs,
						   const struct tail_call_pair *wanted);
/* 0 or -ENOMEM. */
int tail_call_pairs__add(struct tail_call_pairs *pairs, const struct tail_call_pair *pair);

/* Whether there may be tail calls between the allocator's function and the first frame. */
bool stack__may_begin(const struct profile *profile, const struct profile_stack *stack);
/* Whether there may be tail calls between the frame at @i and the next one: none of the two is one. */
bool stack__may_have_between(const struct profile *profile, const struct profile_stack *stack,
			     __u32 i);
/* Sets *@out to the set of the allocator's functions that each stack called, to be freed. 0 or -ENOMEM. */
int stacks__functions(const struct profile *profile, __u64 **out);

struct tail_call_files {
	/* Opens the file of @module, an id of the profile. -ENOMEM, or another negative errno if it is not there. */
	int (*open)(void *context, __u32 module, struct elf_file **out);
	void *context;
};

/* Adds each pair of adjacent frames of @profile's stacks to @pairs, with the tail calls that are certain between them; most
 * have none. 0 or -ENOMEM. */
int tail_calls__search(const struct profile *profile, const struct tail_call_files *files,
		       struct tail_call_pairs *pairs);

#endif
