/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the reader sits at: a report is in colour and fits the width on a terminal, and is whole and
 * plain everywhere else. */
#ifndef ALLOCPROF_TERMINAL_H
#define ALLOCPROF_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum colour {
	COLOUR_NONE,
	COLOUR_BOLD,
	COLOUR_DIM,
	COLOUR_RED,
	COLOUR_GREEN,
};

struct terminal {
	FILE *to;
	bool is_terminal;
	bool colour;  /* not where NO_COLOR is set */
	bool redraws; /* what was printed can be printed over */
	bool utf8;
	size_t columns; /* 0: without limit */
};

struct terminal terminal__of(FILE *to);
/* From here on everything is in @colour, until COLOUR_NONE. */
void terminal__set_colour(const struct terminal *terminal, enum colour colour);
/*
 * Prints @text, of which control characters and what is no UTF-8 become '?', in no more than @columns
 * (0: as many as it takes); its end becomes "..." where that is too few. Returns the columns used.
 */
size_t terminal__print(const struct terminal *terminal, const char *text, size_t columns);

/* The columns that all of @text takes. */
size_t terminal__columns_of(const char *text);

#endif
