/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Stacks that print alike are one to a reader: distinct places in one function, and the same function in
 * several processes.
 */
#ifndef ALLOCPROF_STACK_GROUPS_H
#define ALLOCPROF_STACK_GROUPS_H

#include <linux/types.h>
#include <stddef.h>

#include "abi.h"
#include "hash_table.h"
#include "stack_view.h"

struct profile;

struct stack_group {
	__u32 id;	     /* the smallest id of its stacks in the profile */
	const __u32 *frames; /* indexes into the labels, innermost first; at least one */
	__u32 n_frames;
	__u32 n_seen; /* of these, frames of the stack; one behind them says what is missing */
	enum ap_stack_end end; /* of all its stacks */
};

struct stack_groups {
	/* Those of the view, and behind them more: how a stack ends early, and what is added. */
	struct stack_label *labels;
	size_t n_labels, n_view_labels, n_end_labels, labels_room;
	struct stack_group *groups;
	size_t n_groups, groups_room;
	__u32 *by_stack; /* the group of each stack, by its id - 1 */
	__u32 **chunks;	 /* what frames are in that the view has not */
	size_t n_chunks, chunks_room;
	struct hash_table index; /* of groups: index + 1 */
	__u64 seed;
};

/* The groups of all stacks of @profile and @view, which must outlive them, or NULL without memory. */
struct stack_groups *stack_groups__new(const struct profile *profile,
				       const struct stack_view *view);
void stack_groups__free(struct stack_groups *groups);

/*
 * The base name of the file without an unwind table through which a stack of @group was followed by frame
 * pointers, "[unknown]" for code that is in no file, or NULL where it is not known which one it was.
 */
const char *stack_group__without_table(const struct stack_group *group,
				       const struct profile *profile);

/* A label of its own for what no frame is, such as a process at the root of a tree. 0 or -ENOMEM. */
int stack_groups__add_label(struct stack_groups *groups, const char *text, __u32 *label);

#endif
