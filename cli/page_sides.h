/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The data that a page is made from: the stacks of one recording, or of two that are compared, in
 * one trie. */
#ifndef ALLOCPROF_PAGE_SIDES_H
#define ALLOCPROF_PAGE_SIDES_H

#include "data_command.h"
#include "diff.h"
#include "page_trie.h"

struct error;
struct event_chart;

/* The data of a page. Zeroed it is empty. The caller releases it. */
struct page_sides {
	struct page_input inputs[DIFF_SIDES];
	/* Node of the trie by id of the count - 1; NULL: there is no such side. */
	__u32 *nodes[DIFF_SIDES];
	struct diff *diff;
	struct page_trie trie;
};

/* Opens the input of @run, and the file to compare with if there is one; the choice of @run
 * applies to both. Returns 0 or a negative errno with @error set. */
int page_sides__open(struct page_sides *sides, struct data_run *run, enum cost cost,
		     struct error *error);
/*
 * Makes the trie. For two recordings it has the frames of processes and threads that @view asks
 * for; for one recording those that @options asks for. Returns 0 or a negative errno with @error
 * set.
 */
int page_sides__make_trie(struct page_sides *sides, const struct view_choice *view,
			  const struct page_trie_options *options, struct error *error);
/* Makes the trie of @calls, of the one recording, and *@out, which the caller releases. Returns 0 or a negative errno
 * with @error set. */
int page_sides__make_chart(struct page_sides *sides, const struct page_trie_options *options,
			   const struct event_chart *calls, struct page_chart *out,
			   struct error *error);
void page_sides__release(struct page_sides *sides);

/*
 * Checks that the choice of @run can select from two recordings, if there is one to compare with,
 * and that the output is a file, such as @example, and no terminal. Returns 0, or -EINVAL with
 * @error set.
 */
int page_sides__check(const struct data_run *run, const char *example, struct error *error);

#endif
