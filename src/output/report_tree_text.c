// SPDX-License-Identifier: GPL-3.0-or-later
/* Prints a report's tree of functions as text. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "cleanup.h"
#include "number.h"
#include "profile.h"
#include "report_output.h"
#include "stack_groups.h"
#include "table.h"

#define LINK " > "
#define GAP  "..."

/* Prefixes of a line, one for each level above it. */
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

/* A line of the tree, whose frames must fit the width. */
struct chain {
	const struct report_output *output;
	const struct report_node *node;
	size_t columns; /* 0: no limit */
	__u32 core;	/* the innermost frame of the program's own code, for which users search */
	bool *keep;	/* indexed by frame */
	char **shorter; /* names without arguments of templates, by frame; NULL: they are whole */
};

/* Returns whether the frame is neither the process at the root nor the allocator's function. */
static bool is_frame(const struct chain *chain, __u32 at)
{
	return chain->node->frames[at] < chain->output->groups->n_view_labels;
}

static bool is_users(const struct chain *chain, __u32 at)
{
	return is_frame(chain, at) &&
	       chain->output->groups->labels[chain->node->frames[at]].kind == FRAME_KIND_OWN;
}

static size_t frame_columns(const struct chain *chain, __u32 at)
{
	return chain->shorter
		       ? terminal__columns_of(chain->shorter[at])
		       : report_output__frame_columns(chain->output, chain->node->frames[at]);
}

/* Prints a frame in at most @columns; 0: no limit. */
static void print_frame(const struct chain *chain, __u32 at, size_t columns)
{
	if (chain->shorter)
		terminal__print(&chain->output->terminal, chain->shorter[at], columns);
	else
		report_output__frame(chain->output, chain->node->frames[at], columns);
}

/*
 * Returns @name with "<...>" in the place of the arguments of templates, which the caller frees;
 * NULL if there is no memory. Whole stay names that begin with '<', such as Rust's, operators, and
 * what is not closed.
 */
static char *shorten(const char *name)
{
	char *made = malloc(3 * strlen(name) + 1), *to = made;
	int depth = 0;

	if (!made || *name == '<' || strstr(name, "operator"))
		return made ? strcpy(made, name) : NULL;
	for (const char *at = name; *at; at++) {
		depth -= *at == '>' && depth;
		if (!depth)
			*to++ = *at;
		if (*at == '<' && !depth++)
			to = mempcpy(to, GAP, strlen(GAP));
	}
	*to = '\0';
	return depth || to > made + strlen(name) ? strcpy(made, name) : made;
}

/* Returns the index of a frame counted from the allocator's side: 0 is the innermost. */
static __u32 from_inside(const struct chain *chain, __u32 i)
{
	return chain->output->bottom_up ? i : chain->node->n_frames - 1 - i;
}

static __u32 find_core(const struct chain *chain)
{
	__u32 n = chain->node->n_frames, best = from_inside(chain, 0);
	int best_rank = INT_MAX;

	for (__u32 i = 0; i < n && best_rank; i++) {
		__u32 at = from_inside(chain, i);
		const struct stack_label *label =
			&chain->output->groups->labels[chain->node->frames[at]];
		int rank = is_frame(chain, at) ? frame_kind__rank(label->kind, label->function)
					       : INT_MAX;

		if (rank < best_rank) {
			best = at;
			best_rank = rank;
		}
	}
	return best;
}

static size_t kept_columns(const struct chain *chain)
{
	size_t columns = 0;
	bool in_gap = false;

	for (__u32 i = 0; i < chain->node->n_frames; i++) {
		if (chain->keep[i])
			columns += frame_columns(chain, i) + strlen(LINK);
		else if (!in_gap)
			columns += strlen(GAP) + strlen(LINK);
		in_gap = !chain->keep[i];
	}
	return columns - strlen(LINK);
}

static bool try_to_keep(const struct chain *chain, __u32 at)
{
	bool was_kept = chain->keep[at];

	chain->keep[at] = true;
	if (!chain->columns || kept_columns(chain) <= chain->columns)
		return true;
	chain->keep[at] = was_kept;
	return false;
}

/*
 * Keeps frames that are the program's own (@users), or those that are not, from the core outwards;
 * every third one is taken from the other end.
 */
static bool keep_outwards(const struct chain *chain, bool users)
{
	__u32 n = chain->node->n_frames, outer = n, next = 0;

	while (from_inside(chain, next) != chain->core)
		next++;
	for (int turn = 0; next < outer; turn++) {
		__u32 at = from_inside(chain, turn % 3 == 2 ? --outer : next++);

		if (is_users(chain, at) == users && !try_to_keep(chain, at))
			return false;
	}
	return true;
}

/*
 * Keeps frames by priority: the program's own function that allocates, the allocator's function,
 * the library function that called it, its callers. Other frames of libraries are dropped first.
 * Returns false if not even the first fits.
 */
static bool choose_frames(struct chain *chain)
{
	__u32 n = chain->node->n_frames, inside = from_inside(chain, 0);
	bool fits;

	if (!try_to_keep(chain, chain->core))
		return false;
	fits = is_frame(chain, inside) || try_to_keep(chain, inside);
	if (chain->output->bottom_up ? chain->core > 0 : chain->core + 1 < n)
		fits = fits && try_to_keep(chain, chain->output->bottom_up ? chain->core - 1
									   : chain->core + 1);
	fits = fits && keep_outwards(chain, true) && keep_outwards(chain, false);
	/* Where one does not fit, others may. */
	for (__u32 i = 0; i < n; i++)
		try_to_keep(chain, from_inside(chain, i));
	return true;
}

static void print_kept(const struct chain *chain)
{
	FILE *to = chain->output->terminal.to;
	bool in_gap = false;

	for (__u32 i = 0; i < chain->node->n_frames; i++) {
		if (i && (chain->keep[i] || !in_gap))
			fputs(LINK, to);
		if (chain->keep[i])
			print_frame(chain, i, 0);
		else if (!in_gap)
			fputs(GAP, to);
		in_gap = !chain->keep[i];
	}
}

/* Prints the core frame, whatever the width, and the allocator's function if it fits. */
static void print_core(const struct chain *chain)
{
	const struct report_output *output = chain->output;
	__u32 inside = from_inside(chain, 0);
	size_t columns = chain->columns, tail = 0;

	if (!output->bottom_up && !is_frame(chain, inside) && inside != chain->core)
		tail = frame_columns(chain, inside) + strlen(LINK);
	if (tail + 8 > columns)
		tail = 0;
	if (tail && chain->core && columns > tail + 14) {
		fputs(GAP LINK, output->terminal.to);
		columns -= strlen(GAP LINK);
	}
	print_frame(chain, chain->core, columns - tail);
	if (tail) {
		fputs(LINK, output->terminal.to);
		print_frame(chain, inside, 0);
	}
}

static int shorten_names(struct chain *chain)
{
	chain->shorter = calloc(chain->node->n_frames + 1, sizeof(*chain->shorter));
	for (__u32 i = 0; chain->shorter && i < chain->node->n_frames; i++) {
		chain->shorter[i] =
			shorten(chain->output->groups->labels[chain->node->frames[i]].text);
		if (!chain->shorter[i])
			return -ENOMEM;
	}
	return chain->shorter ? 0 : -ENOMEM;
}

static int print_chain(const struct report_output *output, const struct report_node *node,
		       size_t columns)
{
	_cleanup_(free_ptr) bool *keep = calloc(node->n_frames, sizeof(*keep));
	struct chain chain = { output, node, columns, .keep = keep };

	int err = keep ? 0 : -ENOMEM;

	if (err)
		return err;
	chain.core = find_core(&chain);
	memset(keep, true, node->n_frames);
	if (columns && kept_columns(&chain) > columns)
		err = shorten_names(&chain);
	if (!err && chain.shorter)
		memset(keep, false, node->n_frames);
	if (!err && (!chain.shorter || choose_frames(&chain)))
		print_kept(&chain);
	else if (!err)
		print_core(&chain);
	for (__u32 i = 0; i < node->n_frames && chain.shorter; i++)
		free(chain.shorter[i]);
	free(chain.shorter);
	return err;
}

static int print_node(const struct report_output *output, const struct report_node *node,
		      const bool *last, const struct glyphs *glyphs, size_t columns)
{
	FILE *to = output->terminal.to;
	int err = 0;

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
		err = print_chain(output, node, columns);
	fputc('\n', to);
	return err;
}

static int print_tree(const struct report_output *output, const struct report_tree *tree)
{
	struct table_column columns[] = {
		{ "share" },
		{ "bytes", .gap = 2 },
		{ filter__has_live(output->profile) ? "blocks" : "calls", .gap = 2 },
	};
	const size_t n = ARRAY_SIZE(columns);
	const struct terminal *terminal = &output->terminal;
	_cleanup_(free_ptr) bool *last = NULL;
	struct table_cell cells[ARRAY_SIZE(columns)];
	size_t room = 0, used = 2;
	int err = 0;

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
	for (size_t i = 0; i < tree->n_nodes && !err && !ferror(terminal->to); i++) {
		const struct report_node *node = &tree->nodes[i];

		if (array__reserve(&last, &room, node->depth + 1, sizeof(*last)))
			return -ENOMEM;
		last[node->depth] = node->is_last;
		fill_cells(output, node, cells);
		table__print_row(columns, n, cells, terminal);
		fputs("  ", terminal->to);
		err = print_node(output, node, last, terminal->utf8 ? &utf8 : &ascii,
				 terminal->columns > used ? terminal->columns - used
							  : terminal->columns);
	}
	return err;
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
