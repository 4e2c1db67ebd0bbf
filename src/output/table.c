// SPDX-License-Identifier: GPL-3.0-or-later
#include "table.h"

#include <stdio.h>

static void widen(struct table_column *column, size_t width)
{
	if (column->width < width)
		column->width = width;
}

void table__fit_titles(struct table_column *columns, size_t n)
{
	for (size_t i = 0; i < n; i++)
		widen(&columns[i], terminal__columns_of(columns[i].title));
}

static const char *text_of(const struct table_cell *cell)
{
	return cell->name ? cell->name : cell->text.text;
}

void table__fit(struct table_column *columns, size_t n, const struct table_cell *cells)
{
	for (size_t i = 0; i < n; i++)
		widen(&columns[i], terminal__columns_of(text_of(&cells[i])));
}

static void print_blanks(const struct terminal *terminal, size_t n)
{
	fprintf(terminal->to, "%*s", (int)n, "");
}

static void print_cell(const struct table_column *column, const char *text, enum colour colour,
		       const struct terminal *terminal)
{
	size_t columns = terminal__columns_of(text), blanks;

	if (column->max && columns > column->max)
		columns = column->max;
	blanks = columns < column->width ? column->width - columns : 0;
	print_blanks(terminal, column->gap + (column->left ? 0 : blanks));
	if (colour)
		terminal__set_colour(terminal, colour);
	terminal__print(terminal, text, column->max);
	if (column->left)
		print_blanks(terminal, blanks);
	if (colour)
		terminal__set_colour(terminal, COLOUR_NONE);
}

void table__print_titles(const struct table_column *columns, size_t n,
			 const struct terminal *terminal)
{
	for (size_t i = 0; i < n; i++)
		print_cell(&columns[i], columns[i].title, COLOUR_BOLD, terminal);
}

void table__print_row(const struct table_column *columns, size_t n, const struct table_cell *cells,
		      const struct terminal *terminal)
{
	for (size_t i = 0; i < n; i++)
		print_cell(&columns[i], text_of(&cells[i]), cells[i].colour, terminal);
}

struct table_cell table__word(const char *word)
{
	struct table_cell cell = { .colour = COLOUR_NONE };

	snprintf(cell.text.text, sizeof(cell.text.text), "%s", word);
	return cell;
}
