/* SPDX-License-Identifier: GPL-3.0-or-later */
/* An allocator of memory that is all released at once, and a table of interned strings. */
#ifndef ALLOCPROF_ARENA_H
#define ALLOCPROF_ARENA_H

#include <stddef.h>

#include "hash_table.h"

struct arena_block;

/* Zeroed it is empty. Threads must not share an arena. */
struct arena {
	struct arena_block *blocks;
	const char **strings;
	size_t n_strings, strings_room;
	struct hash_table index;
	__u64 seed;
};

void arena__release(struct arena *arena);

/* Returns @size zeroed bytes, aligned for any type, or NULL if there is no memory. They are valid
 * until the arena is released. */
void *arena__alloc(struct arena *arena, size_t size);

/* Returns the arena's only copy of the first @size bytes of @text, or NULL if there is no memory. */
const char *arena__string(struct arena *arena, const char *text, size_t size);

#endif
