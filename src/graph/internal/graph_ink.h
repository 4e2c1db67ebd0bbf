/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Colours and text for graph_draw.c and graph_panel.c. */
#ifndef ALLOCPROF_GRAPH_INK_H
#define ALLOCPROF_GRAPH_INK_H

#include <cairo.h>
#include <stdbool.h>
#include <stddef.h>

/* 0xrrggbb. */
#define INK_TEXT    0x222222
#define INK_DIM	    0x666666
#define INK_GRID    0xdddddd
#define INK_WARNING 0xa02000
#define INK_PAPER   0xffffff

enum ink_align {
	INK_LEFT,
	INK_CENTRE,
	INK_RIGHT,
};

void ink__set(cairo_t *cr, unsigned int colour);
/* @colour with paper mixed in: 0 leaves it, 1 makes it white. */
unsigned int ink__mix(unsigned int colour, double paper);
/* The colour of band number @band, or of the band of all others. Colour-blind readers can tell the
 * first eight apart; then each comes again, darker. */
unsigned int ink__band(size_t band, bool others);

void ink__font(cairo_t *cr, double size, bool bold);
double ink__width(cairo_t *cr, const char *text);
/* Writes @text, with its baseline at @y and the side or middle that @align says at @x. */
void ink__text(cairo_t *cr, double x, double y, enum ink_align align, const char *text);
/*
 * The same aligned to the left, for text from anywhere: what is no UTF-8 or a control character
 * becomes '?', and what is wider than @width loses its middle. 0 or -ENOMEM; the width that it
 * took, where @used is not NULL.
 */
int ink__fit(cairo_t *cr, double x, double y, double width, const char *text, double *used);

#endif
