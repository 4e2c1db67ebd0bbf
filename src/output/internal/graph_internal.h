/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Panels, axes, ink and data of the pictures of a time line. */
#ifndef ALLOCPROF_GRAPH_INTERNAL_H
#define ALLOCPROF_GRAPH_INTERNAL_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "cairo_functions.h"
#include "graph_data.h"

struct graph;
struct graph_words;
struct stack_groups;

/* Ticks of axes, and quantities in words. */

/* An axis with ticks at 0, step, 2 * step, ... up to @end, all in one unit. */
struct graph_axis {
	double end;	       /* end of the axis */
	double step;	       /* between ticks, greater than 0 */
	double unit;	       /* unit of the labels */
	const char *unit_name; /* "MiB", "ms", "k", or "" */
};

/* Make axes from 0 with about @n_ticks ticks. Axes of bytes and counts end with the first tick
 * that is not below @max, an axis of time ends exactly at @max. */
struct graph_axis graph_axis__bytes(__u64 max, unsigned int n_ticks);
struct graph_axis graph_axis__count(double max, unsigned int n_ticks);
struct graph_axis graph_axis__time(__u64 end_ns, unsigned int n_ticks);

/* Returns the number of ticks, from 0 to the end. */
size_t graph_axis__ticks(const struct graph_axis *axis);
/* Prints the label of a tick: "0", "1.5 MiB". */
void graph_axis__label(const struct graph_axis *axis, size_t tick, char *text, size_t size);

/* Print quantities: "1.25 MiB", "17 bytes"; "2.5 s", "1 h 5 min"; "12,345". */
void graph_axis__print_bytes(__u64 bytes, char *text, size_t size);
void graph_axis__print_time(__u64 time_ns, char *text, size_t size);
void graph_axis__print_count(__u64 count, char *text, size_t size);

/* Colours and text. */

/* Colours are 0xrrggbb. */
#define INK_TEXT    0x222222
#define INK_DIM	    0x666666
#define INK_GRID    0xdddddd
#define INK_WARNING 0xa02000
#define INK_PAPER   0xffffff

/* A cairo context, and the functions that draw on it. */
struct ink {
	const struct cairo_library *cairo;
	cairo_t *cr;
};

enum ink_align {
	INK_LEFT,
	INK_CENTRE,
	INK_RIGHT,
};

void ink__set(const struct ink *ink, unsigned int colour);
/* Mixes @colour with paper: 0 leaves it unchanged, 1 makes it white. */
unsigned int ink__mix(unsigned int colour, double paper);
/* Returns the colour of band @band, or that of the band of all others. The first eight are
 * distinct for colour-blind readers; then they repeat, darker. */
unsigned int ink__band(size_t band, bool others);

void ink__font(const struct ink *ink, double size, bool bold);
double ink__width(const struct ink *ink, const char *text);
/* Writes @text with its baseline at @y, aligned at @x as @align says. */
void ink__text(const struct ink *ink, double x, double y, enum ink_align align, const char *text);
/* Writes untrusted text, left-aligned: invalid UTF-8 and control characters become '?', and text
 * wider than @width loses its middle. *@used, if not NULL, is its width. Returns 0 or -ENOMEM. */
int ink__fit(const struct ink *ink, double x, double y, double width, const char *text,
	     double *used);

/* The coordinate systems of graph_draw.c and their contents. */

struct graph_panel {
	double left, top, width, height;
	struct graph_axis x, y;
};

/* Draws resident memory as a line. */
void graph_panel__rss(const struct ink *ink, const struct graph_panel *panel,
		      const struct graph *graph);

/* Returns where a time, and a value, is in the panel. */
double graph_panel__x(const struct graph_panel *panel, double time_ns);
double graph_panel__y(const struct graph_panel *panel, double value);

/* Parts of the resident memory at moments, graph_resident.c: bars of them, and what the legend says of
 * a part, less than GRAPH_PARTS; false if there never was any of it. */
#define GRAPH_PARTS 8
struct graph_part {
	const char *name;
	unsigned int colour;
	__u64 peak_bytes, end_bytes; /* at the highest sample, and at the last one */
};
void graph_panel__parts(const struct ink *ink, const struct graph_panel *panel,
			const struct graph *graph);
bool graph_part__text(const struct graph *graph, size_t part, struct graph_part *out);
/* Returns the sample with the greatest sum, or NULL. */
const struct profile_rss_sample *graph__highest_rss(const struct graph *graph);

/* Strokes and clears the current path in the style of resident memory. */
void graph_panel__dash(const struct ink *ink);

/* Names of stacks in the legend. */

/* How many callers a legend lists at most. */
#define GRAPH_LABEL_CALLERS 6

struct graph_label {
	char *name;			    /* the innermost printed frame; owned */
	char *callers[GRAPH_LABEL_CALLERS]; /* its callers, from the inside out; owned */
	size_t n_callers;
};

/* Makes labels for the series of @graph, which was made with @groups. The caller frees them by
 * graph_label__free(). Returns 0 or -ENOMEM. */
int graph_label__new(const struct stack_groups *groups, const struct graph *graph,
		     struct graph_label **labels);
void graph_label__free(struct graph_label *labels, size_t n);

/* The data of `allocprof graph` as JSON (allocprof-graph(1)). */

#endif
