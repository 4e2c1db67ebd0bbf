/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Stacks that print alike are one to a reader: distinct places in one function, and the same function in
 * several processes. Frames as they are printed have ids here, so that stacks compare by numbers.
 */
#ifndef ALLOCPROF_STACK_GROUPS_H
#define ALLOCPROF_STACK_GROUPS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "hash_table.h"

struct profile;

struct stack_view_options {
	bool lines; /* calls of one function from two lines are two */
};

/* A frame as it is printed. */
struct printed_frame {
	char *text;   /* "name", "name (file.c:12)" with lines, "[libfoo.so.1+0x1234]"; owned */
	__u32 module; /* id; 0: none or unknown */
	bool inlined;
};

struct stack_group {
	__u32 id;	     /* the smallest id of its stacks in the profile */
	const __u32 *frames; /* indexes into the printed frames, innermost first; at least one */
	__u32 n_frames;
};

struct stack_groups {
	const struct profile *profile;
	struct printed_frame *frames;
	size_t n_frames, frames_room;
	struct stack_group *groups;
	size_t n_groups, groups_room;
	__u32 *by_stack; /* the group of each stack, by its id - 1 */
	__u32 **chunks;	 /* what the groups' frames are in */
	size_t n_chunks, chunk_used, chunk_room;
	struct hash_table frame_index, group_index; /* index + 1 */
	__u64 seed;
};

/* The groups of all stacks of @profile, which must outlive them, or NULL without memory. */
struct stack_groups *stack_groups__new(const struct profile *profile,
				       const struct stack_view_options *options);
void stack_groups__free(struct stack_groups *groups);

/* The index of a printed frame that no stack has, such as a process at the root of a tree. 0 or -ENOMEM. */
int stack_groups__add_frame(struct stack_groups *groups, const char *name, __u32 *frame);

#endif
