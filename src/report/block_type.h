/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Knows from the names of functions, such as std::map<Key, Session>::operator[], which type a block is of. */
#ifndef ALLOCPROF_BLOCK_TYPE_H
#define ALLOCPROF_BLOCK_TYPE_H

struct block_types;
struct profile;
struct profile_stack;

/* Reads the rules, data/types. @profile must outlive them. Returns NULL if there is no memory. */
struct block_types *block_types__new(const struct profile *profile);
void block_types__free(struct block_types *types);

/* Stores which type the blocks are of that @stack allocates, by the functions of libraries that are its innermost ones; NULL:
 * they do not say. The text is that of @types. Returns 0 or -ENOMEM. */
int block_types__of_stack(struct block_types *types, const struct profile_stack *stack,
			  const char **type);

#endif
