/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The functions that a definition only counts (struct inside_counted). Their calls come to stubs (own.h): by the words
 * of other objects that have their addresses, or by the variable through which such a function goes on.
 */
#ifndef ALLOCPROF_INSIDE_COUNTED_H
#define ALLOCPROF_INSIDE_COUNTED_H

#include <linux/types.h>
#include <stdbool.h>

#include "objects.h"

struct interface_function;

/* Takes the functions from the header of the measurement. */
void counted__begin(void);

/* Returns whether there are any. */
bool counted__any(void);

/* Returns the row of the function of this name, or of dlsym(3) and dlvsym(3), which may find one; else NULL. */
const struct interface_function *counted__row(const char *name);

/* Returns whether the object is one of the files whose functions count. */
bool counted__is_in(const struct interface_function *row, const struct object *object);

/* A function that an object exports. */
struct counted_export {
	const struct interface_function *row;
	struct definition function;
	__u64 *word; /* it goes on by the value of this variable of the object; NULL: it has none */
	__u8 *flag;  /* where this byte is 1; NULL: always */
	bool is_misled; /* it has such variables, and they cannot be used: both are NULL */
};

/* Finds function number @number of the object, if that exports it and its functions count. Returns false behind the
 * last one; @out->row is NULL if the object has none of that number. */
bool counted__export(const struct object *object, __u32 number, struct counted_export *out);

/* Returns whether the object's function goes on by a variable, so that its calls come to a stub from there. */
bool counted__has_word(const struct interface_function *row, const struct object *object);

/* To be called with the name that a program looks up: the address that it gets may lead past the stubs. */
void counted__note_lookup(const char *name);

#endif
