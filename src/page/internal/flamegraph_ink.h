/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Colours of a static flame graph: "#rrggbb", for dark text. */
#ifndef ALLOCPROF_FLAMEGRAPH_INK_H
#define ALLOCPROF_FLAMEGRAPH_INK_H

#include <stdbool.h>
#include <stddef.h>

#include "page_trie.h"

/* Modules that have a colour of their own; the others share one. */
#define FLAMEGRAPH_MODULES 7

struct flamegraph_ink {
	bool by_module;
	const char *modules[FLAMEGRAPH_MODULES]; /* base names, the first has the greatest total */
	size_t n_modules;
	bool has_kind[PAGE_KINDS]; /* that frames have; by module, those without one */
	bool has_other_modules;
};

/* @totals: of the trie's nodes; they say which modules are the greatest. 0 or -ENOMEM. */
int flamegraph_ink__init(struct flamegraph_ink *ink, const struct page_trie *trie,
			 const double *totals, bool by_module);

/* Returns the colour of @frame; NULL is the root. */
const char *flamegraph_ink__frame(const struct flamegraph_ink *ink, const struct page_frame *frame);
/* Returns the colour of a frame whose cost changed from @before to @after. */
const char *flamegraph_ink__change(double before, double after);
/* Returns the colour of the box that stands for siblings too narrow to draw. */
const char *flamegraph_ink__rest(void);
/* Entry @i of the legend. False behind the last. */
bool flamegraph_ink__legend(const struct flamegraph_ink *ink, bool of_changes, size_t i,
			    const char **title, const char **colour);

#endif
