/* SPDX-License-Identifier: GPL-3.0-or-later */
/* .gnu_debugdata: the compressed symbol table that some distributions keep in stripped files. */
#ifndef ALLOCPROF_MINI_DEBUG_H
#define ALLOCPROF_MINI_DEBUG_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

struct debug_file;
struct mini_debug;
struct symbol_table;

/* Adds the symbols of @file's .gnu_debugdata to @table, which must not outlive *@out. *@out is NULL
 * if there is no such section, or if it is damaged or too large. 0 or -ENOMEM. */
int mini_debug__add(const struct debug_file *file, struct symbol_table *table,
		    struct mini_debug **out);
void mini_debug__free(struct mini_debug *mini);

/* The unpacked size of an .xz file, from the headers of all chunks, which the decoder enforces.
 * False if it is damaged or of an unusual kind. */
bool mini_debug__unpacked_size(const unsigned char *bytes, size_t size, __u64 *unpacked);

#endif
