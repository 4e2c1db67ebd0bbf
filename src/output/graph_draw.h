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

/* The texts in the picture, owned by the caller; they may contain any bytes. */
struct graph_words {
	const char *title;
	const char *selection; /* the selection in words; NULL: all */
	__u64 peak_bytes; /* as counted, not only at the ends of epochs; 0: unknown, or of a part of the blocks */
	const char *start_time; /* of the recording, for the PDF's date; NULL if unknown */
	const struct graph_label *labels; /* by series */
	const char *const *notes;	  /* warnings, a line each */
	size_t n_notes;
};

/* Writes the picture of @graph to @to and flushes it. The same input gives the same bytes, with the
 * same cairo and fonts. 0, -ENOMEM, -EIO if cairo fails, or the negative errno of the write. */
int graph__draw(const struct cairo_library *cairo, const struct graph *graph,
		const struct graph_words *words, enum graph_format format, FILE *to);

#endif
