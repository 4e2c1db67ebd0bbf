/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Allocators as bytes. */
#ifndef ALLOCPROF_ALLOCATOR_WIRE_H
#define ALLOCPROF_ALLOCATOR_WIRE_H

struct allocator;
struct executable_parts;
struct source;
struct wire_reader;
struct wire_writer;

void allocator__write(const struct allocator *allocator, struct wire_writer *to);

/*
 * The allocator back, of the file at @path with code in @parts, where @source is what was asked for or NULL. -EPROTO: a
 * worker that is not to be trusted says what cannot be; -ENOMEM.
 */
int allocator__take(struct wire_reader *from, const char *path, const struct source *source,
		    const struct executable_parts *parts, struct allocator **out);

#endif
