/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a filtered profile comes to by stack, sorted, and as a tree. */
#ifndef ALLOCPROF_REPORT_H
#define ALLOCPROF_REPORT_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi.h"
#include "filter.h"
#include "growth.h"
#include "selection.h"

struct profile;
struct stack_groups;

#define REPORT_NO_ROOT UINT32_MAX

/* Calls of one function of the allocator from stacks that print alike. */
struct report_entry {
	__u32 group; /* index of the stack group */
	__u32 root;  /* label of the process or thread, or REPORT_NO_ROOT */
	enum ap_function function;
	struct selection selected, whole; /* what passed the filter, and all there is */
	bool at_exit;	      /* every live block selected is of a process that ran to its exit */
	struct growth growth; /* of all its blocks, where it was asked for */
};

struct report {
	const struct profile *profile;
	const struct stack_groups *groups;
	struct report_entry *entries; /* with blocks of what is sorted by; the greatest first */
	size_t n_entries;
	size_t n_whole; /* entries that there are without a filter */
	struct selection total, whole;
	__u64 end_ns, epoch_ns;
	bool at_exit; /* of all entries */
};

enum report_sort {
	/* First the costs, by enum cost. */
	REPORT_OLDEST = COSTS,
};

/* What to tell apart besides stacks, by its name. */
enum report_by {
	REPORT_BY_STACK,
	REPORT_BY_PROCESS,
	REPORT_BY_THREAD, /* and by process */
};

/* Adds up @filtered by stack and @by and sorts by @sort (an enum cost or REPORT_OLDEST). @with_growth: it
 * is also found out which entries were still growing at the end. All arguments must outlive the report. NULL
 * without memory. */
struct report *report__new(const struct profile *profile, struct stack_groups *groups,
			   const struct filtered *filtered, enum report_by by, int sort,
			   bool with_growth);
void report__free(struct report *report);

/* Whether the counts that are selected, in @cost, belong to processes of more than one name. */
bool report__is_of_many_programs(const struct profile *profile, const struct filtered *filtered,
				 enum cost cost);

/* Blocks by size and, freed ones, by lifetime, in PROFILE_BUCKETS each: all blocks of the counts of which
 * any are selected, as histograms do not know single blocks. @filtered is that of report__new(). */
void report__histograms(const struct report *report, const struct filtered *filtered, __u64 *sizes,
			__u64 *lifetimes);

/* A line of a tree: one frame, or several that call each other and nothing else. */
struct report_node {
	__u32 depth; /* 0: no parent. Nodes come parent first, the greatest child first */
	__u32 n_frames;
	__u32 *frames; /* labels, from the parent on; owned by the tree */
	__u64 blocks, size_bytes;
	__u32 n_hidden; /* not 0: these siblings together, which are too small; no frames */
	bool is_last;	/* of its siblings */
};

struct report_tree {
	struct report_node *nodes;
	size_t n_nodes, room;
	__u32 *frames; /* of all nodes */
	size_t n_frames, frames_room;
};

struct report_tree_options {
	enum cost cost;
	bool bottom_up; /* from the allocating function to its callers; else from main to the allocator */
	double min_share; /* of the whole cost; nodes below are added up in one */
};

/* To be freed, or NULL without memory. */
struct report_tree *report_tree__new(const struct report *report, struct stack_groups *groups,
				     const struct report_tree_options *options);
void report_tree__free(struct report_tree *tree);

#endif
