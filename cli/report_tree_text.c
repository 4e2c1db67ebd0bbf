// SPDX-License-Identifier: GPL-3.0-or-later
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "cleanup.h"
#include "number.h"
#include "profile.h"
#include "report_output.h"
#include "stack_groups.h"
#include "table.h"

/* What stands before a line for each level above it. */
struct glyphs {
	const char *through, *none, *child, *last;
};

static const struct glyphs ascii = { "|  ", "   ", "|- ", "`- " };
static const struct glyphs utf8 = { "│  ", "   ", "├─ ", "└─ " };

static void fill_cells(const struct report_output *output, const struct report_node *node,
		       struct table_cell *cells)
{
	__u64 cost = cost__is_bytes(output->cost) ? node->size_bytes : node->blocks;
	__u64 all = cost__of(output->cost, &output->report->whole);

	cells[0] = (struct table_cell){ number__share(cost, all) };
	cells[1] = (struct table_cell){ number__bytes(node->size_bytes,
						      !output->terminal.is_terminal) };
	cells[2] = (struct table_cell){ number__count(node->blocks) };
}

/* The one frame of a chain that has to be there where hardly anything finds room. */
static void print_core(const struct report_output *output, const struct report_node *node,
		       size_t columns)
{
	__u32 last = node->n_frames - 1, core = output->bottom_up || !last ? 0 : last - 1;
	size_t tail = 0;

	/* Top down the allocator's function comes last and its caller is what is looked for. */
	if (!output->bottom_up && last)
		tail = report_output__frame_columns(output, node->frames[last]) + 3;
	if (tail + 8 > columns)
		tail = 0;
	if (tail && last > 1 && columns > tail + 14) {
		fputs("... > ", output->terminal.to);
		columns -= 6;
	}
	report_output__frame(output, node->frames[core], columns - tail);
	if (tail) {
		fputs(" > ", output->terminal.to);
		report_output__frame(output, node->frames[last], 0);
	}
}

/* A chain in @columns (0: no limit): where it is too long its middle is left out. */
static void print_chain(const struct report_output *output, const struct report_node *node,
			size_t columns)
{
	const struct terminal *terminal = &output->terminal;
	__u32 head = 0, tail = node->n_frames;
	size_t total = 0, used = 3;

	for (__u32 i = 0; i < node->n_frames; i++)
		total += report_output__frame_columns(output, node->frames[i]) + 3;
	if (!columns || total <= columns + 3)
		head = node->n_frames;
	/* Where the allocation is tells most: two frames from there, one from the other end, and so on
	 * inwards. */
	for (int turn = output->bottom_up ? 1 : 0; head < tail; turn++) {
		bool at_end = output->bottom_up ? turn % 3 == 0 : turn % 3 != 2;
		__u32 at = at_end ? tail - 1 : head;
		size_t more = report_output__frame_columns(output, node->frames[at]) + 3;

		if (used + more > columns)
			break;
		used += more;
		if (at_end)
			tail--;
		else
			head++;
	}
	if (head < tail && head + node->n_frames - tail < (output->bottom_up ? 1 : 2)) {
		print_core(output, node, columns);
		return;
	}
	for (__u32 i = 0; i < head; i++) {
		fputs(i ? " > " : "", terminal->to);
		report_output__frame(output, node->frames[i], 0);
	}
	if (head < tail)
		fputs(head ? " > ..." : "...", terminal->to);
	for (__u32 i = tail; i < node->n_frames && head < node->n_frames; i++) {
		fputs(" > ", terminal->to);
		report_output__frame(output, node->frames[i], 0);
	}
}

static void print_node(const struct report_output *output, const struct report_node *node,
		       const bool *last, const struct glyphs *glyphs, size_t columns)
{
	FILE *to = output->terminal.to;

	terminal__set_colour(&output->terminal, COLOUR_DIM);
	for (__u32 i = 1; i < node->depth; i++)
		fputs(last[i] ? glyphs->none : glyphs->through, to);
	if (node->depth)
		fputs(node->is_last ? glyphs->last : glyphs->child, to);
	terminal__set_colour(&output->terminal, COLOUR_NONE);
	if (columns) {
		size_t indent = 3 * node->depth;

		columns = columns > indent + 12 ? columns - indent : 12;
	}
	if (node->n_hidden)
		fprintf(to, "(%s smaller)", number__count(node->n_hidden).text);
	else
		print_chain(output, node, columns);
	fputc('\n', to);
}

static int print_tree(const struct report_output *output, const struct report_tree *tree)
{
	struct table_column columns[] = {
		{ "share" },
		{ "bytes", .gap = 2 },
		{ filter__has_live(output->profile) ? "blocks" : "calls", .gap = 2 },
	};
	const size_t n = sizeof(columns) / sizeof(columns[0]);
	const struct terminal *terminal = &output->terminal;
	_cleanup_(free_ptr) bool *last = NULL;
	struct table_cell cells[sizeof(columns) / sizeof(columns[0])];
	size_t room = 0, used = 2;

	table__fit_titles(columns, n);
	for (size_t i = 0; i < tree->n_nodes; i++) {
		fill_cells(output, &tree->nodes[i], cells);
		table__fit(columns, n, cells);
	}
	for (size_t i = 0; i < n; i++)
		used += columns[i].gap + columns[i].width;
	if (!tree->n_nodes)
		return 0;
	fputc('\n', terminal->to);
	table__print_titles(columns, n, terminal);
	fprintf(terminal->to, "  %s\n",
		output->bottom_up ? "allocated by > called by" : "function > called function");
	for (size_t i = 0; i < tree->n_nodes && !ferror(terminal->to); i++) {
		const struct report_node *node = &tree->nodes[i];

		if (array__reserve(&last, &room, node->depth + 1, sizeof(*last)))
			return -ENOMEM;
		last[node->depth] = node->is_last;
		fill_cells(output, node, cells);
		table__print_row(columns, n, cells, terminal);
		fputs("  ", terminal->to);
		print_node(output, node, last, terminal->utf8 ? &utf8 : &ascii,
			   terminal->columns > used ? terminal->columns - used : terminal->columns);
	}
	return 0;
}

int report_output__tree(const struct report_output *output)
{
	const struct report_tree_options options = {
		.cost = output->cost,
		.bottom_up = output->bottom_up,
		.min_share = output->min_share,
	};
	struct report_tree *tree = report_tree__new(output->report, output->groups, &options);
	int err;

	if (!tree)
		return -ENOMEM;
	err = print_tree(output, tree);
	report_tree__free(tree);
	return err;
}
