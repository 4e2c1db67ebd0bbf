/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The difference between two profiles by stack, for allocprof-diff(1). Stacks are lists of names,
 * not of addresses; costs are summed over processes and threads. */
#ifndef ALLOCPROF_DIFF_H
#define ALLOCPROF_DIFF_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "selection.h"

struct diff_aligner;
struct error;
struct profile;
struct stack_view;

enum diff_side {
	DIFF_BEFORE,
	DIFF_AFTER,
	DIFF_SIDES,
};

/* The sections, to one of which each stack belongs. */
enum diff_section {
	DIFF_ONLY_BEFORE,
	DIFF_ONLY_AFTER,
	DIFF_CHANGED,	/* on both sides, with different costs */
	DIFF_PAIRED,	/* two stacks with different frames that probably are the same one */
	DIFF_ALIKE,	/* on both sides, with the same cost */
	DIFF_BELOW_MIN, /* stacks of the other sections whose difference is below the minimum */
	DIFF_SECTIONS,
};

struct diff_options {
	enum cost cost;
	__u32 depth;	     /* compare only so many innermost frames; 0: all of them */
	__u64 min;	     /* smaller differences are not listed */
	double before_times; /* costs of BEFORE are multiplied by this; 0: they are not */
	bool no_pairing;
	bool by_process, by_thread; /* names of processes or threads become the outermost frames */
};

/* A profile to compare. */
struct diff_input {
	const struct profile *profile;
	const struct stack_view *view;	/* view of its stacks */
	const struct selection *counts; /* costs to compare, by count's id - 1; NULL: all */
	/* Called when this profile has been read, so that the view, @counts, and the profile's
	 * counts and stacks can be freed. NULL: they are kept. */
	void (*release)(void *context);
	void *context;
};

/* A frame's name for the comparison. */
struct diff_name {
	char *function; /* owned; "[module]" if unknown */
	char *module;	/* base name, owned; "" for the allocator's functions and if unknown */
	/* Id from 1; names that differ only in clone suffixes and the like have the same. */
	__u32 canonical;
	bool is_in[DIFF_SIDES];
};

/* Median and range over runs. For one run all three are equal or, if bytes were sampled, the range
 * is the confidence interval (profile_estimate__margin()). */
struct diff_cost {
	__u64 median, min, max;
};

struct diff_stack {
	/* Index of its first frame among the diff's frames; innermost first, the first is the
	 * allocator's function. */
	size_t first;
	__u32 n_frames; /* number of frames with the allocator's function */
	bool is_in[DIFF_SIDES];
	struct diff_cost costs[DIFF_SIDES];
};

struct diff_entry {
	__u32 stacks[DIFF_SIDES]; /* index of the stack + 1; 0: not on that side */
	enum diff_section section;
	__s64 difference; /* AFTER - BEFORE */
	__u16 similarity; /* similarity of the pair, in thousandths */
	bool is_noise;	  /* the ranges of both sides overlap */
};

struct diff_sum {
	size_t first, n; /* index of its first entry, and number of entries */
	__u64 costs[DIFF_SIDES];
};

struct diff_profile {
	__u64 total; /* total, as median of the runs */
	__u64 min, max;
	size_t n_runs;
	bool is_sampled; /* it has one run, whose costs are estimates */
	size_t n_stacks;
};

struct diff {
	struct diff_options options;
	struct diff_profile profiles[DIFF_SIDES];
	struct diff_name *names; /* sorted by text */
	size_t n_names;
	__u32 *frames; /* indexes into names */
	size_t n_frames;
	struct diff_stack *stacks;
	size_t n_stacks;
	__u32 *ranks; /* ranks of the stacks by index: their order by names, innermost first */
	struct diff_entry *entries; /* sorted by section, then by descending difference */
	size_t n_entries;
	struct diff_sum sections[DIFF_SECTIONS];
	/* The stack of each count, by count's id - 1: index + 1; 0: it is not compared. */
	__u32 *count_stacks[DIFF_SIDES];
	/* Difference of the totals minus the sum of the sections': medians of stacks need not add
	 * up to the median of the total. 0 if each side has one run. */
	__s64 between_runs[DIFF_SIDES];
	bool stopped_pairing;	      /* the search for pairs was cut short */
	struct diff_aligner *aligner; /* owned */
	bool is_cut;		      /* a sum saturated at PROFILE_MAX, so sums need not add up */
};

/* Compares two profiles, which are not used afterwards. The caller frees *@diff. Returns 0;
 * -ENODATA if a profile lacks data for the cost, or -ENOMEM, with @error set. */
int diff__new(const struct diff_input inputs[DIFF_SIDES], const struct diff_options *options,
	      struct diff **diff, struct error *error);
void diff__free(struct diff *diff);

/* Returns whether costs of this side are ranges. */
bool diff_profile__has_range(const struct diff_profile *profile);
/* Returns the cost of @entry on @side. */
struct diff_cost diff_entry__cost(const struct diff *diff, const struct diff_entry *entry,
				  enum diff_side side);
/* Returns the costs of AFTER minus those of BEFORE. */
__s64 diff__difference(const __u64 costs[DIFF_SIDES]);

/* Returns the JSON key: "only_in_before" and so on. */
const char *diff__section_name(enum diff_section section);

/* A frame of an entry, on one side or both. */
struct diff_mark {
	const struct diff_name *name;
	bool is_in[DIFF_SIDES];
};

/* Returns the stack's frames as indexes of names, innermost first. */
static inline const __u32 *diff_stack__frames(const struct diff *diff,
					      const struct diff_stack *stack)
{
	return diff->frames + stack->first;
}

/* Stores the frames of @entry, innermost first, in *@marks, which the caller frees; those of a
 * pair are merged into one list. Returns 0 or -ENOMEM. */
int diff_entry__marks(const struct diff *diff, const struct diff_entry *entry,
		      struct diff_mark **marks, size_t *n_marks);

#endif
