/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The objects that the dynamic linker has loaded, and their symbols. dlsym(3) is not used: it may
 * allocate, it takes a lock, and before glibc 2.34 it is in a library that a program may not have.
 */
#ifndef ALLOCPROF_INSIDE_OBJECTS_H
#define ALLOCPROF_INSIDE_OBJECTS_H

#include <elf.h>
#include <linux/types.h>
#include <stdbool.h>

/* The part of struct link_map that debuggers rely on: glibc and musl agree. */
struct object {
	__u64 bias;
	char *path;
	Elf64_Dyn *dynamic;
	struct object *next, *previous;
};

/* The first in the order in which names are searched, and this library; NULL where the list is not found. Once there may be
 * threads the list is walked within objects__hold() only. */
struct object *objects__first(void);
struct object *objects__own(void);

/* The path by which this library was loaded, or NULL where the dynamic linker's list is not found. */
const char *objects__own_path(void);

struct definition {
	void *address;
	__u64 size; /* bytes of code; 0 if the symbol does not say */
	const struct object *object;
};

/* The first definition of the function in the objects behind this library. False if there is none. */
bool objects__find_next(const char *name, struct definition *out);

/* Finds the first definition of the function in all objects but this library. False if there is none. */
bool objects__find_function(const char *name, struct definition *out);

/* Whether an object in front of this library defines the function: then that is the one that is called. */
bool objects__is_preceded(const char *name);

/* The object's own definition of the function. */
bool object__defines(const struct object *object, const char *name, struct definition *out);

/* Whether it has the function from elsewhere. */
bool object__imports(const struct object *object, const char *name);

/* Whether the dynamic linker looks into the object itself first (-Bsymbolic). */
bool object__is_symbolic(const struct object *object);

/* Returns whether an object has DT_RPATH, which counts for the libraries that it loads as well. Not within
 * objects__hold(). */
bool objects__pass_on_search_path(void);

/* Whether the program has libraries audit the dynamic linker (DT_AUDIT, DT_DEPAUDIT). */
bool objects__program_names_auditors(void);

/* Whether libraries are searched for it at places of its own. */
bool object__has_search_path(const struct object *object);

typedef void (*object_function_fn)(void *context, const char *name,
				   const struct definition *definition);

/* Calls @fn with each function that others can call by its name. */
void object__each_function(const struct object *object, object_function_fn fn, void *context);

/* @is_lazy: the slot may still lead to the dynamic linker. */
typedef void (*object_slot_fn)(void *context, const char *name, __u64 *slot, bool is_lazy);

/* Calls @fn with each word of the object that has the address of a symbol. */
void object__each_slot(const struct object *object, object_slot_fn fn, void *context);

/* Where an object is mapped. */
struct object_span {
	__u64 start, end;
	__u64 protected_start,
		protected_end; /* pages that cannot be written when it has been relocated */
	__u64 dynamic;
};

/* The object that has @address. */
bool objects__span(__u64 address, struct object_span *out);

/* As objects__find_function(), for variables. Returns the address, or NULL if there is none. */
void *objects__find(const char *name);

/* An address in the code of the dynamic linker; 0 where it is not a library of its own (musl), which does not
 * unload anything either. */
__u64 objects__linker_code(void);

/* How many objects were unloaded so far. */
__u64 objects__unloaded(void);

struct objects_changes {
	__u64 n_loaded, n_unloaded; /* so far; a load that fails counts as both */
};

/* @changes: NULL where they are not known. */
typedef void (*objects_fn)(void *context, const struct objects_changes *changes);

/*
 * Calls @fn, meanwhile no object is put into the list or unmapped; in musl, which unmaps what could not be loaded only, one
 * may be. @fn must neither wait nor allocate: it has a lock of the dynamic linker.
 */
void objects__hold(objects_fn fn, void *context);

#endif
