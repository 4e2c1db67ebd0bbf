/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The coordinate systems of graph_draw.c and their contents. */
#ifndef ALLOCPROF_GRAPH_PANEL_H
#define ALLOCPROF_GRAPH_PANEL_H

#include <stdbool.h>

#include "graph_axis.h"
#include "graph_data.h"
#include "graph_ink.h"

struct graph_panel {
	double left, top, width, height;
	struct graph_axis x, y;
};

/* Draws the grid, ticks with labels on the left, and @title above; with @x_labels also the labels
 * of time. */
void graph_panel__frame(const struct ink *ink, const struct graph_panel *panel, const char *title,
			bool x_labels);

/* Draws blocks that stay live at the bottom and freed ones above, with numbers where there is room.
 * 0 or -ENOMEM. */
int graph_panel__bands(const struct ink *ink, const struct graph_panel *panel,
		       const struct graph *graph);

/* Draws resident memory as a line. */
void graph_panel__rss(const struct ink *ink, const struct graph_panel *panel,
		      const struct graph *graph);

/* Draws allocations per second as a step area. */
void graph_panel__rate(const struct ink *ink, const struct graph_panel *panel,
		       const struct graph *graph);

/* Fills and clears the current path in the style of blocks that stay live, or that are freed. */
void graph_panel__fill(const struct ink *ink, unsigned int colour, bool stays);
/* Strokes and clears the current path in the style of resident memory. */
void graph_panel__dash(const struct ink *ink);

#endif
