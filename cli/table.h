/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Columns that line up. First fit all rows, then print them. */
#ifndef ALLOCPROF_TABLE_H
#define ALLOCPROF_TABLE_H

#include <stddef.h>

#include "number.h"
#include "terminal.h"

struct table_column {
	const char *title;
	bool left;    /* words, not numbers */
	size_t gap;   /* spaces before it */
	size_t width; /* at least; grows as cells are fitted */
};

struct table_cell {
	struct number_text text;
	enum colour colour;
};

/* Makes @columns wide enough for their titles. */
void table__fit_titles(struct table_column *columns, size_t n);
/* Makes them wide enough for a row. */
void table__fit(struct table_column *columns, size_t n, const struct table_cell *cells);
void table__print_titles(const struct table_column *columns, size_t n,
			 const struct terminal *terminal);
/* Without the end of the line, for what a caller has to add. */
void table__print_row(const struct table_column *columns, size_t n, const struct table_cell *cells,
		      const struct terminal *terminal);
/* A cell in words. */
struct table_cell table__word(const char *word);

#endif
