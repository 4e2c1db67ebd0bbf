/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What changed between two profiles, by stack: allocprof-diff(1). Stacks are lists of names, not of
 * addresses, and their costs over all processes and threads are added up.
 */
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

/* Each stack is in one of them. */
enum diff_section {
	DIFF_ONLY_BEFORE,
	DIFF_ONLY_AFTER,
	DIFF_CHANGED,	/* in both, with other costs */
	DIFF_PAIRED,	/* two stacks that differ in frames and seem to be one */
	DIFF_ALIKE,	/* in both, with the same cost */
	DIFF_BELOW_MIN, /* of the first four, those whose difference is too small to be listed */
	DIFF_SECTIONS,
};

struct diff_options {
	enum cost cost;
	__u32 depth; /* so many innermost frames make a stack; 0: all */
	__u64 min;   /* differences below it are not listed */
	bool no_pairing;
	bool by_process, by_thread; /* their names are the outermost frames */
};

/* A profile to compare. */
struct diff_input {
	const struct profile *profile;
	const struct stack_view *view;	/* of its stacks */
	const struct selection *counts; /* by count's id - 1: what to compare; NULL: all */
};

/* A frame as it is compared. */
struct diff_name {
	char *function; /* owned; "[module]" where none is known */
	char *module; /* base name, owned; "" for the allocator's functions and where it is unknown */
	__u32 canonical; /* equal where names differ by what compilers add, from 1 */
	bool is_in[DIFF_SIDES];
};

/* A median over runs, and between what it lay: one run's is the same three times, or where bytes were sampled the
 * interval that has the truth (profile_estimate__margin()). */
struct diff_cost {
	__u64 median, min, max;
};

struct diff_stack {
	size_t first;	/* of its frames in the diff's; innermost first, and the first is the
			 * allocator's function */
	__u32 n_frames; /* with that one */
	bool is_in[DIFF_SIDES];
	struct diff_cost costs[DIFF_SIDES];
};

struct diff_entry {
	__u32 stacks[DIFF_SIDES]; /* index + 1; 0: it is not there */
	enum diff_section section;
	__s64 difference; /* AFTER - BEFORE */
	__u16 similarity; /* of the two, in thousandths */
	bool is_noise;	  /* the ranges of both sides overlap */
};

struct diff_sum {
	size_t first, n; /* entries */
	__u64 costs[DIFF_SIDES];
};

struct diff_profile {
	__u64 total; /* the median of the runs */
	__u64 min, max;
	size_t n_runs;
	bool is_sampled; /* one run, the costs of which are estimates */
	size_t n_stacks;
};

struct diff {
	struct diff_options options;
	struct diff_profile profiles[DIFF_SIDES];
	struct diff_name *names; /* in the order of their texts */
	size_t n_names;
	__u32 *frames; /* indexes into names */
	size_t n_frames;
	struct diff_stack *stacks;
	size_t n_stacks;
	struct diff_entry *entries; /* by section, and there the greatest difference first */
	size_t n_entries;
	struct diff_sum sections[DIFF_SECTIONS];
	/* By count's id - 1 of each profile: index + 1 of its stack; 0: it is not compared. */
	__u32 *count_stacks[DIFF_SIDES];
	/* What the totals have over the sections: medians of single stacks need not add up to that of
	 * the whole. 0 where there was one run. */
	__s64 between_runs[DIFF_SIDES];
	bool stopped_pairing; /* so many stacks came into question that some were not looked at */
	struct diff_aligner *aligner; /* owned */
	bool is_cut; /* a sum stopped at PROFILE_MAX, so that sums need not add up */
};

/*
 * Compares two profiles, which the diff does not refer to afterwards. 0, and *@diff is to be freed;
 * -ENODATA where a profile does not know the cost, or -ENOMEM, with @error set.
 */
int diff__new(const struct diff_input inputs[DIFF_SIDES], const struct diff_options *options,
	      struct diff **diff, struct error *error);
void diff__free(struct diff *diff);

/* Whether costs are known to lie between two values. */
bool diff_profile__has_range(const struct diff_profile *profile);
/* The cost of @entry on @side. */
struct diff_cost diff_entry__cost(const struct diff *diff, const struct diff_entry *entry,
				  enum diff_side side);
/* @after - @before. */
__s64 diff__difference(const __u64 costs[DIFF_SIDES]);

/* "only_in_before" and so on. */
const char *diff__section_name(enum diff_section section);

/* A frame of an entry: on one side only, or on both. */
struct diff_mark {
	const struct diff_name *name;
	bool is_in[DIFF_SIDES];
};

/* The frames of @entry, innermost first, those of both sides woven into one list. *@marks is to be freed.
 * 0 or -ENOMEM. */
int diff_entry__marks(const struct diff *diff, const struct diff_entry *entry,
		      struct diff_mark **marks, size_t *n_marks);

/*
 * Writes "outermost;...;innermost;malloc before after" lines to @to, as difffolded.pl does, and flushes
 * it: all stacks, pairs under the names of AFTER, equal lines summed, sorted bytewise. 0, -ENOMEM, or
 * the negative errno of the write.
 */
int diff__write_folded(const struct diff *diff, FILE *to);

#endif
