/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The colours of a flame graph that needs no script. */
#ifndef ALLOCPROF_FLAMEGRAPH_INK_H
#define ALLOCPROF_FLAMEGRAPH_INK_H

#include <stdbool.h>
#include <stddef.h>

#include "frame_kind.h"

struct page_frame;
struct page_trie;

/* Modules that have a colour of their own; the others share one. */
#define FLAMEGRAPH_MODULES 7

struct flamegraph_ink {
	bool by_module;
	/* Base names of modules; the first has the greatest total. */
	const char *modules[FLAMEGRAPH_MODULES];
	size_t n_modules;
	bool has_kind[FRAME_KINDS]; /* the kinds that occur: by module, or of frames without one */
	bool has_other_modules;
};

struct ink_colour {
	char text[8]; /* "#rrggbb" */
};

/* Returns the colour of which @text is the name. */
struct ink_colour ink_colour__of(const char *text);
/* Chooses colours. @totals are totals of the trie's nodes, by which the greatest modules are
 * found. Returns 0 or -ENOMEM. */
int flamegraph_ink__init(struct flamegraph_ink *ink, const struct page_trie *trie,
			 const double *totals, bool by_module);
/* Returns the colour of @frame; NULL is the root. */
const char *flamegraph_ink__frame(const struct flamegraph_ink *ink, const struct page_frame *frame);
/* Returns the colour of a change from -1, which is gone, to 1, which is new: blue to orange, and grey where nothing
 * changed. */
struct ink_colour flamegraph_ink__change(double change);
/* Returns the colour of the box that stands for siblings too narrow to draw. */
const char *flamegraph_ink__rest(void);
/* Stores entry @i of the legend. Returns false behind the last one. */
bool flamegraph_ink__legend(const struct flamegraph_ink *ink, bool of_changes, size_t i,
			    const char **title, struct ink_colour *colour);

#endif
