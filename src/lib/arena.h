/* SPDX-License-Identifier: GPL-3.0-or-later */
/* An arena allocator, with interned strings. */
#ifndef ALLOCPROF_ARENA_H
#define ALLOCPROF_ARENA_H

#include <stddef.h>

#include "hash_table.h"

struct arena_block;

/* Zeroed is empty; not to be shared between threads. */
struct arena {
	struct arena_block *blocks;
	const char **strings;
	size_t n_strings, strings_room;
	struct hash_table index;
	__u64 seed;
};

void arena__release(struct arena *arena);

/* @size zeroed bytes, aligned for any type, or NULL on ENOMEM. Valid until the release. */
void *arena__alloc(struct arena *arena, size_t size);

/* The arena's only copy of the first @size bytes of @text, or NULL on ENOMEM. */
const char *arena__string(struct arena *arena, const char *text, size_t size);

#endif
