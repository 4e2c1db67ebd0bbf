/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Colours output and fits it to the width on a terminal; elsewhere output is plain and not
 * truncated. */
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
	bool colour;  /* false if NO_COLOR is set */
	bool redraws; /* lines can be overwritten */
	bool utf8;
	size_t columns; /* 0: no limit */
};

/* Further output is in @colour, until COLOUR_NONE. */
void terminal__set_colour(const struct terminal *terminal, enum colour colour);
/*
 * Prints @text in at most @columns (0: no limit), truncated with "..."; control characters and
 * invalid UTF-8 become '?'. Returns how many columns were used.
 */
size_t terminal__print(const struct terminal *terminal, const char *text, size_t columns);

/* Returns how many columns the whole @text needs. */
size_t terminal__columns_of(const char *text);

#endif
