/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A worker reads the allocators in a target's file, and this process checks the worker's answers.
 * The functions return the errors of those that run in the worker; -ECHILD if the file could not
 * be read safely; or -ENOMEM. Paths are for messages.
 */
#ifndef ALLOCPROF_ALLOCATOR_PARSE_H
#define ALLOCPROF_ALLOCATOR_PARSE_H

#include <stdbool.h>

struct allocator;
struct error;
struct parser;
struct definition;

/* Runs allocator__read() with SITE_BEST in a worker. */
int allocator__parse(struct parser *parser, int fd, const char *path, struct allocator **out,
		     struct error *error);

/* Runs allocator__read_definition() or usdt_definition__read() in a worker. @definition must have
 * been made before @parser, since the worker uses its copy. */
int allocator__parse_definition(struct parser *parser, int fd, const char *path,
				const struct definition *definition, struct allocator **out,
				struct error *error);

/* Runs hidden_allocator__find() in a worker. Returns -ENOENT if the file has no such allocator. */
int hidden_allocator__parse(struct parser *parser, int fd, const char *path, const char **out,
			    struct error *error);

#endif
