/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Aligned columns: first fit all rows, then print them. */
#ifndef ALLOCPROF_TABLE_H
#define ALLOCPROF_TABLE_H

#include <stddef.h>

#include "number.h"
#include "terminal.h"

struct table_column {
	const char *title;
	bool left;    /* left-aligned: text, not numbers */
	size_t gap;   /* spaces before the column */
	size_t width; /* minimum width; grows as cells are fitted */
	size_t max;   /* cells are cut to so many columns; 0: no limit */
};

struct table_cell {
	struct number_text text;
	enum colour colour;
	const char
		/* NULL, or text that is printed in place of @text: of any length, and hostile. */
		*name;
};

/* Widens @columns for their titles. */
void table__fit_titles(struct table_column *columns, size_t n);
/* Widens @columns for the cells of a row. */
void table__fit(struct table_column *columns, size_t n, const struct table_cell *cells);
void table__print_titles(const struct table_column *columns, size_t n,
			 const struct terminal *terminal);
/* Prints a row without ending the line, so that the caller can append to it. */
void table__print_row(const struct table_column *columns, size_t n, const struct table_cell *cells,
		      const struct terminal *terminal);
/* Returns a cell with the text @word. */
struct table_cell table__word(const char *word);

#endif
