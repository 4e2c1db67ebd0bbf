/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a page is made from: the stacks of one recording, or of two that are compared, in one trie. */
#ifndef ALLOCPROF_PAGE_SIDES_H
#define ALLOCPROF_PAGE_SIDES_H

#include "data_command.h"
#include "diff.h"
#include "page_trie.h"

struct error;

/* Zeroed is empty. To be released. */
struct page_sides {
	struct page_input inputs[DIFF_SIDES];
	__u32 *nodes[DIFF_SIDES]; /* of the trie, by count's id - 1; NULL: no such side */
	struct diff *diff;
	struct page_trie trie;
};

/* Opens the input of @run, and its base if it has one; its choice applies to both. 0 or a negative errno with @error set. */
int page_sides__open(struct page_sides *sides, struct data_run *run, enum cost cost,
		     struct error *error);
/*
 * Makes the trie. Two recordings have the frames of processes and threads that @view names, one has
 * those of @options. 0 or a negative errno with @error set.
 */
int page_sides__make_trie(struct page_sides *sides, const struct view_choice *view,
			  const struct page_trie_options *options, struct error *error);
void page_sides__release(struct page_sides *sides);

/*
 * Checks that the choice of @run can select from two recordings if it has a base, and that the output is a file, such as
 * @example, and no terminal. Returns 0, or -EINVAL with @error set.
 */
int page_sides__check(const struct data_run *run, const char *example, struct error *error);

#endif
