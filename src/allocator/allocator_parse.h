/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A worker reads the allocators in a target's file, and this process checks its answers. Beside the errors of the functions that run
 * there: -ECHILD, the file could not be read safely; -ENOMEM. Paths are for messages.
 */
#ifndef ALLOCPROF_ALLOCATOR_PARSE_H
#define ALLOCPROF_ALLOCATOR_PARSE_H

#include <stdbool.h>

struct allocator;
struct error;
struct parser;
struct definition;

/* allocator__read() with SITE_BEST. */
int allocator__parse(struct parser *parser, int fd, const char *path, struct allocator **out,
		     struct error *error);

/* allocator__read_definition() or usdt_definition__read(). @definition was there before the parser. */
int allocator__parse_definition(struct parser *parser, int fd, const char *path,
				const struct definition *definition, struct allocator **out,
				struct error *error);

/* hidden_allocator__find(): -ENOENT if there is none. */
int hidden_allocator__parse(struct parser *parser, int fd, const char *path, const char **out,
			    struct error *error);

#endif
