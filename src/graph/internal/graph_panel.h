/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The coordinate systems of graph_draw.c and what is in them. */
#ifndef ALLOCPROF_GRAPH_PANEL_H
#define ALLOCPROF_GRAPH_PANEL_H

#include <cairo.h>
#include <stdbool.h>

#include "graph_axis.h"
#include "graph_data.h"

struct graph_panel {
	double left, top, width, height;
	struct graph_axis x, y;
};

/* Grid, ticks with labels on the left, and @title above. @x_labels: those of time too. */
void graph_panel__frame(cairo_t *cr, const struct graph_panel *panel, const char *title,
			bool x_labels);

/* What stays live at the bottom, what is freed above it, with numbers where there is room.
 * 0 or -ENOMEM. */
int graph_panel__bands(cairo_t *cr, const struct graph_panel *panel, const struct graph *graph);

/* Resident memory as a line. */
void graph_panel__rss(cairo_t *cr, const struct graph_panel *panel, const struct graph *graph);

/* Allocations per second as an area with steps. */
void graph_panel__rate(cairo_t *cr, const struct graph_panel *panel, const struct graph *graph);

/* Fills the current path, and drops it, as bands of blocks that stay live, or that are freed, are. */
void graph_panel__fill(cairo_t *cr, unsigned int colour, bool stays);
/* The dashes of resident memory along the current path, and drops it. */
void graph_panel__dash(cairo_t *cr);

#endif
