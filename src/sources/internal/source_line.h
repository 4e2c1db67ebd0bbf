/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Parses one line of a source's definition, from a file or --probe. */
#ifndef ALLOCPROF_SOURCE_LINE_H
#define ALLOCPROF_SOURCE_LINE_H

struct error;
struct source;

/* Adds the line to @source; modifies @line. @where begins the message of an error. -EINVAL,
 * -ENOMEM. */
int source__parse_line(struct source *source, char *line, const char *where, struct error *error);
/* Adds a file to search for the source's functions. -ENOMEM. */
int source__add_module(struct source *source, const char *module);

#endif
