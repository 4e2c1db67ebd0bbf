/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One line of a source's definition, as files have it and --probe. */
#ifndef ALLOCPROF_SOURCE_LINE_H
#define ALLOCPROF_SOURCE_LINE_H

struct error;
struct source;

/* Puts what @line says into @source; the line is in pieces then. @where begins the sentence of an error. -EINVAL,
 * -ENOMEM. */
int source__parse_line(struct source *source, char *line, const char *where, struct error *error);
/* One more file to look for it in. -ENOMEM. */
int source__add_module(struct source *source, const char *module);

#endif
