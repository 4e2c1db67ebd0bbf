// SPDX-License-Identifier: GPL-3.0-or-later
/* A flame graph that needs no script: each box has a title, which viewers show when one points at it. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "cleanup.h"
#include "flamegraph.h"
#include "flamegraph_ink.h"
#include "flamegraph_layout.h"
#include "number.h"
#include "page_text.h"
#include "path.h"
#include "profile.h"
#include "recording_text.h"

#define WIDTH	     1200
#define MARGIN	     16
#define ROW	     18
#define LINE	     17
#define PADDING	     4
#define LETTER_WIDTH 6.63 /* of monospace at 11 pixels */

struct svg {
	const struct flamegraph *flamegraph;
	const struct page_trie *trie;
	struct flamegraph_ink ink;
	struct flamegraph_layout layout;
	double *totals[DIFF_SIDES]; /* by node; NULL for DIFF_BEFORE: nothing to compare with */
	double *weights;	    /* what boxes are as wide as */
	double top;		    /* of the rows */
	FILE *to;
};

static const struct page_frame *frame_of(const struct svg *svg, __u32 node)
{
	return &svg->trie->frames.frames[svg->trie->node_frames[node]];
}

static const char *name_of(const struct svg *svg, __u32 node)
{
	return node ? frame_of(svg, node)->name : "all";
}

/* The last part of a scoped name: "c<d::e>" of "a::b::c<d::e>". */
static const char *last_part(const char *name)
{
	int depth = 0;

	for (const char *at = name + strlen(name); at > name + 1; at--) {
		if (strchr(">)]", at[-1]))
			depth++;
		else if (strchr("<([", at[-1]))
			depth--;
		else if (at[-1] == ':' && at[-2] == ':' && depth <= 0)
			return at;
	}
	return name;
}

/* Where the first @n characters of UTF-8 text end. */
static size_t size_of_chars(const char *text, size_t n)
{
	size_t size = 0;

	while (text[size] && n--)
		do
			size++;
		while ((text[size] & 0xc0) == 0x80);
	return size;
}

/* Prints as much of @name as has room in a box. */
static void print_label(const struct svg *svg, const char *name, double width)
{
	size_t room = width > 2 * PADDING ? (width - 2 * PADDING) / LETTER_WIDTH : 0;
	_cleanup_(free_ptr) char *cut = NULL;
	size_t size = size_of_chars(name, room);

	if (room < 3)
		return;
	if (name[size]) {
		name = last_part(name);
		size = size_of_chars(name, room);
	}
	if (name[size])
		cut = strndup(name, size_of_chars(name, room - 1));
	page_text__print(cut ? cut : name, svg->to);
	if (cut)
		fputs("\xe2\x80\xa6", svg->to);
}

/* Sums of what a damaged file says may be more than any number. */
static __u64 magnitude(double value)
{
	return number__of(fabs(value));
}

static void print_number(const struct svg *svg, double value)
{
	enum cost cost = svg->flamegraph->options.cost;
	__u64 number = magnitude(value);
	const char *unit = page_graphs__unit(cost);

	if (cost__is_bytes(cost) && number >= 1024)
		fprintf(svg->to, "%s (%s bytes)", number__bytes(number, false).text,
			number__count(number).text);
	else
		fprintf(svg->to, "%s %.*s", number__count(number).text,
			(int)strlen(unit) - (number == 1), unit);
}

static void print_share(const struct svg *svg, double part, double whole, const char *what)
{
	fputc('\n', svg->to);
	/* It may be less than the least that is printed: "<0.1 %". */
	page_text__print(number__share(magnitude(part), magnitude(whole)).text, svg->to);
	fprintf(svg->to, " of %s", what);
}

static void print_place(const struct svg *svg, __u32 node)
{
	const struct page_frame *frame = frame_of(svg, node);

	if (frame->file) {
		fputc('\n', svg->to);
		page_text__print(frame->file, svg->to);
		if (frame->line)
			fprintf(svg->to, ":%u", frame->line);
		if (frame->last_line > frame->line)
			fprintf(svg->to, "-%u", frame->last_line);
	}
	if (frame->module) {
		fputc('\n', svg->to);
		page_text__print(frame->module, svg->to);
	}
	if (frame->inlined)
		fputs("\ninlined", svg->to);
}

static void print_change(const struct svg *svg, __u32 node)
{
	double before = svg->totals[DIFF_BEFORE][node];
	double change = svg->totals[DIFF_AFTER][node] - before;

	fputs("\nbefore: ", svg->to);
	print_number(svg, before);
	fprintf(svg->to, "\n%s", !change ? "no change" : change < 0 ? "-" : "+");
	if (change)
		print_number(svg, change);
}

static void print_title(const struct svg *svg, const struct flamegraph_box *box)
{
	const double *totals = svg->totals[DIFF_AFTER];
	__u32 node = box->node;

	fputs("<title>", svg->to);
	if (box->hidden) {
		fprintf(svg->to, "%s that are too narrow to be drawn, %s ",
			number__count(box->hidden).text,
			svg->flamegraph->options.reversed ? "which call" : "called by");
		page_text__print(name_of(svg, node), svg->to);
		fputs("</title>", svg->to);
		return;
	}
	page_text__print(name_of(svg, node), svg->to);
	if (node)
		print_place(svg, node);
	fputc('\n', svg->to);
	print_number(svg, totals[node]);
	if (svg->totals[DIFF_BEFORE])
		print_change(svg, node);
	if (node) {
		print_share(svg, totals[node], totals[0], "all");
		if (svg->trie->parents[node])
			print_share(svg, totals[node], totals[svg->trie->parents[node]],
				    "the parent");
	}
	fputs("</title>", svg->to);
}

static const char *colour_of(const struct svg *svg, const struct flamegraph_box *box)
{
	__u32 node = box->node;

	if (box->hidden)
		return flamegraph_ink__rest();
	if (svg->totals[DIFF_BEFORE])
		return flamegraph_ink__change(svg->totals[DIFF_BEFORE][node],
					      svg->totals[DIFF_AFTER][node]);
	return flamegraph_ink__frame(&svg->ink, node ? frame_of(svg, node) : NULL);
}

static void print_box(const struct svg *svg, const struct flamegraph_box *box)
{
	__u32 row = svg->flamegraph->options.is_flame ? svg->layout.n_rows - 1 - box->depth
						      : box->depth;
	double y = svg->top + row * ROW, gap = box->width > 2 ? 0.8 : 0.1;

	fputs("<g>", svg->to);
	print_title(svg, box);
	fprintf(svg->to, "<rect x=\"%.2f\" y=\"%.0f\" width=\"%.2f\" height=\"%d\" fill=\"%s\"/>",
		MARGIN + box->x, y, box->width - gap, ROW - 1, colour_of(svg, box));
	if (box->width >= 3 * LETTER_WIDTH + 2 * PADDING) {
		fprintf(svg->to, "<text x=\"%.2f\" y=\"%.1f\">", MARGIN + box->x + PADDING,
			y + 12.5);
		print_label(svg, box->hidden ? "more" : name_of(svg, box->node), box->width);
		fputs("</text>", svg->to);
	}
	fputs("</g>\n", svg->to);
}

/* Prints @text from @x on and returns where it ends. */
static double print_text(const struct svg *svg, double x, double y, const char *style,
			 const char *text)
{
	fprintf(svg->to, "<text x=\"%.1f\" y=\"%.1f\"%s>", x, y, style);
	page_text__print(text, svg->to);
	fputs("</text>\n", svg->to);
	return x + size_of_chars(text, SIZE_MAX) * LETTER_WIDTH;
}

/* Returns the y of its last line. */
static double print_legend(const struct svg *svg, double y)
{
	double x = MARGIN;
	const char *title, *colour;

	for (size_t i = 0; flamegraph_ink__legend(&svg->ink, svg->totals[DIFF_BEFORE] != NULL, i,
						  &title, &colour);
	     i++) {
		double width = 18 + strlen(title) * LETTER_WIDTH + 14;

		if (x > MARGIN && x + width > WIDTH - MARGIN) {
			x = MARGIN;
			y += LINE;
		}
		if (svg->to) {
			fprintf(svg->to,
				"<rect x=\"%.1f\" y=\"%.1f\" width=\"12\" height=\"12\" fill=\"%s\"/>\n",
				x, y - 10, colour);
			print_text(svg, x + 17, y, "", title);
		}
		x += width;
	}
	return y;
}

static double print_remarks(const struct svg *svg, enum diff_side side, double y)
{
	const struct page_input *input = svg->flamegraph->graphs.inputs[side];
	_cleanup_(free_ptr) char *remarks = NULL;
	char *rest, *line;

	if (!input || recording_text__remarks(input->profile, &remarks))
		return y;
	for (rest = remarks; (line = strsep(&rest, "\n"));) {
		if (!*line)
			continue;
		if (svg->to)
			print_text(svg, MARGIN, y, " fill=\"#8a4b00\"", line);
		y += LINE;
	}
	return y;
}

static void print_heading(const struct svg *svg, const char *title)
{
	const struct flamegraph_options *options = &svg->flamegraph->options;
	const char *style = " font-family=\"sans-serif\" font-size=\"16\" font-weight=\"bold\"";
	_cleanup_(free_ptr) char *cut = strndup(title, size_of_chars(title, 115));

	print_text(svg, MARGIN, MARGIN + 14, style, cut ? cut : title);
	fprintf(svg->to, "<text x=\"%d\" y=\"%d\" font-family=\"sans-serif\" font-size=\"12\">",
		MARGIN, MARGIN + 34);
	fprintf(svg->to, "%s: ", page_graphs__title(options->cost));
	print_number(svg, svg->totals[DIFF_AFTER][0]);
	if (svg->totals[DIFF_BEFORE]) {
		fputs("; before: ", svg->to);
		print_number(svg, svg->totals[DIFF_BEFORE][0]);
	}
	if (options->reversed)
		fprintf(svg->to, "; callers are %s what they call",
			options->is_flame ? "above" : "below");
	fprintf(svg->to, "%s</text>\n", options->merged ? "; recursion is one frame" : "");
}

static void print_svg(const struct svg *svg, const char *title)
{
	double bottom = svg->top + svg->layout.n_rows * ROW, height;
	struct svg counting = *svg;

	/* The legend and the remarks, once to find how high they are. */
	counting.to = NULL;
	height = print_legend(&counting, bottom + 22) + 4;
	for (int side = 0; side < DIFF_SIDES; side++)
		height = print_remarks(&counting, side, height);
	fprintf(svg->to,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%.0f\" viewBox=\"0 0 %d %.0f\" "
		"font-family=\"'DejaVu Sans Mono', Menlo, Consolas, monospace\" font-size=\"11\" fill=\"#1d2024\">\n",
		WIDTH, height + MARGIN, WIDTH, height + MARGIN);
	fprintf(svg->to, "<rect width=\"100%%\" height=\"100%%\" fill=\"#fdfdfc\"/>\n");
	print_heading(svg, title);
	for (size_t i = 0; i < svg->layout.n; i++)
		print_box(svg, &svg->layout.boxes[i]);
	bottom = print_legend(svg, bottom + 22) + 4 + LINE;
	for (int side = 0; side < DIFF_SIDES; side++)
		bottom = print_remarks(svg, side, bottom);
	fputs("</svg>\n", svg->to);
}

/* Fills the totals and the weights. */
static int add_up(struct svg *svg)
{
	const struct page_graphs *graphs = &svg->flamegraph->graphs;
	size_t n = svg->trie->n_nodes;

	svg->weights = calloc(n, sizeof(double));
	if (!svg->weights)
		return -ENOMEM;
	for (int side = 0; side < DIFF_SIDES; side++) {
		if (!graphs->inputs[side])
			continue;
		svg->totals[side] = calloc(n, sizeof(double));
		if (!svg->totals[side])
			return -ENOMEM;
		page_graphs__add(graphs, side, svg->flamegraph->options.cost, svg->totals[side]);
		/* What is gone stays visible: a stack is as wide as it ever was. */
		for (size_t i = 0; i < n; i++)
			if (svg->totals[side][i] > svg->weights[i])
				svg->weights[i] = svg->totals[side][i];
		page_trie__add_up(svg->trie, svg->totals[side]);
	}
	page_trie__add_up(svg->trie, svg->weights);
	return 0;
}

int flamegraph__write_svg(const struct flamegraph *flamegraph, FILE *to)
{
	_cleanup_(free_ptr) char *title =
		recording_text__title(flamegraph->graphs.inputs[DIFF_AFTER]->profile);
	struct svg svg = {
		.flamegraph = flamegraph,
		.trie = flamegraph->graphs.trie,
		.top = MARGIN + 46,
		.to = to,
	};
	int err = title ? add_up(&svg) : -ENOMEM;

	if (!err)
		err = flamegraph_layout__make(&svg.layout, svg.trie, svg.weights,
					      WIDTH - 2 * MARGIN);
	if (!err)
		err = flamegraph_ink__init(&svg.ink, svg.trie, svg.totals[DIFF_AFTER],
					   flamegraph->options.by_module);
	if (!err) {
		errno = 0;
		print_svg(&svg, title);
		if (fflush(to) || ferror(to))
			err = errno ? -errno : -EIO;
	}
	flamegraph_layout__release(&svg.layout);
	for (int side = 0; side < DIFF_SIDES; side++)
		free(svg.totals[side]);
	free(svg.weights);
	return err;
}
