// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Draws a flame graph that needs no script: each box has a title, which viewers show when one
 * points at it.
 */
#include <errno.h>
#include <linux/types.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "cleanup.h"
#include "flamegraph_ink.h"
#include "number.h"
#include "page.h"
#include "page_text.h"
#include "page_trie.h"
#include "path.h"
#include "profile.h"
#include "recording_text.h"

struct flamegraph_box {
	/* Node of the box; for siblings that are too narrow for boxes, their parent. */
	__u32 node;
	__u32 hidden; /* how many such siblings the box stands for; 0: it is the box of @node */
	__u32 depth;  /* 0: the root */
	double x, width;
};

struct flamegraph_layout {
	struct flamegraph_box *boxes; /* parents before children, siblings by width, or by time */
	size_t n, room;
	__u32 n_rows;
};

/* Narrower boxes are drawn together with their neighbours. */
#define MIN_WIDTH 0.5

/* Turns the numbers of stacks into sums over those that go through a node. */
static void page_trie__add_up(const struct page_trie *trie, double *own)
{
	for (size_t i = trie->n_nodes - 1; i > 0; i--)
		own[trie->parents[i]] += own[i];
}

/* Lists of the children of each node. */
struct children {
	__u32 *nodes;
	size_t *starts; /* start of each node's list, by node; one more ends the last list */
};

static int find_children(const struct page_trie *trie, struct children *children)
{
	size_t *starts = calloc(trie->n_nodes + 2, sizeof(*starts));

	children->nodes = calloc(trie->n_nodes, sizeof(*children->nodes));
	children->starts = starts;
	if (!children->nodes || !starts)
		return -ENOMEM;
	/* Counts are stored two places further, so that filling the lists advances each start to
	 * the right place. */
	for (size_t i = 1; i < trie->n_nodes; i++)
		starts[trie->parents[i] + 2]++;
	for (size_t i = 2; i < trie->n_nodes + 2; i++)
		starts[i] += starts[i - 1];
	for (size_t i = 1; i < trie->n_nodes; i++)
		children->nodes[starts[trie->parents[i] + 1]++] = i;
	return 0;
}

struct order {
	const struct page_trie *trie;
	const double *weights;
	bool by_time; /* siblings stay in the order in which they were added */
};

/* Compares by weight, then by name, so that equal recordings give equal pictures. */
static int compare_nodes(const void *left, const void *right, void *context)
{
	const struct order *order = context;
	const struct page_trie *trie = order->trie;
	__u32 a = *(const __u32 *)left, b = *(const __u32 *)right;
	int by_name;

	if (order->weights[a] != order->weights[b])
		return order->weights[a] > order->weights[b] ? -1 : 1;
	by_name = strcmp(trie->frames.frames[trie->node_frames[a]].name,
			 trie->frames.frames[trie->node_frames[b]].name);
	return by_name ? by_name : a < b ? -1 : a > b;
}

static int add_box(struct flamegraph_layout *layout, const struct flamegraph_box *box)
{
	int err = array__reserve(&layout->boxes, &layout->room, layout->n + 1, sizeof(*box));

	if (err)
		return err;
	layout->boxes[layout->n++] = *box;
	if (box->depth >= layout->n_rows)
		layout->n_rows = box->depth + 1;
	return 0;
}

/* Adds the box for the narrow siblings that @rest has, which then has none. */
static int add_rest(struct flamegraph_layout *layout, struct flamegraph_box *rest)
{
	int err = rest->width >= MIN_WIDTH ? add_box(layout, rest) : 0;

	rest->x += rest->width;
	rest->width = rest->hidden = 0;
	return err;
}

/* Puts the nodes that are to be drawn first, in their order, and those that are too narrow behind them. */
static void order_children(const struct order *order, __u32 *nodes, size_t n, double scale)
{
	size_t wide = 0;

	for (size_t i = 0; i < n; i++) {
		__u32 node = nodes[i];

		if (order->weights[node] * scale < MIN_WIDTH)
			continue;
		nodes[i] = nodes[wide];
		nodes[wide++] = node;
	}
	if (wide)
		qsort_r(nodes, wide, sizeof(*nodes), compare_nodes, (void *)order);
}

static int add_children(struct flamegraph_layout *layout, const struct order *order,
			const struct children *children, struct flamegraph_box parent, double scale)
{
	__u32 *nodes = &children->nodes[children->starts[parent.node]];
	size_t n = children->starts[parent.node + 1] - children->starts[parent.node];
	struct flamegraph_box rest = { .node = parent.node,
				       .depth = parent.depth + 1,
				       .x = parent.x };
	int err = 0;

	if (!order->by_time)
		order_children(order, nodes, n, scale);
	for (size_t i = 0; i < n && !err; i++) {
		double width = order->weights[nodes[i]] * scale;

		if (width < MIN_WIDTH) {
			rest.width += width;
			rest.hidden += width > 0;
			continue;
		}
		err = add_rest(layout, &rest);
		if (!err)
			err = add_box(layout, &(struct flamegraph_box){ nodes[i], 0, rest.depth,
									rest.x, width });
		rest.x += width;
	}
	return err ?: add_rest(layout, &rest);
}

/* Lays out the whole trie. @weights has the width of each node; @by_time: of a chart. Returns 0 or -ENOMEM. The caller
 * releases the layout in either case. */
static int flamegraph_layout__make(struct flamegraph_layout *layout, const struct page_trie *trie,
				   const double *weights, double width, bool by_time)
{
	_cleanup_(free_ptr) __u32 *nodes = NULL;
	_cleanup_(free_ptr) size_t *starts = NULL;
	const struct order order = { trie, weights, by_time };
	struct children children = { 0 };
	int err;

	*layout = (struct flamegraph_layout){ 0 };
	err = find_children(trie, &children);
	nodes = children.nodes;
	starts = children.starts;
	if (!err)
		err = add_box(layout, &(struct flamegraph_box){ .width = width });
	for (size_t i = 0; i < layout->n && !err && weights[0] > 0; i++)
		if (!layout->boxes[i].hidden)
			err = add_children(layout, &order, &children, layout->boxes[i],
					   width / weights[0]);
	return err;
}

static void flamegraph_layout__release(struct flamegraph_layout *layout)
{
	free(layout->boxes);
}

#define MARGIN	     16
#define ROW	     18
#define LINE	     17
#define PADDING	     4
#define TICK_WIDTH   72
#define LETTER_WIDTH 6.63 /* width of a monospace letter of 11 pixels */

struct svg {
	const struct flamegraph *flamegraph;
	const struct page_trie *trie;
	struct flamegraph_ink ink;
	struct flamegraph_layout layout;
	/* Totals by node; NULL for DIFF_BEFORE: there is nothing to compare with. */
	double *totals[DIFF_SIDES];
	double *weights; /* widths of the boxes */
	double top;	 /* top of the rows */
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

/* Returns the last part of a scoped name: "c<d::e>" of "a::b::c<d::e>". */
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

/* Returns the size in bytes of the first @n characters of UTF-8 text. */
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

/* Returns the absolute value; sums of a damaged file may be greater than any integer. */
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
	/* The share may be less than the least that is printed: "<0.1 %". */
	page_text__print(number__share(magnitude(part), magnitude(whole)).text, svg->to);
	fprintf(svg->to, " of %s", what);
}

static void print_position(const struct svg *svg, __u32 node)
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

static void print_times(const struct svg *svg, __u32 node)
{
	const struct page_chart *chart = svg->flamegraph->graphs.chart;

	if (chart)
		fprintf(svg->to, "\n%s to %s after the start",
			number__time(number__of(chart->first_ns[node])).text,
			number__time(number__of(chart->last_ns[node])).text);
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
		print_position(svg, node);
	fputc('\n', svg->to);
	print_number(svg, totals[node]);
	print_times(svg, node);
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

static struct ink_colour colour_of(const struct svg *svg, const struct flamegraph_box *box)
{
	__u32 node = box->node;
	double before, after, greater;

	if (box->hidden)
		return ink_colour__of(flamegraph_ink__rest());
	if (!svg->totals[DIFF_BEFORE])
		return ink_colour__of(
			flamegraph_ink__frame(&svg->ink, node ? frame_of(svg, node) : NULL));
	before = svg->totals[DIFF_BEFORE][node];
	after = svg->totals[DIFF_AFTER][node];
	greater = fmax(before, after);
	return flamegraph_ink__change(greater > 0 ? (after - before) / greater : 0);
}

static void print_box(const struct svg *svg, const struct flamegraph_box *box)
{
	__u32 row = svg->flamegraph->options.is_flame ? svg->layout.n_rows - 1 - box->depth
						      : box->depth;
	double y = svg->top + row * ROW, gap = box->width > 2 ? 0.8 : 0.1;

	fputs("<g>", svg->to);
	print_title(svg, box);
	fprintf(svg->to, "<rect x=\"%.2f\" y=\"%.0f\" width=\"%.2f\" height=\"%d\" fill=\"%s\"/>",
		MARGIN + box->x, y, box->width - gap, ROW - 1, colour_of(svg, box).text);
	if (box->width >= 3 * LETTER_WIDTH + 2 * PADDING) {
		fprintf(svg->to, "<text x=\"%.2f\" y=\"%.1f\">", MARGIN + box->x + PADDING,
			y + 12.5);
		print_label(svg, box->hidden ? "more" : name_of(svg, box->node), box->width);
		fputs("</text>", svg->to);
	}
	fputs("</g>\n", svg->to);
}

/* Prints @text from @x on and returns the x at which it ends. */
static double print_text(const struct svg *svg, double x, double y, const char *style,
			 const char *text)
{
	fprintf(svg->to, "<text x=\"%.1f\" y=\"%.1f\"%s>", x, y, style);
	page_text__print(text, svg->to);
	fputs("</text>\n", svg->to);
	return x + size_of_chars(text, SIZE_MAX) * LETTER_WIDTH;
}

/* Prints the legend. Returns the y of its last line. */
static double print_legend(const struct svg *svg, double y)
{
	double x = MARGIN;
	const char *title;
	struct ink_colour colour;

	for (size_t i = 0; flamegraph_ink__legend(&svg->ink, svg->totals[DIFF_BEFORE] != NULL, i,
						  &title, &colour);
	     i++) {
		double width = 18 + strlen(title) * LETTER_WIDTH + 14;

		if (x > MARGIN && x + width > svg->flamegraph->options.width - MARGIN) {
			x = MARGIN;
			y += LINE;
		}
		if (svg->to) {
			fprintf(svg->to,
				"<rect x=\"%.1f\" y=\"%.1f\" width=\"12\" height=\"12\" fill=\"%s\"/>\n",
				x, y - 10, colour.text);
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

/* Prints "; +912 KiB (+0.2 %)". */
static void print_total_change(const struct svg *svg)
{
	double before = svg->totals[DIFF_BEFORE][0], after = svg->totals[DIFF_AFTER][0];
	char share[32] = "";

	if (before > 0)
		snprintf(share, sizeof(share), " (%+.1f %%)", 100 * (after - before) / before);
	if (after == before)
		fputs("; no change", svg->to);
	else
		fprintf(svg->to, "; %c%s%s", after < before ? '-' : '+',
			cost__is_bytes(svg->flamegraph->options.cost)
				? number__bytes(magnitude(after - before), false).text
				: number__count(magnitude(after - before)).text,
			share);
}

static void print_heading(const struct svg *svg, const char *title)
{
	const struct flamegraph_options *options = &svg->flamegraph->options;
	const char *style = " font-family=\"sans-serif\" font-size=\"16\" font-weight=\"bold\"";
	_cleanup_(free_ptr) char *cut =
		strndup(title, size_of_chars(title, options->width / 10 - 5));

	print_text(svg, MARGIN, MARGIN + 14, style, cut ? cut : title);
	fprintf(svg->to, "<text x=\"%d\" y=\"%d\" font-family=\"sans-serif\" font-size=\"12\">",
		MARGIN, MARGIN + 34);
	fprintf(svg->to, "%s: ", page_graphs__title(options->cost));
	print_number(svg, svg->totals[DIFF_AFTER][0]);
	if (svg->totals[DIFF_BEFORE]) {
		fputs("; before: ", svg->to);
		print_number(svg, svg->totals[DIFF_BEFORE][0]);
		print_total_change(svg);
	}
	if (options->reversed)
		fprintf(svg->to, "; callers are %s what they call",
			options->is_flame ? "above" : "below");
	if (svg->flamegraph->graphs.chart)
		fputs("; in the order of the calls", svg->to);
	fprintf(svg->to, "%s</text>\n", options->merged ? "; recursion is one frame" : "");
}

static int compare_places(const void *left, const void *right)
{
	const struct flamegraph_box *a = left, *b = right;

	if (a->x != b->x)
		return a->x < b->x ? -1 : 1;
	return a->depth < b->depth ? -1 : a->depth > b->depth;
}

/* Prints above the rows of a chart when calls were made that are below. Widths are costs, so that equal distances are
 * equal times only where costs are. Returns 0 or -ENOMEM. */
static int print_ticks(const struct svg *svg)
{
	const struct page_chart *chart = svg->flamegraph->graphs.chart;
	_cleanup_(free_ptr) struct flamegraph_box *boxes =
		array__copy(svg->layout.boxes, svg->layout.n, sizeof(*boxes));
	double next = 0;

	if (!boxes)
		return -ENOMEM;
	qsort(boxes, svg->layout.n, sizeof(*boxes), compare_places);
	for (size_t i = 0; i < svg->layout.n; i++) {
		double x = MARGIN + boxes[i].x;

		if (boxes[i].x < next || boxes[i].hidden ||
		    boxes[i].x + TICK_WIDTH > svg->flamegraph->options.width - 2 * MARGIN)
			continue;
		fprintf(svg->to, "<path d=\"M%.1f %.1fv8\" stroke=\"#75736b\"/>\n", x + 0.5,
			svg->top - 9);
		print_text(svg, x + 4, svg->top - 3, " fill=\"#55534d\"",
			   number__time(number__of(chart->first_ns[boxes[i].node])).text);
		next = boxes[i].x + TICK_WIDTH;
	}
	return 0;
}

/* Returns 0 or -ENOMEM. */
static int print_svg(const struct svg *svg, const char *title)
{
	double bottom = svg->top + svg->layout.n_rows * ROW, height;
	__u32 width = svg->flamegraph->options.width;
	struct svg counting = *svg;

	/* The legend and the remarks are first laid out without printing, to find their height. */
	counting.to = NULL;
	height = print_legend(&counting, bottom + 22) + 4;
	for (int side = 0; side < DIFF_SIDES; side++)
		height = print_remarks(&counting, side, height);
	fprintf(svg->to,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%u\" height=\"%.0f\" viewBox=\"0 0 %u %.0f\" "
		"font-family=\"'DejaVu Sans Mono', Menlo, Consolas, monospace\" font-size=\"11\" fill=\"#1d2024\">\n",
		width, height + MARGIN, width, height + MARGIN);
	fprintf(svg->to, "<rect width=\"100%%\" height=\"100%%\" fill=\"#fdfdfc\"/>\n");
	print_heading(svg, title);
	if (svg->flamegraph->graphs.chart && print_ticks(svg))
		return -ENOMEM;
	for (size_t i = 0; i < svg->layout.n; i++)
		print_box(svg, &svg->layout.boxes[i]);
	bottom = print_legend(svg, bottom + 22) + 4 + LINE;
	for (int side = 0; side < DIFF_SIDES; side++)
		bottom = print_remarks(svg, side, bottom);
	fputs("</svg>\n", svg->to);
	return 0;
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
		/* What is gone remains visible: a stack is as wide as on the side where it was
		 * wider. */
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
	_cleanup_(free_ptr) char *title = flamegraph__title(flamegraph);
	struct svg svg = {
		.flamegraph = flamegraph,
		.trie = flamegraph->graphs.trie,
		.top = MARGIN + (flamegraph->graphs.chart ? 62 : 46),
		.to = to,
	};
	int err = title ? add_up(&svg) : -ENOMEM;

	if (!err)
		err = flamegraph_layout__make(&svg.layout, svg.trie, svg.weights,
					      flamegraph->options.width - 2 * MARGIN,
					      flamegraph->graphs.chart);
	if (!err)
		err = flamegraph_ink__init(&svg.ink, svg.trie, svg.totals[DIFF_AFTER],
					   flamegraph->options.by_module);
	if (!err) {
		errno = 0;
		err = print_svg(&svg, title);
		if (!err && (fflush(to) || ferror(to)))
			err = errno ? -errno : -EIO;
	}
	flamegraph_layout__release(&svg.layout);
	for (int side = 0; side < DIFF_SIDES; side++)
		free(svg.totals[side]);
	free(svg.weights);
	return err;
}
