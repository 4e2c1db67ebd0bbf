/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Changes words of other objects that hold addresses of functions: entries of their global offset
 * tables, and pointers that the dynamic linker has relocated. They are written one at a time,
 * while threads read them. */
#ifndef ALLOCPROF_INSIDE_WORDS_H
#define ALLOCPROF_INSIDE_WORDS_H

#include <linux/types.h>
#include <stdbool.h>

#include "objects.h"

/* Writes @value to the word of the object at @span. Returns false if its page cannot be made
 * writable. The object's read-only pages stay writable until words__protect(). */
bool words__write(const struct object_span *span, __u64 *word, __u64 value);
/* Does the same with one byte, which words__restore() leaves. */
bool words__write_byte(const struct object_span *span, __u8 *byte, __u8 value);
void words__protect(void);

/* The functions below are for a library that was mapped into a running process, in which the
 * dynamic linker does not find its functions. */

/* Has words__write() note from now on what it replaces, for words__restore(). Returns false if
 * there is no memory. */
bool words__begin(void);

/* Returns whether words are to lead to this library, as they do between words__begin() and
 * words__restore(). */
bool words__are_bound(void);

/* Changes each word of the object that leads to the first definition of a function that this
 * library has, too, or that the dynamic linker has not bound yet, to lead to this library's
 * function. */
void words__bind(const struct object *object, const struct object_span *span);

/* Does the same for the addresses of malloc and its like that the dynamic linker has looked up for
 * itself. */
void words__bind_linker(void);

struct words_sum {
	__u64 n, n_lost;
};

/* Returns how many words lead to this library. */
__u64 words__count(void);

/* Restores the words of all objects that are still loaded, while other threads are stopped.
 * @n_lost counts those that others have changed meanwhile, and words by which objects that came
 * later call the functions without this library. */
struct words_sum words__restore(void);

#endif
