/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A server before and after a change, for the tests of diff and its manual page. 1000 requests each:
 *
 * add_trace         new: 3 allocations a request, freed at once
 * parse_headers     is now called decode_headers, and allocates as before
 * respond           10 allocations more
 * read_body         was called by read_request, which is inlined now
 * load_config       no longer keeps its 5 blocks
 */
#ifndef ALLOCPROF_TESTS_DIFF_STORY_H
#define ALLOCPROF_TESTS_DIFF_STORY_H

#include <stdbool.h>

struct profile;

/* NULL where anything failed. @n_runs of them; in all but the first respond allocates one more each time. */
struct profile *diff_story__new(bool after, unsigned int n_runs);

#endif
