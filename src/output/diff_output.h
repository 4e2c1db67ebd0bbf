/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Prints the differences that `allocprof diff` found. */
#ifndef ALLOCPROF_DIFF_OUTPUT_H
#define ALLOCPROF_DIFF_OUTPUT_H

#include "diff.h"
#include "terminal.h"

struct moved;
struct profile;
struct stack_view;

/* The quantity by which --per divides. */
struct diff_rate {
	const char *unit; /* "second", a function, or "N:M" */
	bool is_function;
	double amounts[DIFF_SIDES];
};

struct diff_output {
	const struct diff *diff;
	const struct profile *profiles[DIFF_SIDES];
	const char *inputs[DIFF_SIDES]; /* the data files' names */
	/* The views with source lines, which are printed for unpaired stacks; or NULL. */
	const struct stack_view *lines[DIFF_SIDES];
	__u64 top;	  /* how many stacks each section lists; 0: all */
	bool alike;	  /* list unchanged stacks, too */
	bool equal_pairs; /* list pairs of equal cost, too */
	const struct diff_rate
		/* Rate by which BEFORE was multiplied (struct diff_options); NULL: it was not. */
		*rate;
	/* Costs that moved; NULL: it is not known, for a part is compared, or several runs. */
	const struct moved *moved;
	size_t n_moved;
	struct terminal terminal;
};

/* Prints the text. Write errors stay in the terminal's FILE. Returns 0 or -ENOMEM. */
int diff_output__text(const struct diff_output *output);
/* Writes allocprof-diff/1. Returns 0, -ENOMEM or the negative errno of the write. */
int diff_output__json(const struct diff_output *output);
/*
 * Writes lines "outermost;...;innermost;malloc before after", as difffolded.pl does, and flushes:
 * all stacks, pairs under the names of AFTER, equal lines added up, sorted bytewise. Returns 0,
 * -ENOMEM, or the negative errno of the write.
 */
int diff_output__folded(const struct diff *diff, FILE *to);

/* Returns how many seconds a run of the recording took, on average if there are several; 0: it is
 * not known. */
double diff_output__seconds(const struct profile *profile);

/* Returns how many stacks of @section are listed. */
size_t diff_output__listed(const struct diff_output *output, enum diff_section section);

/* Source lines of the stacks that `allocprof diff` prints. */

/* Most lines that are printed for a frame. */
#define DIFF_LINES_MOST 4

/* The source lines of one frame. There may be several, because stacks are compared by functions. */
struct diff_frame_lines {
	const char *texts[DIFF_LINES_MOST]; /* "(server.c:12)", borrowed from the output's views */
	size_t n;
	bool has_more;
};

#endif
