/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The time line of a recording as a picture, drawn with cairo: allocprof-graph(1). */
#ifndef ALLOCPROF_GRAPH_DRAW_H
#define ALLOCPROF_GRAPH_DRAW_H

#include <stddef.h>
#include <stdio.h>

struct graph;
struct graph_label;

enum graph_format {
	GRAPH_SVG,
	GRAPH_PNG,
	GRAPH_PDF,
};

/* The words in the picture; all is the caller's, and may be any bytes. */
struct graph_words {
	const char *title;
	const char *selection;	/* what is shown of it; NULL: all */
	const char *start_time; /* as meta has it, for the PDF's date; NULL where it is unknown */
	const struct graph_label *labels; /* by series */
	const char *const *notes;	  /* what the reader must know; a line each */
	size_t n_notes;
};

/*
 * Writes the picture of @graph to @to and flushes it. The same input gives the same bytes, as long
 * as cairo and the fonts are the same. 0, -ENOMEM, -EIO where cairo cannot draw, or the negative
 * errno of the write.
 */
int graph__draw(const struct graph *graph, const struct graph_words *words,
		enum graph_format format, FILE *to);

#endif
