/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Draws the time line of a recording with cairo: allocprof-graph(1). */
#ifndef ALLOCPROF_GRAPH_DRAW_H
#define ALLOCPROF_GRAPH_DRAW_H

#include <linux/types.h>
#include <stddef.h>
#include <stdio.h>

struct cairo_library;
struct graph;
struct graph_label;

enum graph_format {
	GRAPH_SVG,
	GRAPH_PNG,
	GRAPH_PDF,
};

/* The texts in the picture, which belong to the caller. They may contain any bytes. */
struct graph_words {
	const char *title;
	const char *selection; /* the selection in words; NULL: all */
	/* Peak as it was counted, not only at the ends of epochs; 0: it is unknown, or only a part
	 * of the blocks is shown. */
	__u64 peak_bytes;
	const char *start_time; /* start of the recording, for the PDF's date; NULL: unknown */
	const struct graph_label *labels; /* indexed by series */
	const char *const *notes;	  /* warnings, a line each */
	size_t n_notes;
};

/* Writes the picture of @graph to @to and flushes it. With the same cairo and fonts the same input
 * gives the same bytes. Returns 0, -ENOMEM, -EIO if cairo fails, or the negative errno of the
 * write. */
int graph__draw(const struct cairo_library *cairo, const struct graph *graph,
		const struct graph_words *words, enum graph_format format, FILE *to);

#endif
