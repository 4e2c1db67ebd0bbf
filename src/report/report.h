/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A report: a filtered profile by stack, sorted, or as a tree. */
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

struct mapping_sums;
struct profile;
struct stack_groups;

#define REPORT_NO_ROOT UINT32_MAX

/* Calls of one function of the allocator from stacks that print alike. */
struct report_entry {
	__u32 group; /* index of the stack group */
	__u32 root;  /* label of the process or thread, or REPORT_NO_ROOT */
	enum ap_function function;
	struct selection selected; /* costs that passed the filter; see report_entry__whole() */
	__u32 count;		   /* id of its last count */
	bool at_exit;		   /* all selected live blocks belong to processes that ran to their
			       * exit */
	/* Growth of all its blocks, if requested, before the end freed them. */
	struct growth growth;
};

/* A function whose stacks all together grew, by a quarter or more faster than those of its stacks
 * that are growing. */
struct report_growing {
	__u32 label;	 /* the innermost frame of its stacks */
	__u32 n_entries; /* number of its entries with live blocks that are selected, two or more */
	struct growth growth;
};

struct report {
	const struct profile *profile;
	const struct stack_groups *groups;
	const struct filter_runs *runs;
	struct mapping_sums *mappings; /* by count's id - 1; NULL if the profile has none */
	__u32 *previous; /* by count's id - 1: id of the count before it in its entry; 0: none */
	struct report_entry *entries; /* entries with any of the sorted cost, in descending order */
	size_t n_entries;
	struct report_growing *growing; /* the functions, by descending growth */
	size_t n_growing;
	struct selection total, whole;
	__u64 peak_bytes; /* as in struct filtered, like the next field */
	__u64 left, left_bytes;
	struct profile_estimate of_left;
	struct exit_frees exit_frees;
	__u64 end_ns, epoch_ns;
	bool at_exit; /* all entries have it set */
};

enum report_sort {
	/* The numbers before are those of enum cost. */
	REPORT_OLDEST = COSTS,
	REPORT_LOST, /* live blocks, by bytes: lost, possibly lost, others */
};

/* The property by which stacks with the same frames are told apart. */
enum report_by {
	REPORT_BY_STACK,
	REPORT_BY_PROCESS,
	REPORT_BY_THREAD, /* and by process */
};

/* Growth is measured in all lifetimes, once for entries and once for functions. */
enum report_growth {
	REPORT_NO_GROWTH,
	REPORT_GROWTH,		    /* of entries */
	REPORT_GROWTH_OF_FUNCTIONS, /* and of functions: report.growing */
};

/*
 * Adds up @filtered by stack and @by, and sorts by @sort (an enum cost or report_sort). The
 * arguments must outlive the report. Returns NULL if there is no memory.
 */
struct report *report__new(const struct profile *profile, struct stack_groups *groups,
			   const struct filtered *filtered, enum report_by by, int sort,
			   enum report_growth growth);
void report__free(struct report *report);

/* Stores all blocks of @entry, whatever the filter; for COST_PEAK only those of the run that has
 * the peak. */
void report_entry__whole(const struct report *report, const struct report_entry *entry,
			 enum cost cost, struct selection *whole);

/* Adds the blocks of the entry's counts to *@sum, unfiltered. */
void report_entry__add_blocks(const struct report *report, const struct report_entry *entry,
			      struct profile_blocks *sum);

/* Adds the live mappings of the entry's calls to *@sums, unfiltered. */
void report_entry__add_mappings(const struct report *report, const struct report_entry *entry,
				struct mapping_sums *sums);

/* Returns whether the selected counts with @cost belong to processes of different names. */
bool report__is_of_many_programs(const struct profile *profile, const struct filtered *filtered,
				 enum cost cost);

/*
 * Fills histograms of sizes and, for freed blocks, lifetimes, of PROFILE_BUCKETS each. They
 * include all blocks of a count of which any are selected, since single blocks are not known by
 * bucket. @filtered is that of report__new().
 */
void report__histograms(const struct report *report, const struct filtered *filtered, __u64 *sizes,
			__u64 *lifetimes);

/* A line of a tree: one frame, or a chain of frames without branches. */
struct report_node {
	/* 0: it has no parent. Parents precede children; siblings are in descending order. */
	__u32 depth;
	__u32 n_frames;
	__u32 *frames; /* labels, from the parent's side; owned by the tree */
	__u64 blocks, size_bytes;
	/* Not 0: the line is the sum of so many siblings that are too small for lines, and has no
	 * frames. */
	__u32 n_hidden;
	bool is_last; /* last of its siblings */
};

struct report_tree {
	struct report_node *nodes;
	size_t n_nodes, room;
	__u32 *frames; /* frames of all nodes */
	size_t n_frames, frames_room;
};

struct report_tree_options {
	enum cost cost;
	/* The tree goes from the allocating function to its callers; otherwise from main to the
	 * allocator's function. */
	bool bottom_up;
	double min_share; /* share of the whole cost; smaller nodes are added up in one line */
};

/* Makes a tree of the report, which the caller frees; NULL if there is no memory. */
struct report_tree *report_tree__new(const struct report *report, struct stack_groups *groups,
				     const struct report_tree_options *options);
void report_tree__free(struct report_tree *tree);

#endif
