// SPDX-License-Identifier: GPL-3.0-or-later
#include "graph_panel.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "cleanup.h"
#include "profile.h"

#define HATCH_GAP 7
/* Radius of the disc behind a band's number. */
#define DISC 7.5

/* Rounds to tenths of a pixel, which keeps the file small. */
static double tenth(double value)
{
	return round(value * 10) / 10;
}

static double x_of(const struct graph_panel *panel, double time_ns)
{
	return tenth(panel->left + fmin(time_ns / panel->x.end, 1) * panel->width);
}

static double y_of(const struct graph_panel *panel, double value)
{
	return tenth(panel->top + panel->height * (1 - fmin(value / panel->y.end, 1)));
}

static void draw_y_ticks(const struct ink *ink, const struct graph_panel *panel)
{
	char text[64];

	for (size_t i = 0; i < graph_axis__ticks(&panel->y); i++) {
		double y = y_of(panel, i * panel->y.step);

		ink__set(ink, INK_GRID);
		ink->cairo->move_to(ink->cr, panel->left, y);
		ink->cairo->line_to(ink->cr, panel->left + panel->width, y);
		ink->cairo->stroke(ink->cr);
		graph_axis__label(&panel->y, i, text, sizeof(text));
		ink__set(ink, INK_TEXT);
		ink__text(ink, panel->left - 6, y + 4, INK_RIGHT, text);
	}
}

static void draw_x_ticks(const struct ink *ink, const struct graph_panel *panel, bool labels)
{
	double bottom = panel->top + panel->height;
	char text[64];

	for (size_t i = 0; i < graph_axis__ticks(&panel->x); i++) {
		double x = x_of(panel, i * panel->x.step);

		ink__set(ink, INK_GRID);
		ink->cairo->move_to(ink->cr, x, panel->top);
		ink->cairo->line_to(ink->cr, x, bottom + 4);
		ink->cairo->stroke(ink->cr);
		if (!labels)
			continue;
		graph_axis__label(&panel->x, i, text, sizeof(text));
		ink__set(ink, INK_TEXT);
		ink__text(ink, x, bottom + 17, INK_CENTRE, text);
	}
	if (labels)
		ink__text(ink, panel->left + panel->width / 2, bottom + 34, INK_CENTRE,
			  "time since the start");
}

void graph_panel__frame(const struct ink *ink, const struct graph_panel *panel, const char *title,
			bool x_labels)
{
	ink->cairo->set_line_width(ink->cr, 0.8);
	ink__font(ink, 11, false);
	draw_x_ticks(ink, panel, x_labels);
	draw_y_ticks(ink, panel);
	ink__set(ink, INK_TEXT);
	ink->cairo->move_to(ink->cr, panel->left, panel->top + panel->height);
	ink->cairo->line_to(ink->cr, panel->left + panel->width, panel->top + panel->height);
	ink->cairo->stroke(ink->cr);
	ink__font(ink, 11, true);
	ink__text(ink, panel->left, panel->top - 11, INK_LEFT, title);
}

void graph_panel__fill(const struct ink *ink, unsigned int colour, bool stays)
{
	double left, top, right, bottom;

	if (stays) {
		ink__set(ink, colour);
		ink->cairo->fill(ink->cr);
		return;
	}
	ink->cairo->save(ink->cr);
	ink__set(ink, ink__mix(colour, 0.72));
	ink->cairo->fill_preserve(ink->cr);
	ink->cairo->path_extents(ink->cr, &left, &top, &right, &bottom);
	ink->cairo->clip(ink->cr);
	/* Stripes of adjacent bands are aligned. */
	for (double at = floor((left + top) / HATCH_GAP) * HATCH_GAP; at < right + bottom;
	     at += HATCH_GAP) {
		ink->cairo->move_to(ink->cr, tenth(at - top), tenth(top));
		ink->cairo->line_to(ink->cr, tenth(at - bottom), tenth(bottom));
	}
	ink__set(ink, ink__mix(colour, 0.25));
	ink->cairo->set_line_width(ink->cr, 1.1);
	ink->cairo->stroke(ink->cr);
	ink->cairo->restore(ink->cr);
}

void graph_panel__dash(const struct ink *ink)
{
	static const double dashes[] = { 7, 3 };

	ink->cairo->save(ink->cr);
	ink->cairo->set_line_join(ink->cr, CAIRO_LINE_JOIN_ROUND);
	ink__set(ink, INK_PAPER);
	ink->cairo->set_line_width(ink->cr, 3.6);
	ink->cairo->stroke_preserve(ink->cr);
	ink__set(ink, 0x000000);
	ink->cairo->set_line_width(ink->cr, 1.6);
	ink->cairo->set_dash(ink->cr, dashes, 2, 0);
	ink->cairo->stroke(ink->cr);
	ink->cairo->restore(ink->cr);
}

/* Continues the path along @values, in either direction; skips points inside of level stretches. */
static void add_edge(const struct ink *ink, const struct graph_panel *panel,
		     const struct graph *graph, const double *values, bool backwards)
{
	size_t n = graph->n_points;

	for (size_t i = 0; i < n; i++) {
		size_t at = backwards ? n - 1 - i : i;
		double y = y_of(panel, values[at]);

		if (i && i + 1 < n && y == y_of(panel, values[at - 1]) &&
		    y == y_of(panel, values[at + 1]))
			continue;
		ink->cairo->line_to(ink->cr, x_of(panel, graph->times_ns[at]), y);
	}
}

/* Finds the middle of the widest place between two edges, for a disc. False if there is none. */
static bool find_room(const struct graph_panel *panel, const struct graph *graph,
		      const double *lower, const double *upper, double *x, double *y)
{
	double best = 2 * DISC + 3;
	bool found = false;

	for (size_t i = 0; i < graph->n_points; i++) {
		double centre = x_of(panel, graph->times_ns[i]);
		double top = y_of(panel, upper[i]), bottom = y_of(panel, lower[i]);

		if (centre < panel->left + DISC + 2 ||
		    centre > panel->left + panel->width - DISC - 2)
			continue;
		for (int direction = -1; direction <= 1; direction += 2) {
			for (size_t at = i + direction; at < graph->n_points; at += direction) {
				top = fmax(top, y_of(panel, upper[at]));
				bottom = fmin(bottom, y_of(panel, lower[at]));
				if (fabs(x_of(panel, graph->times_ns[at]) - centre) > DISC + 1 ||
				    bottom - top <= best)
					break;
			}
		}
		if (bottom - top > best) {
			best = bottom - top;
			*x = centre;
			*y = (top + bottom) / 2;
			found = true;
		}
	}
	return found;
}

static void draw_number(const struct ink *ink, double x, double y, size_t number)
{
	char text[32];

	ink->cairo->new_path(ink->cr);
	ink->cairo->arc(ink->cr, x, y, DISC, 0, 2 * M_PI);
	ink__set(ink, INK_PAPER);
	ink->cairo->fill(ink->cr);
	snprintf(text, sizeof(text), "%zu", number);
	ink__set(ink, INK_TEXT);
	ink__font(ink, 10, true);
	ink__text(ink, x, y + 3.6, INK_CENTRE, text);
}

static void draw_edge(const struct ink *ink, const struct graph_panel *panel,
		      const struct graph *graph, const double *values, unsigned int colour,
		      double width)
{
	ink->cairo->new_path(ink->cr);
	add_edge(ink, panel, graph, values, false);
	ink__set(ink, colour);
	ink->cairo->set_line_width(ink->cr, width);
	ink->cairo->set_line_join(ink->cr, CAIRO_LINE_JOIN_ROUND);
	ink->cairo->stroke(ink->cr);
}

static bool is_visible(const struct graph_panel *panel, const struct graph *graph,
		       const __u64 *bytes)
{
	for (size_t i = 0; i < graph->n_points; i++) {
		if (bytes[i] / panel->y.end * panel->height > 0.1)
			return true;
	}
	return false;
}

/* Draws the bands of one kind on top of @lower, which is updated to their upper edge. */
static void draw_bands(const struct ink *ink, const struct graph_panel *panel,
		       const struct graph *graph, bool stays, double *lower, double *upper)
{
	double x, y;

	for (size_t i = 0; i < graph->n_series; i++) {
		const struct graph_series *series = &graph->series[i];
		const __u64 *bytes = stays ? series->stays_bytes : series->freed_bytes;
		unsigned int colour = ink__band(i, !series->stack);

		if (!is_visible(panel, graph, bytes))
			continue;
		for (size_t at = 0; at < graph->n_points; at++)
			upper[at] = lower[at] + bytes[at];
		ink->cairo->new_path(ink->cr);
		add_edge(ink, panel, graph, upper, false);
		add_edge(ink, panel, graph, lower, true);
		ink->cairo->close_path(ink->cr);
		graph_panel__fill(ink, colour, stays);
		draw_edge(ink, panel, graph, upper, stays ? INK_PAPER : colour, 0.8);
		if (series->stack && find_room(panel, graph, lower, upper, &x, &y))
			draw_number(ink, x, y, i + 1);
		for (size_t at = 0; at < graph->n_points; at++)
			lower[at] = upper[at];
	}
}

int graph_panel__bands(const struct ink *ink, const struct graph_panel *panel,
		       const struct graph *graph)
{
	_cleanup_(free_ptr) double *lower = calloc(graph->n_points, sizeof(*lower));
	_cleanup_(free_ptr) double *upper = calloc(graph->n_points, sizeof(*upper));

	if (!lower || !upper)
		return -ENOMEM;
	draw_bands(ink, panel, graph, true, lower, upper);
	if (graph->live_bytes)
		draw_edge(ink, panel, graph, lower, INK_TEXT, 1.4);
	draw_bands(ink, panel, graph, false, lower, upper);
	return 0;
}

void graph_panel__rss(const struct ink *ink, const struct graph_panel *panel,
		      const struct graph *graph)
{
	ink->cairo->new_path(ink->cr);
	for (size_t i = 0; i < graph->n_moments; i++)
		ink->cairo->line_to(ink->cr, x_of(panel, graph->moments[i].time_ns),
				    y_of(panel, graph->moments[i].rss_bytes));
	graph_panel__dash(ink);
}

void graph_panel__rate(const struct ink *ink, const struct graph_panel *panel,
		       const struct graph *graph)
{
	double start_ns = 0;

	ink->cairo->new_path(ink->cr);
	ink->cairo->move_to(ink->cr, x_of(panel, 0), y_of(panel, 0));
	for (size_t i = 0; i < graph->n_spans; i++) {
		double span_ns = graph__span_ns(graph, i);
		double y = y_of(panel, graph->allocations[i] / (span_ns / 1e9));

		ink->cairo->line_to(ink->cr, x_of(panel, start_ns), y);
		start_ns += span_ns;
		ink->cairo->line_to(ink->cr, x_of(panel, start_ns), y);
	}
	ink->cairo->line_to(ink->cr, x_of(panel, start_ns), y_of(panel, 0));
	ink->cairo->close_path(ink->cr);
	ink__set(ink, 0x7a8793);
	ink->cairo->fill(ink->cr);
}
