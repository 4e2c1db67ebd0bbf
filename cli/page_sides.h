/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a page is made from: the stacks of one recording, or of two that are compared, in one trie. */
#ifndef ALLOCPROF_PAGE_SIDES_H
#define ALLOCPROF_PAGE_SIDES_H

#include <stdio.h>

#include "data_command.h"
#include "diff.h"
#include "page_trie.h"

struct error;

/* Zeroed is empty. To be released. */
struct page_sides {
	unsigned int needs; /* enum completeness_flags, beside those of the choice */
	const char *base;   /* the data file to compare with; NULL: DIFF_BEFORE is empty */
	struct selected selected[DIFF_SIDES];
	struct page_input inputs[DIFF_SIDES];
	__u32 *nodes[DIFF_SIDES]; /* of the trie, by count's id - 1; NULL: no such side */
	struct diff *diff;
	struct page_trie trie;
};

/* Opens the input of @choice, and @base beside it if that is not NULL; @choice applies to both. 0 or a
 * negative errno with @error set. */
int page_sides__open(struct page_sides *sides, struct data_choice *choice, const char *base,
		     enum cost cost, struct error *error);
/*
 * Makes the trie. Two recordings have the frames of processes and threads that @choice names, one has
 * those of @options. 0 or a negative errno with @error set.
 */
int page_sides__make_trie(struct page_sides *sides, const struct view_choice *view,
			  const struct page_trie_options *options, struct error *error);
/*
 * Unless @err is set, writes the output of @choice with @write and prints what readers of it have to know. Returns the
 * command's exit status; of an error it prints @error.
 */
int page_sides__write(const struct page_sides *sides, const struct data_choice *choice, int err,
		      int (*write)(FILE *to, const void *context), const void *context,
		      struct error *error);
void page_sides__release(struct page_sides *sides);

/*
 * Checks that @choice can select from two recordings unless @base is NULL, and that the output is a file, such as
 * @example, and no terminal. Returns 0, or -EINVAL with @error set.
 */
int page_sides__check(const char *base, const struct data_choice *choice, const char *example,
		      struct error *error);

#endif
