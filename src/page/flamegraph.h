/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Flame graphs: allocprof-flamegraph(1). */
#ifndef ALLOCPROF_FLAMEGRAPH_H
#define ALLOCPROF_FLAMEGRAPH_H

#include <stdbool.h>
#include <stdio.h>

#include "page_graphs.h"

struct flamegraph_options {
	enum cost cost;
	bool reversed;	/* from the allocator's functions to their callers */
	bool merged;	/* recursion is one frame */
	bool by_module; /* colours; else by kind */
	bool is_flame;	/* the root is at the bottom; else on top */
};

/* The pointers are the caller's. For SVG the trie itself is reversed and merged; a page does that. */
struct flamegraph {
	struct page_graphs graphs;
	struct flamegraph_options options;
};

/* Each writes to @to and flushes. 0, -ENOMEM or the negative errno of a write. */
int flamegraph__write_page(const struct flamegraph *flamegraph, FILE *to);
int flamegraph__write_svg(const struct flamegraph *flamegraph, FILE *to);

#endif
