/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Colours and text of graph_draw.c and graph_panel.c. */
#ifndef ALLOCPROF_GRAPH_INK_H
#define ALLOCPROF_GRAPH_INK_H

#include <stdbool.h>
#include <stddef.h>

#include "cairo_functions.h"

/* 0xrrggbb. */
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
/* The colour of band @band, or of the others' band. The first eight are distinct for colour-blind
 * readers; then they repeat, darker. */
unsigned int ink__band(size_t band, bool others);

void ink__font(const struct ink *ink, double size, bool bold);
double ink__width(const struct ink *ink, const char *text);
/* Writes @text with its baseline at @y, aligned at @x as @align says. */
void ink__text(const struct ink *ink, double x, double y, enum ink_align align, const char *text);
/* Writes untrusted text, left-aligned: invalid UTF-8 and control characters become '?', and text
 * wider than @width loses its middle. 0 or -ENOMEM; *@used, if not NULL, is its width. */
int ink__fit(const struct ink *ink, double x, double y, double width, const char *text,
	     double *used);

#endif
