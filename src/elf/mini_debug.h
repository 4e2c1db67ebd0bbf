/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The symbol table that some distributions leave compressed in a stripped file: .gnu_debugdata. */
#ifndef ALLOCPROF_MINI_DEBUG_H
#define ALLOCPROF_MINI_DEBUG_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

struct debug_file;
struct mini_debug;
struct symbol_table;

/*
 * Adds what @file's .gnu_debugdata has to @table, which must not outlive *@out. *@out is NULL where
 * the file has no such section, or one that libdwfl cannot read or that is larger than reason.
 * 0 or -ENOMEM.
 */
int mini_debug__add(const struct debug_file *file, struct symbol_table *table,
		    struct mini_debug **out);
void mini_debug__free(struct mini_debug *mini);

/* What the @size bytes of .xz become, by the headers of all of their chunks, which the decoder holds
 * to. False where it is no such file or one of an unusual kind. */
bool mini_debug__unpacked_size(const unsigned char *bytes, size_t size, __u64 *unpacked);

#endif
