/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The objects that the dynamic linker has loaded, and their symbols. dlsym(3) is not used: it may
 * allocate, it takes a lock, and before glibc 2.34 it is in a library that a program may not have.
 */
#ifndef ALLOCPROF_INSIDE_OBJECTS_H
#define ALLOCPROF_INSIDE_OBJECTS_H

#include <linux/types.h>
#include <stdbool.h>

struct object;

/* The path by which this library was loaded, or NULL where the dynamic linker's list is not found. */
const char *objects__own_path(void);

struct definition {
	void *address;
	__u64 size; /* bytes of code; 0 if the symbol does not say */
	const struct object *object;
};

/* The first definition of the function in the objects behind this library. False if there is none. */
bool objects__find_next(const char *name, struct definition *out);

/* Whether an object in front of this library defines the function: then that is the one that is called. */
bool objects__is_preceded(const char *name);

/* As objects__find_next(), in all objects but this library: for variables. */
void *objects__find(const char *name);

/* An address in the code of the dynamic linker; 0 where it is not a library of its own (musl), which does not
 * unload anything either. */
__u64 objects__linker_code(void);

/* How many objects were unloaded so far. */
__u64 objects__unloaded(void);

#endif
