/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The objects that the dynamic linker has loaded, and their symbols. dlsym(3) is not used: it may
 * allocate, it takes a lock, and before glibc 2.34 it is in a library that a program may not have.
 * Also the next definitions of the interposed functions, behind this library's.
 */
#ifndef ALLOCPROF_INSIDE_OBJECTS_H
#define ALLOCPROF_INSIDE_OBJECTS_H

#include <elf.h>
#include <linux/types.h>
#include <stdbool.h>

#include "sys.h"

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

/* Where the list is, for a library that the dynamic linker has not loaded: then there is no objects__own(). */
void objects__set_linker(__u64 debug);

/* Whether the dynamic linker is between two changes of its list. */
bool objects__are_consistent(void);

/* Waits until the dynamic linker's lock is free. While all other threads are stopped it stays so. */
void objects__await_lock(void);

/* This library as an object that is in no list. */
extern const struct object own_object __attribute__((visibility("hidden")));

/* An address in the object's dynamic section: glibc relocates them where that can be written, musl and the vDSO do not, nor is it
 * done in an object that no dynamic linker has loaded. */
const void *object__address(const struct object *object, __u64 value);

/* The path by which this library was loaded, or NULL where the dynamic linker's list is not found. */
const char *objects__own_path(void);

struct definition {
	void *address;
	__u64 size; /* bytes of code; 0 if the symbol does not say */
	const struct object *object;
};

/* The first definition of the function in the objects behind this library, or in all where it was not loaded. False if there is
 * none. */
bool objects__find_next(const char *name, struct definition *out);

/* Finds the first definition of the function in all objects but this library. False if there is none. */
bool objects__find_function(const char *name, struct definition *out);

/* Whether an object in front of this library defines the function: then that is the one that is called. */
bool objects__is_preceded(const char *name);

/* The object's own definition of the function. */
bool object__defines(const struct object *object, const char *name, struct definition *out);

/* Whether the object imports the function. */
bool object__imports(const struct object *object, const char *name);

/* Whether the dynamic linker looks into the object itself first (-Bsymbolic). */
bool object__is_symbolic(const struct object *object);

/* Returns whether an object has DT_RPATH, which counts for the libraries that it loads as well. Not within
 * objects__hold(). */
bool objects__pass_on_search_path(void);

/* Whether the program has libraries audit the dynamic linker (DT_AUDIT, DT_DEPAUDIT). */
bool objects__program_names_auditors(void);

/* Whether libraries are searched for it in directories of its own. */
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

/* objects__find_function() for variables. Returns the address, or NULL if there is none. */
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

/* The functions that this library stands in front of: where their next definitions are. */

/* X(name, the function as which its calls count). */
#define NEXT_ALLOCATOR(X)                                                                          \
	X(malloc, AP_MALLOC)                                                                       \
	X(calloc, AP_CALLOC)                                                                       \
	X(realloc, AP_REALLOC)                                                                     \
	X(reallocarray, AP_REALLOCARRAY)                                                           \
	X(posix_memalign, AP_POSIX_MEMALIGN)                                                       \
	X(aligned_alloc, AP_ALIGNED_ALLOC)                                                         \
	X(memalign, AP_MEMALIGN)                                                                   \
	X(valloc, AP_VALLOC)                                                                       \
	X(pvalloc, AP_PVALLOC)                                                                     \
	X(free, AP_FREE)                                                                           \
	X(free_sized, AP_FREE_SIZED)                                                               \
	X(free_aligned_sized, AP_FREE_SIZED)

#define NEXT_OTHERS(X)                                                                             \
	X(execve)                                                                                  \
	X(execvpe)                                                                                 \
	X(execveat)                                                                                \
	X(fexecve)                                                                                 \
	X(posix_spawn)                                                                             \
	X(posix_spawnp)                                                                            \
	X(system)                                                                                  \
	X(popen)                                                                                   \
	X(wordexp)                                                                                 \
	X(fork)                                                                                    \
	X(_Fork)                                                                                   \
	X(_exit)                                                                                   \
	X(prctl)                                                                                   \
	X(syscall)                                                                                 \
	X(dlopen)                                                                                  \
	X(dlmopen)                                                                                 \
	X(pthread_setname_np)                                                                      \
	X(mmap)                                                                                    \
	X(mmap64)                                                                                  \
	X(munmap)                                                                                  \
	X(mremap)                                                                                  \
	X(mprotect)                                                                                \
	X(madvise)

#define NEXT_NUMBER(name, ...) NEXT_##name,
enum next {
	NEXT_ALLOCATOR(NEXT_NUMBER) NEXT_ALLOCATORS,
	NEXT_BEFORE_OTHERS = NEXT_ALLOCATORS - 1,
	NEXT_OTHERS(NEXT_NUMBER) NEXT_FUNCTIONS,
};
#undef NEXT_NUMBER

/* NULL: not looked up, or there is none. */
extern void *next_functions[NEXT_FUNCTIONS] __attribute__((visibility("hidden")));

/* Since realloc was looked up: whether the program has one of its own, which the C library calls. */
extern bool next_realloc_is_preceded __attribute__((visibility("hidden")));

/* Looks the function up; NULL if there is none. */
void *next__find(enum next which);

static inline void *next__get(enum next which)
{
	void *function = next_functions[which];

	return likely(function) ? function : next__find(which);
}

/* Code of the allocator's functions lies in here. */
struct next_bodies {
	__u64 start, size;
};

extern struct next_bodies next_bodies __attribute__((visibility("hidden")));

/* Whether the return address lies in one of the allocator's functions. */
bool next__is_body(__u64 return_address);

/* Looks all functions of the allocator up. */
void next__prepare(void);

#endif
