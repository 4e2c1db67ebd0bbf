/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Finds the class of an object of Swift by the function that had it allocated. */
#ifndef ALLOCPROF_SWIFT_TYPE_H
#define ALLOCPROF_SWIFT_TYPE_H

#include <stdbool.h>

/* Returns whether a linker's name is Swift's. */
bool swift_type__is_swift(const char *symbol);

/* Returns whether a function of Swift's library allocates an object, of the class that its caller hands down. */
bool swift_type__makes_objects(const char *name);

/*
 * Stores the class of the object that a function allocates by such a one in *@type, which the caller frees, or NULL if its name
 * does not say it. @name is as Swift's demangler has it, in full or simplified; the latter lacks the arguments of generic classes.
 * *@is_sure: code of the program is not inlined into that function. Returns 0 or -ENOMEM.
 */
int swift_type__of(const char *name, char **type, bool *is_sure);

#endif
