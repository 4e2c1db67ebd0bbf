/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Groups stacks that print alike: different addresses in one function, or the same function in
 * several processes. */
#ifndef ALLOCPROF_STACK_GROUPS_H
#define ALLOCPROF_STACK_GROUPS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "abi.h"
#include "hash_table.h"
#include "stack_view.h"

struct profile;

struct stack_group {
	__u32 id;	     /* smallest stack id of the group */
	const __u32 *frames; /* indexes into the labels, innermost first; at least one */
	__u32 n_frames;
	__u32 n_seen;	       /* number of real frames; one behind them may say what is missing */
	enum ap_stack_end end; /* the end that all its stacks have */
};

struct stack_groups {
	/* The view's labels, followed by those for incomplete ends and added ones. */
	struct stack_label *labels;
	size_t n_labels, n_view_labels, n_end_labels, labels_room;
	struct stack_group *groups;
	size_t n_groups, groups_room;
	__u32 *by_stack;	       /* group of each stack, by its id - 1 */
	const struct stack_view *view; /* not owned */
	bool *lacks_table;	       /* by module's id - 1: it has no unwind table */
	__u32 **chunks;		       /* memory of frames that are not the view's */
	size_t n_chunks, chunks_room;
	struct hash_table index; /* groups: index + 1 */
	__u64 seed;
};

/* Groups all stacks of @profile and @view, which must outlive the groups. Returns NULL if there is
 * no memory. */
struct stack_groups *stack_groups__new(const struct profile *profile,
				       const struct stack_view *view);
void stack_groups__free(struct stack_groups *groups);

/* Returns the base name of the file without unwind table that a stack of @group passed by frame
 * pointers, "[unknown]" for code without a file, or NULL if it is not known which file it was. */
const char *stack_groups__without_table(const struct stack_groups *groups,
					const struct stack_group *group,
					const struct profile *profile);

/* Adds a label for something other than a frame, such as a process at the root of a tree. Returns
 * 0 or -ENOMEM. */
int stack_groups__add_label(struct stack_groups *groups, const char *text, __u32 *label);

#endif
