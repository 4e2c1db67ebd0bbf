/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Parses one line of an allocator's definition, from a file or --probe. */
#ifndef ALLOCPROF_DEFINITION_LINE_H
#define ALLOCPROF_DEFINITION_LINE_H

struct error;
struct definition;

/* Adds the line to @definition, and changes @line. @where begins the message of an error. Fails
 * with -EINVAL or -ENOMEM. */
int definition__parse_line(struct definition *definition, char *line, const char *where,
			   struct error *error);
/* Adds a file to search for the definition's functions. Fails with -ENOMEM. */
int definition__add_module(struct definition *definition, const char *module);

#endif
