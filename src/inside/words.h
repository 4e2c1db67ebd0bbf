/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Words of other objects that have addresses of functions: entries of their global offset tables, and pointers that the dynamic
 * linker has relocated. They are written one at a time, while threads read them. */
#ifndef ALLOCPROF_INSIDE_WORDS_H
#define ALLOCPROF_INSIDE_WORDS_H

#include <linux/types.h>
#include <stdbool.h>

#include "objects.h"

/* Writes @value to the word of the object at @span. False: its page cannot be written. The object's pages that are only read
 * otherwise can be written until words__protect(). */
bool words__write(const struct object_span *span, __u64 *word, __u64 value);
void words__protect(void);

/* What follows is for a library that was mapped into a running process, where the dynamic linker does not find its functions. */

/* From now on words__write() notes what it replaces, for words__restore(). False: there is no memory. */
bool words__begin(void);

/* Returns whether words are to lead to this library: between words__begin() and words__restore(). */
bool words__are_bound(void);

/* Has each word of the object lead to this library's function that leads to the first definition of a function of that name, or that
 * the dynamic linker has not bound yet. */
void words__bind(const struct object *object, const struct object_span *span);

/* The same for the addresses of malloc and its like that the dynamic linker has looked up for itself. */
void words__bind_linker(void);

struct words_sum {
	__u64 n, n_lost;
};

/* How many words lead to this library. */
__u64 words__count(void);

/* Puts back all words of objects that are loaded still, while other threads are stopped. @n_lost counts those that others have
 * changed meanwhile, and words by which objects that came later reach the functions past this library. */
struct words_sum words__restore(void);

#endif
