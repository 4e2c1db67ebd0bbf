/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Holds what `allocprof top` shows: the last copy of a recording, its rows, and their texts. It knows no
 * terminal: top_screen.h and --batch draw it. */
#ifndef ALLOCPROF_TOP_VIEW_H
#define ALLOCPROF_TOP_VIEW_H

#include <linux/types.h>
#include <stdbool.h>
#include <stdio.h>

#include "data_command.h"
#include "symbol_options.h"
#include "terminal.h"
#include "top.h"

struct error;
struct profile;

/* Longest text of a row, a line of the status, or of what a user types. */
#define TOP_TEXT 1024

struct top_view {
	/* What the command's options say; the view and the filter may be changed while it runs. */
	struct data_choice choice;
	struct symbol_options symbols;
	struct top_wish wish;
	bool hidden[TOP_COLUMNS]; /* columns that are not shown */
	/* Only top_view.c sets all below. */
	struct selected now; /* the last copy, without a profile before the first */
	struct top top;
	struct top_rows rows;
	bool has_ended; /* the recording has */
	bool is_paused;
	size_t n_given_rules;		/* rules of the filter that options gave */
	char filter[TOP_TEXT];		/* the filter that was typed, "" if none */
	char filter_rule[TOP_TEXT + 3]; /* what became of it */
	char note[TOP_TEXT];		/* what the screen has to say, "" if nothing */
	__u64 every_ns;			/* time from a copy to the next */
	__u64 cost_ns;			/* processor time of a copy, smoothed */
	size_t n_raw_frames;		/* of the last copy, as it came */
};

/* Shows @profile, the next copy, from now on; takes it over in any case. Returns 0 or a negative
 * errno with @error set. */
int top_view__take(struct top_view *view, struct profile *profile, bool has_ended,
		   struct error *error);
/* Adds up anew after a change of the wish. Returns 0 or -ENOMEM. */
int top_view__refresh(struct top_view *view);
/*
 * Filters by @text: functions of any frame whose name has it in it, a pattern with * or a /regular
 * expression/; or OPTION=VALUE with a long option of filters. "" filters no more. Returns 0, or a
 * negative errno with @error set, and then only what options say filters.
 */
int top_view__filter(struct top_view *view, const char *text, struct error *error);
/* Changes to the next, or with @step -1 to the last kind of rows, all in no scope. */
int top_view__turn(struct top_view *view, int step);
/* Opens @row: shows the stacks of which it is the sum. Returns 0; -ENOENT for a stack, which has none;
 * or -ENOMEM. */
int top_view__open(struct top_view *view, const struct top_row *row);
/* Leaves the row that was opened last. Returns whether there was one. */
bool top_view__leave(struct top_view *view);
void top_view__release(struct top_view *view);

/* The texts are not clean: names of a target's are in them. */

#define TOP_STATUS_LINES 4
/* Writes line @n of the status, "" if there is nothing to say. */
void top_view__status(const struct top_view *view, int n, char *text, size_t size);
/* Writes what @row is of. */
void top_view__name(const struct top_view *view, const struct top_row *row, char *text,
		    size_t size);
/* Writes frame @n of the stack @row, 0 for the allocator's function and the others from the inside
 * outwards. Returns false behind the last. */
bool top_view__frame(const struct top_view *view, const struct top_row *row, __u32 n, char *text,
		     size_t size);

/* The width of a column of numbers, with the blanks before it. */
#define TOP_COLUMN_WIDTH 11
/* Returns whether the column is shown; those of live memory are not where it is not followed. */
bool top_view__has(const struct top_view *view, enum top_column column);
/* Returns the column's title, and writes its number of @row. */
const char *top_view__title(const struct top_view *view, enum top_column column);
void top_view__number(const struct top_view *view, const struct top_row *row,
		      enum top_column column, char *text, size_t size);
/* The title of the column of names. */
const char *top_view__kind(const struct top_view *view);

/* Names of columns and of kinds of rows, as options take them. */
const char *top_column__name(enum top_column column);
int top_column__by_name(const char *name);
const char *top_by__name(enum top_by by);
int top_by__by_name(const char *name);

/* Prints status, titles and the first @most rows, 0 for all. */
void top_view__print(const struct top_view *view, size_t most, const struct terminal *terminal);

#endif
