// SPDX-License-Identifier: GPL-3.0-or-later
#include "table.h"

#include <string.h>

static void widen(struct table_column *column, size_t width)
{
	if (column->width < width)
		column->width = width;
}

void table__fit_titles(struct table_column *columns, size_t n)
{
	for (size_t i = 0; i < n; i++)
		widen(&columns[i], strlen(columns[i].title));
}

void table__fit(struct table_column *columns, size_t n, const struct table_cell *cells)
{
	for (size_t i = 0; i < n; i++)
		widen(&columns[i], strlen(cells[i].text.text));
}

static void print_cell(const struct table_column *column, const char *text, enum colour colour,
		       const struct terminal *terminal)
{
	int width = column->width;

	fprintf(terminal->to, "%*s", (int)column->gap, "");
	if (colour)
		terminal__set_colour(terminal, colour);
	fprintf(terminal->to, "%*s", column->left ? -width : width, text);
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
		print_cell(&columns[i], cells[i].text.text, cells[i].colour, terminal);
}

struct table_cell table__word(const char *word)
{
	struct table_cell cell = { .colour = COLOUR_NONE };

	snprintf(cell.text.text, sizeof(cell.text.text), "%s", word);
	return cell;
}
