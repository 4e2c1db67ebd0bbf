// SPDX-License-Identifier: GPL-3.0-or-later
#include "graph_draw.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cleanup.h"
#include "graph_data.h"
#include "graph_internal.h"
#include "profile.h"
#include "text.h"

#define HATCH_GAP 7
/* Radius of the disc behind a band's number. */
#define DISC 7.5

/* Rounds to tenths of a pixel, to keep the file small. */
static double tenth(double value)
{
	return round(value * 10) / 10;
}

double graph_panel__x(const struct graph_panel *panel, double time_ns)
{
	return tenth(panel->left + fmin(time_ns / panel->x.end, 1) * panel->width);
}

double graph_panel__y(const struct graph_panel *panel, double value)
{
	return tenth(panel->top + panel->height * (1 - fmin(value / panel->y.end, 1)));
}

static void draw_y_ticks(const struct ink *ink, const struct graph_panel *panel)
{
	char text[64];

	for (size_t i = 0; i < graph_axis__ticks(&panel->y); i++) {
		double y = graph_panel__y(panel, i * panel->y.step);

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
		double x = graph_panel__x(panel, i * panel->x.step);

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

static void graph_panel__frame(const struct ink *ink, const struct graph_panel *panel,
			       const char *title, bool x_labels)
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

static void graph_panel__fill(const struct ink *ink, unsigned int colour, bool stays)
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
		double y = graph_panel__y(panel, values[at]);

		if (i && i + 1 < n && y == graph_panel__y(panel, values[at - 1]) &&
		    y == graph_panel__y(panel, values[at + 1]))
			continue;
		ink->cairo->line_to(ink->cr, graph_panel__x(panel, graph->times_ns[at]), y);
	}
}

/* Finds the middle of the widest place between two edges, for a disc. Returns false if there is
 * none. */
static bool find_room(const struct graph_panel *panel, const struct graph *graph,
		      const double *lower, const double *upper, double *x, double *y)
{
	double best = 2 * DISC + 3;
	bool found = false;

	for (size_t i = 0; i < graph->n_points; i++) {
		double centre = graph_panel__x(panel, graph->times_ns[i]);
		double top = graph_panel__y(panel, upper[i]),
		       bottom = graph_panel__y(panel, lower[i]);

		if (centre < panel->left + DISC + 2 ||
		    centre > panel->left + panel->width - DISC - 2)
			continue;
		for (int direction = -1; direction <= 1; direction += 2) {
			for (size_t at = i + direction; at < graph->n_points; at += direction) {
				top = fmax(top, graph_panel__y(panel, upper[at]));
				bottom = fmin(bottom, graph_panel__y(panel, lower[at]));
				if (fabs(graph_panel__x(panel, graph->times_ns[at]) - centre) >
					    DISC + 1 ||
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

/* A band on top of those before it. */
struct band {
	size_t series;
	bool stays;
	double *lower, *upper; /* owned; edges, a value for each point */
};

static void fill_band(const struct ink *ink, const struct graph_panel *panel,
		      const struct graph *graph, const struct band *band)
{
	unsigned int colour = ink__band(band->series, graph->series[band->series].is_rest);

	ink->cairo->new_path(ink->cr);
	add_edge(ink, panel, graph, band->upper, false);
	add_edge(ink, panel, graph, band->lower, true);
	ink->cairo->close_path(ink->cr);
	graph_panel__fill(ink, colour, band->stays);
	draw_edge(ink, panel, graph, band->upper, band->stays ? INK_PAPER : colour, 0.8);
}

static void number_band(const struct ink *ink, const struct graph_panel *panel,
			const struct graph *graph, const struct band *band)
{
	double x, y;

	if (!graph->series[band->series].is_rest &&
	    find_room(panel, graph, band->lower, band->upper, &x, &y))
		draw_number(ink, x, y, band->series + 1);
}

/* Goes through the bands of one kind on top of @band's lower edge, which is updated to the upper
 * edge of the last. */
static void draw_bands(const struct ink *ink, const struct graph_panel *panel,
		       const struct graph *graph, struct band *band,
		       void (*draw)(const struct ink *ink, const struct graph_panel *panel,
				    const struct graph *graph, const struct band *band))
{
	for (band->series = 0; band->series < graph->n_series; band->series++) {
		const struct graph_series *series = &graph->series[band->series];
		const __u64 *bytes = band->stays ? series->stays_bytes : series->freed_bytes;

		if (!is_visible(panel, graph, bytes))
			continue;
		for (size_t at = 0; at < graph->n_points; at++)
			band->upper[at] = band->lower[at] + bytes[at];
		draw(ink, panel, graph, band);
		for (size_t at = 0; at < graph->n_points; at++)
			band->lower[at] = band->upper[at];
	}
}

static int band__init(struct band *band, const struct graph *graph)
{
	band->stays = true;
	band->lower = calloc(graph->n_points, sizeof(*band->lower));
	band->upper = calloc(graph->n_points, sizeof(*band->upper));
	return band->lower && band->upper ? 0 : -ENOMEM;
}

static void band__release(struct band *band)
{
	free(band->lower);
	free(band->upper);
}

static int graph_panel__bands(const struct ink *ink, const struct graph_panel *panel,
			      const struct graph *graph)
{
	struct band band;
	int err = band__init(&band, graph);

	if (!err) {
		draw_bands(ink, panel, graph, &band, fill_band);
		if (graph->live_bytes)
			draw_edge(ink, panel, graph, band.lower, INK_TEXT, 1.4);
		band.stays = false;
		draw_bands(ink, panel, graph, &band, fill_band);
	}
	band__release(&band);
	return err;
}

/* Over what crosses the bands. Returns 0 or -ENOMEM. */
static int graph_panel__numbers(const struct ink *ink, const struct graph_panel *panel,
				const struct graph *graph)
{
	struct band band;
	int err = band__init(&band, graph);

	if (!err) {
		draw_bands(ink, panel, graph, &band, number_band);
		band.stays = false;
		draw_bands(ink, panel, graph, &band, number_band);
	}
	band__release(&band);
	return err;
}

static void graph_panel__rate(const struct ink *ink, const struct graph_panel *panel,
			      const struct graph *graph)
{
	double start_ns = 0;

	ink->cairo->new_path(ink->cr);
	ink->cairo->move_to(ink->cr, graph_panel__x(panel, 0), graph_panel__y(panel, 0));
	for (size_t i = 0; i < graph->n_spans; i++) {
		double span_ns = graph__span_ns(graph, i);
		double y = graph_panel__y(panel, graph->allocations[i] / (span_ns / 1e9));

		ink->cairo->line_to(ink->cr, graph_panel__x(panel, start_ns), y);
		start_ns += span_ns;
		ink->cairo->line_to(ink->cr, graph_panel__x(panel, start_ns), y);
	}
	ink->cairo->line_to(ink->cr, graph_panel__x(panel, start_ns), graph_panel__y(panel, 0));
	ink->cairo->close_path(ink->cr);
	ink__set(ink, 0x7a8793);
	ink->cairo->fill(ink->cr);
}

/* Sizes in pixels; a PNG has twice as many in each direction. */
#define WIDTH	     1000
#define LEFT	     82
#define RIGHT	     30
#define PANELS_TOP   92
#define BANDS_HEIGHT 360
#define SMALL_HEIGHT 80
#define PARTS_HEIGHT 160
#define PANEL_GAP    34
#define TIME_AXIS    46
#define ROW	     34
#define LINE	     18
#define PEAK_RIGHT   (WIDTH - 130)
#define END_RIGHT    (WIDTH - RIGHT)
#define NAME_LEFT    (LEFT - 4)
#define NAME_WIDTH   (PEAK_RIGHT - 90 - NAME_LEFT)
#define PNG_SCALE    2
/* Maximum width of a caller's name; callers that would get less are omitted. */
#define CALLER_WIDTH 250
#define CALLER_LEAST 60
/* If resident memory exceeds all bands by this factor, it gets a panel of its own, since the bands
 * would be flat beside it. */
#define RSS_WITH_BANDS 2

struct page {
	struct ink ink;
	const struct graph *graph;
	const struct graph_words *words;
	__u64 rss_bytes; /* largest resident memory in the recording */
	double y;	 /* top of the next element */
	int err;
};

static bool has_rss_panel(const struct page *page)
{
	return page->graph->n_rss_samples ||
	       page->rss_bytes / RSS_WITH_BANDS > page->graph->peak_bytes;
}

static double rss_height(const struct page *page)
{
	return page->graph->n_rss_samples ? PARTS_HEIGHT : SMALL_HEIGHT;
}

static double page_height(const struct page *page)
{
	const struct graph *graph = page->graph;
	size_t n_parts = 0;
	struct graph_part part;

	for (size_t i = 0; i < GRAPH_PARTS; i++)
		n_parts += graph_part__text(graph, i, &part);
	return PANELS_TOP + BANDS_HEIGHT + PANEL_GAP + SMALL_HEIGHT +
	       (has_rss_panel(page) ? PANEL_GAP + rss_height(page) : 0) + TIME_AXIS + LINE +
	       (graph->n_series + !!page->rss_bytes) * ROW + (n_parts + !!n_parts) * LINE +
	       3 * LINE + (page->words->n_notes ? page->words->n_notes + 0.5 : 0) * LINE;
}

static void fit(struct page *page, double x, double width, const char *text)
{
	int err = ink__fit(&page->ink, x, page->y, width, text, NULL);

	if (err)
		page->err = err;
}

static void draw_title(struct page *page)
{
	char peak[32], drawn[48] = "", when[32], live[32], blocks[32], end[32], text[256];
	const struct graph *graph = page->graph;
	__u64 peak_bytes = page->words->peak_bytes ? page->words->peak_bytes : graph->peak_bytes;

	page->y = 30;
	ink__set(&page->ink, INK_TEXT);
	ink__font(&page->ink, 16, true);
	fit(page, NAME_LEFT - 54, WIDTH - RIGHT - (NAME_LEFT - 54), page->words->title);
	graph_axis__print_bytes(peak_bytes, peak, sizeof(peak));
	graph_axis__print_bytes(graph->peak_bytes, live, sizeof(live));
	if (strcmp(live, peak))
		snprintf(drawn, sizeof(drawn), ", drawn %s", live);
	graph_axis__print_time(graph->peak_ns, when, sizeof(when));
	graph_axis__print_bytes(graph->live_bytes, live, sizeof(live));
	graph_axis__print_count(graph->live, blocks, sizeof(blocks));
	graph_axis__print_time(graph->end_ns, end, sizeof(end));
	if (graph->peak_bytes)
		snprintf(text, sizeof(text),
			 "%s; peak of live bytes: %s%s after %s; not freed: %s in %s %.6s", end,
			 peak, drawn, when, live, blocks,
			 plural__of("block{|s}", graph->live).text);
	else if (graph->live)
		snprintf(text, sizeof(text), "%s; not freed: %s in %s %.6s", end, live, blocks,
			 plural__of("block{|s}", graph->live).text);
	else
		snprintf(text, sizeof(text), "%s; no live bytes", end);
	if (page->words->selection) {
		size_t len = strlen(text);

		snprintf(text + len, sizeof(text) - len, "; %s", page->words->selection);
	}
	page->y = 52;
	ink__set(&page->ink, INK_DIM);
	ink__font(&page->ink, 12, false);
	fit(page, NAME_LEFT - 54, WIDTH - RIGHT - (NAME_LEFT - 54), text);
	page->y = PANELS_TOP;
}

static struct graph_panel next_panel(struct page *page, double height)
{
	struct graph_panel panel = {
		.left = LEFT,
		.top = page->y,
		.width = WIDTH - LEFT - RIGHT,
		.height = height,
		.x = graph_axis__time(page->graph->end_ns, 10),
	};

	page->y += height + PANEL_GAP;
	return panel;
}

/* Says in the picture why there is no band. */
static void draw_absence(struct page *page, const struct graph_panel *panel)
{
	char epoch[32], text[128];

	graph_axis__print_time(page->graph->epoch_ns, epoch, sizeof(epoch));
	if (page->graph->n_stacks)
		snprintf(text, sizeof(text),
			 "every block %s in the same %s that it was allocated in",
			 page->graph->live ? "was freed, or its process ended," : "was freed",
			 epoch);
	else
		snprintf(text, sizeof(text), "%s",
			 page->words->selection ? "no block is selected"
						: "no block was allocated");
	ink__set(&page->ink, INK_DIM);
	ink__font(&page->ink, 14, false);
	ink__text(&page->ink, panel->left + panel->width / 2, panel->top + panel->height * 0.45,
		  INK_CENTRE, text);
}

static void draw_stack_bands(struct page *page)
{
	struct graph_panel panel = next_panel(page, BANDS_HEIGHT);
	__u64 max = page->graph->peak_bytes;
	bool with_rss = page->rss_bytes && !has_rss_panel(page);
	int err;

	if (with_rss && page->rss_bytes > max)
		max = page->rss_bytes;
	panel.y = graph_axis__bytes(max, 6);
	graph_panel__frame(&page->ink, &panel,
			   with_rss ? "live bytes, and resident memory" : "live bytes", false);
	err = graph_panel__bands(&page->ink, &panel, page->graph);
	if (err)
		page->err = err;
	if (with_rss)
		graph_panel__rss(&page->ink, &panel, page->graph);
	err = graph_panel__numbers(&page->ink, &panel, page->graph);
	if (err)
		page->err = err;
	if (!page->graph->n_series)
		draw_absence(page, &panel);
}

static void draw_rss(struct page *page)
{
	struct graph_panel panel = next_panel(page, rss_height(page));
	const struct profile_rss_sample *highest = graph__highest_rss(page->graph);
	__u64 most = page->rss_bytes;

	if (highest && profile_rss_sample__sum(highest) > most)
		most = profile_rss_sample__sum(highest);
	panel.y = graph_axis__bytes(most, 3);
	graph_panel__frame(&page->ink, &panel,
			   highest ? "resident memory, and what it was at some moments"
				   : "resident memory",
			   false);
	graph_panel__parts(&page->ink, &panel, page->graph);
	graph_panel__rss(&page->ink, &panel, page->graph);
}

static void draw_rate(struct page *page)
{
	struct graph_panel panel = next_panel(page, SMALL_HEIGHT);
	double max = 0;

	for (size_t i = 0; i < page->graph->n_spans; i++)
		max = fmax(max,
			   page->graph->allocations[i] / (graph__span_ns(page->graph, i) / 1e9));
	panel.y = graph_axis__count(max, 3);
	graph_panel__frame(&page->ink, &panel, "allocations per second", true);
	graph_panel__rate(&page->ink, &panel, page->graph);
	page->y += TIME_AXIS - PANEL_GAP + LINE;
}

static void draw_figures(struct page *page, __u64 peak_bytes, __u64 end_bytes)
{
	char text[32];

	ink__set(&page->ink, INK_TEXT);
	ink__font(&page->ink, 12, false);
	graph_axis__print_bytes(peak_bytes, text, sizeof(text));
	ink__text(&page->ink, PEAK_RIGHT, page->y, INK_RIGHT, text);
	graph_axis__print_bytes(end_bytes, text, sizeof(text));
	ink__text(&page->ink, END_RIGHT, page->y, INK_RIGHT, text);
}

static void draw_swatch(struct page *page, double x, unsigned int colour, bool stays)
{
	page->ink.cairo->new_path(page->ink.cr);
	page->ink.cairo->rectangle(page->ink.cr, x, page->y - 11, 18, 14);
	graph_panel__fill(&page->ink, colour, stays);
}

static bool is_drawn(const struct graph *graph, const __u64 *bytes)
{
	for (size_t i = 0; i < graph->n_points; i++) {
		if (bytes[i])
			return true;
	}
	return false;
}

static void draw_callers(struct page *page, __u32 stack, const struct graph_label *label)
{
	double x = NAME_LEFT + 4, right = x + NAME_WIDTH, y = page->y + 14, used = 0;
	char text[64];
	int err = 0;

	ink__set(&page->ink, INK_DIM);
	ink__font(&page->ink, 10, false);
	snprintf(text, sizeof(text), label->n_callers ? "stack %u, called by " : "stack %u", stack);
	ink__text(&page->ink, x, y, INK_LEFT, text);
	x += ink__width(&page->ink, text);
	for (size_t i = 0; i < label->n_callers && x + CALLER_LEAST < right && !err; i++) {
		if (i)
			ink__text(&page->ink, x, y, INK_LEFT, ", ");
		x += i ? ink__width(&page->ink, ", ") : 0;
		err = ink__fit(&page->ink, x, y, fmin(CALLER_WIDTH, right - x), label->callers[i],
			       &used);
		x += used;
	}
	if (err)
		page->err = err;
}

static void draw_row(struct page *page, size_t row)
{
	const struct graph_series *series = &page->graph->series[row];
	const struct graph_label *label = &page->words->labels[row];
	unsigned int colour = ink__band(row, series->is_rest);
	char text[64];

	if (!series->is_rest) {
		snprintf(text, sizeof(text), "%zu", row + 1);
		ink__set(&page->ink, INK_TEXT);
		ink__font(&page->ink, 11, true);
		ink__text(&page->ink, LEFT - 50, page->y, INK_RIGHT, text);
	}
	if (is_drawn(page->graph, series->stays_bytes))
		draw_swatch(page, LEFT - 44, colour, true);
	if (is_drawn(page->graph, series->freed_bytes))
		draw_swatch(page, LEFT - 25, colour, false);
	draw_figures(page, series->peak_bytes, series->live_bytes);
	fit(page, NAME_LEFT + 4, NAME_WIDTH, label->name);
	if (series->stack)
		draw_callers(page, series->stack, label);
	page->y += ROW;
}

static void draw_rss_row(struct page *page)
{
	const struct graph *graph = page->graph;

	page->ink.cairo->new_path(page->ink.cr);
	page->ink.cairo->move_to(page->ink.cr, LEFT - 44, page->y - 4);
	page->ink.cairo->line_to(page->ink.cr, LEFT - 7, page->y - 4);
	graph_panel__dash(&page->ink);
	draw_figures(page, page->rss_bytes, graph->samples[graph->n_samples - 1].rss_bytes);
	fit(page, NAME_LEFT + 4, NAME_WIDTH, "resident memory");
	page->y += 14;
	ink__set(&page->ink, INK_DIM);
	ink__font(&page->ink, 10, false);
	fit(page, NAME_LEFT + 4, NAME_WIDTH, "anonymous pages of all followed processes (RSS)");
	page->y += ROW - 14;
}

static void draw_parts_rows(struct page *page)
{
	struct graph_part part;

	if (!page->graph->n_rss_samples)
		return;
	ink__set(&page->ink, INK_DIM);
	fit(page, NAME_LEFT + 4, NAME_WIDTH,
	    "bars: all resident memory at a moment, here at the highest and at the last");
	page->y += LINE;
	for (size_t i = 0; i < GRAPH_PARTS; i++) {
		if (!graph_part__text(page->graph, i, &part))
			continue;
		page->ink.cairo->rectangle(page->ink.cr, LEFT - 44, page->y - 11, 18, 14);
		ink__set(&page->ink, part.colour);
		page->ink.cairo->fill(page->ink.cr);
		draw_figures(page, part.peak_bytes, part.end_bytes);
		fit(page, NAME_LEFT + 4, NAME_WIDTH, part.name);
		page->y += LINE;
	}
}

static void draw_key(struct page *page)
{
	draw_swatch(page, LEFT - 44, 0x555555, true);
	ink__set(&page->ink, INK_TEXT);
	ink__text(&page->ink, LEFT - 20, page->y, INK_LEFT, "not freed");
	draw_swatch(page, LEFT + 100, 0x555555, false);
	ink__set(&page->ink, INK_TEXT);
	ink__text(&page->ink, LEFT + 124, page->y, INK_LEFT, "freed");
}

static void draw_legend(struct page *page)
{
	page->y += LINE;
	if (!page->graph->n_series && !page->rss_bytes)
		return;
	ink__set(&page->ink, INK_TEXT);
	ink__font(&page->ink, 11, true);
	if (page->graph->n_series)
		draw_key(page);
	ink__text(&page->ink, PEAK_RIGHT, page->y, INK_RIGHT, "peak");
	ink__text(&page->ink, END_RIGHT, page->y, INK_RIGHT, "left");
	page->ink.cairo->move_to(page->ink.cr, LEFT - 58, page->y + 8);
	page->ink.cairo->line_to(page->ink.cr, END_RIGHT, page->y + 8);
	ink__set(&page->ink, INK_GRID);
	page->ink.cairo->set_line_width(page->ink.cr, 1);
	page->ink.cairo->stroke(page->ink.cr);
	page->y += 26;
	for (size_t i = 0; i < page->graph->n_series; i++)
		draw_row(page, i);
	if (page->rss_bytes)
		draw_rss_row(page);
	draw_parts_rows(page);
}

static void draw_notes(struct page *page)
{
	ink__set(&page->ink, INK_WARNING);
	ink__font(&page->ink, 11, true);
	for (size_t i = 0; i < page->words->n_notes; i++) {
		fit(page, NAME_LEFT - 54, WIDTH - RIGHT - (NAME_LEFT - 54), page->words->notes[i]);
		page->y += LINE;
	}
}

static void draw_page(struct page *page)
{
	const struct cairo_library *cairo = page->ink.cairo;
	cairo_font_options_t *options = cairo->font_options_create();

	/* Hinting is switched off: it fits glyphs to pixels, so that text would not have the
	 * measured width. */
	cairo->font_options_set_hint_style(options, CAIRO_HINT_STYLE_NONE);
	cairo->font_options_set_hint_metrics(options, CAIRO_HINT_METRICS_OFF);
	cairo->font_options_set_antialias(options, CAIRO_ANTIALIAS_GRAY);
	page->ink.cairo->set_font_options(page->ink.cr, options);
	cairo->font_options_destroy(options);
	ink__set(&page->ink, INK_PAPER);
	page->ink.cairo->paint(page->ink.cr);
	draw_title(page);
	draw_stack_bands(page);
	if (has_rss_panel(page))
		draw_rss(page);
	draw_rate(page);
	draw_legend(page);
	draw_notes(page);
}

static cairo_status_t write_bytes(void *to, const unsigned char *bytes, unsigned int size)
{
	return fwrite(bytes, 1, size, to) == size ? CAIRO_STATUS_SUCCESS : CAIRO_STATUS_WRITE_ERROR;
}

/* Sets the PDF's date to the recording's, so that the same input gives the same file. */
static void set_pdf_date(const struct cairo_library *cairo, cairo_surface_t *surface,
			 const char *start_time)
{
	const char *date = "1970-01-01T00:00:00Z";
	struct tm tm;

	if (start_time && strlen(start_time) == strlen(date)) {
		const char *end = strptime(start_time, "%Y-%m-%dT%H:%M:%SZ", &tm);

		if (end && !*end)
			date = start_time;
	}
	cairo->pdf_surface_set_metadata(surface, CAIRO_PDF_METADATA_CREATE_DATE, date);
}

static cairo_surface_t *create_surface(const struct cairo_library *cairo, enum graph_format format,
				       const char *start_time, double height, FILE *to)
{
	cairo_surface_t *surface;

	if (format == GRAPH_PNG)
		return cairo->image_surface_create(CAIRO_FORMAT_RGB24, WIDTH * PNG_SCALE,
						   (int)ceil(height * PNG_SCALE));
	if (format == GRAPH_SVG) {
		surface = cairo->svg_surface_create_for_stream(write_bytes, to, WIDTH, height);
		/* Points would be a third larger, and leave a window of 1280 pixels. */
		cairo->svg_surface_set_document_unit(surface, CAIRO_SVG_UNIT_PX);
		return surface;
	}
	surface = cairo->pdf_surface_create_for_stream(write_bytes, to, WIDTH, height);
	set_pdf_date(cairo, surface, start_time);
	return surface;
}

static int finish(const struct ink *ink, cairo_surface_t *surface, enum graph_format format,
		  FILE *to)
{
	const struct cairo_library *cairo = ink->cairo;
	cairo_status_t status = cairo->status(ink->cr);

	errno = 0;
	if (!status && format == GRAPH_PNG)
		status = cairo->surface_write_to_png_stream(surface, write_bytes, to);
	cairo->surface_finish(surface);
	if (!status)
		status = cairo->surface_status(surface);
	if (ferror(to) || fflush(to))
		return errno ? -errno : -EIO;
	if (status == CAIRO_STATUS_WRITE_ERROR)
		return -EIO;
	/* Other errors of cairo mean that it cannot draw what it was asked to draw. */
	return !status ? 0 : status == CAIRO_STATUS_NO_MEMORY ? -ENOMEM : -ENOTSUP;
}

int graph__draw(const struct cairo_library *cairo, const struct graph *graph,
		const struct graph_words *words, enum graph_format format, FILE *to)
{
	struct page page = { .ink.cairo = cairo, .graph = graph, .words = words };
	cairo_surface_t *surface;
	int err;

	for (size_t i = 0; i < graph->n_samples; i++) {
		if (graph->samples[i].rss_bytes > page.rss_bytes)
			page.rss_bytes = graph->samples[i].rss_bytes;
	}
	surface = create_surface(cairo, format, words->start_time, page_height(&page), to);
	page.ink.cr = cairo->create(surface);
	if (format == GRAPH_PNG)
		cairo->scale(page.ink.cr, PNG_SCALE, PNG_SCALE);
	draw_page(&page);
	err = finish(&page.ink, surface, format, to);
	cairo->destroy(page.ink.cr);
	cairo->surface_destroy(surface);
	return page.err ? page.err : err;
}
