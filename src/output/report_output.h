/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Prints a report for `allocprof report`. */
#ifndef ALLOCPROF_REPORT_OUTPUT_H
#define ALLOCPROF_REPORT_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "filter.h"
#include "number.h"
#include "report.h"
#include "terminal.h"

struct advice;
struct event_block;
struct event_blocks;
struct findings;
struct profile;
struct stack_groups;
struct stack_view;

struct report_output {
	const struct profile *profile;
	struct stack_groups *groups;
	const struct filtered *filtered;
	struct report *report;
	const struct filter_options *filter; /* the filter that selected the blocks */
	const char *input;		     /* the data file's name */
	int sort;			     /* an enum cost or report_sort */
	enum cost cost;			     /* the cost of which shares are computed */
	size_t top;			     /* how many stacks to print */
	double min_share;
	bool json, tree, bottom_up, histogram;
	bool resident;	  /* print what resident memory consists of, and what stacks have of it */
	bool with_growth; /* print whether stacks were still growing */
	bool knows_reach; /* what of the selected blocks can be reached is known */
	bool with_reach;  /* and is printed */
	bool with_advice; /* print what the recording's numbers advise */
	const struct advice *advice;
	size_t n_advice;
	/* What is to be said first, and the report that it is of. NULL: it is not known, for not
	 * all blocks are selected. */
	const struct findings *findings;
	const struct report *of_findings;
	const struct stack_view *view;	   /* view of @profile, of which @groups is made */
	const struct event_blocks *blocks; /* single blocks; NULL: they are not asked for */
	int block_sort;			   /* their enum block_sort */
	struct terminal terminal;
};

/* All functions write to the terminal's file, which keeps write errors. */
/* Prints the report's head. Returns 0 or -ENOMEM. */
int report_output__header(const struct report_output *output);
/* Prints the line that names the selection. */
void report_output__title(const struct report_output *output);
void report_output__table(const struct report_output *output);
/* Prints what the resident memory consists of, and what holds most of it. */
void report_output__resident(const struct report_output *output);
/* Prints the findings, if there are any. */
void report_output__findings(const struct report_output *output);
/* Prints what the numbers of the recording advise. */
void report_output__advice(const struct report_output *output);
/* Prints how much of the selected blocks is lost, and how much can be reached. */
void report_output__reach(const struct report_output *output);
/* Prints single blocks, and what became of them. */
void report_output__blocks(const struct report_output *output);
/* Prints the tree of functions. Returns 0 or -ENOMEM. */
int report_output__tree(const struct report_output *output);
void report_output__histograms(const struct report_output *output);
/* Prints notes on blocks whose selection is uncertain, and on suppressions. */
void report_output__notes(const struct report_output *output);
/* Writes allocprof-report/1. Returns 0, -ENOMEM or the negative errno of the write. */
int report_output__json(const struct report_output *output);

/* Returns the word for the selected blocks: "leaked", "still allocated", "freed", ... */
const char *report_output__what(const struct report_output *output);
/* Returns a number of bytes in the form for a sentence: "1.2 MiB", or "1,234,567 bytes" on paper
 * and for other programs, or if @exact. */
struct number_text report_output__bytes(const struct report_output *output, __u64 bytes);
struct number_text report_text__bytes(__u64 bytes, bool exact);
/* Returns the number of the stack of a count, as reports print it. */
__u32 report_output__stack_id(const struct report_output *output, __u32 count);
/* Prints the function and the frames of an entry, a line each. */
void report_output__frames(const struct report_output *output, const struct report_entry *entry);
/* Prints the frames of a group of stacks, and @root below, a line each. */
void report_output__stack(const struct report_output *output, __u32 group, __u32 root);
/* Prints a frame, truncated to @columns (0: no limit); returns the columns of all of it. */
void report_output__frame(const struct report_output *output, __u32 frame, size_t columns);
size_t report_output__frame_columns(const struct report_output *output, __u32 frame);
/* Returns whether a filter selects blocks by their fate (leaked, freed, lifetime). */
bool report_output__selects_blocks(const struct report_output *output);

#endif
