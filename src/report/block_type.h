/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Knows from the names of functions, such as std::map<Key, Session>::operator[], which type a block is of. */
#ifndef ALLOCPROF_BLOCK_TYPE_H
#define ALLOCPROF_BLOCK_TYPE_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

struct block_types;
struct profile;

/* Reads the rules, data/types. @profile must outlive them. Returns NULL if there is no memory. */
struct block_types *block_types__new(const struct profile *profile);
void block_types__free(struct block_types *types);

/* A function of a library that a stack passes on its way to the allocator. */
struct block_type_frame {
	__u32 function; /* id; 0: unknown */
	bool has_lines; /* its code has debug information, so what is inlined there is known */
};

/* Stores which type a block is of that these functions, the innermost first, allocate; NULL: they do not say. The text is
 * that of @types. Returns 0 or -ENOMEM. */
int block_types__of_stack(struct block_types *types, const struct block_type_frame *frames,
			  size_t n, const char **type);

#endif
