/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Finds the objects that the dynamic linker has loaded, and their symbols. dlsym(3) is not used:
 * it may allocate, it takes a lock, and before glibc 2.34 it is in a library that a program may
 * not have. Also finds the next definitions of the interposed functions, which are those behind
 * this library's in the search order.
 */
#ifndef ALLOCPROF_INSIDE_OBJECTS_H
#define ALLOCPROF_INSIDE_OBJECTS_H

#include <elf.h>
#include <linux/types.h>
#include <stdbool.h>

#include "sys.h"

/* The part of struct link_map that debuggers rely on; glibc and musl have the same. */
struct object {
	__u64 bias;
	char *path;
	Elf64_Dyn *dynamic;
	struct object *next, *previous;
};

/* objects__first() returns the first object in the order in which names are searched,
 * objects__own() this library; NULL if the list is not found. Once there may be threads, the list
 * may be walked only within objects__hold(). */
struct object *objects__first(void);
struct object *objects__own(void);

/* Returns whether the object is in the list. */
bool object__is_listed(const struct object *wanted);

/* Sets where the linker's list is, for a library that the dynamic linker has not loaded.
 * objects__own() is NULL then. */
void objects__set_linker(__u64 debug);

/* Returns false while the dynamic linker is between two changes of its list. */
bool objects__are_consistent(void);

/* Waits until the dynamic linker's lock is free. It stays free while the caller keeps all other
 * threads stopped. */
void objects__await_lock(void);

/* This library as an object, although it is in no list. */
extern const struct object own_object __attribute__((visibility("hidden")));

/* Returns the address that an entry of the object's .dynamic holds. glibc relocates these addresses
 * where .dynamic can be written; musl and the vDSO do not, and nobody does in an object that no
 * dynamic linker has loaded. */
const void *object__address(const struct object *object, __u64 value);

/* Returns the path from which this library was loaded, or NULL if the dynamic linker's list is not
 * found. */
const char *objects__own_path(void);

struct definition {
	void *address;
	__u64 size; /* bytes of code; 0 if the symbol does not say */
	const struct object *object;
};

/* Finds the object's own definition of the variable. Returns false if it has none. */
bool object__defines_variable(const struct object *object, const char *name,
			      struct definition *out);

/* Finds the first definition of the function in the objects behind this library, or in all objects
 * if the dynamic linker has not loaded it. Returns false if there is none. */
bool objects__find_next(const char *name, struct definition *out);

/* Finds the first definition of the function in all objects but this library. Returns false if
 * there is none. */
bool objects__find_function(const char *name, struct definition *out);

/* Returns whether an object in front of this library defines the function, so that calls go to
 * that definition. */
bool objects__is_preceded(const char *name);

/* Finds the object's own definition of the function. Returns false if it has none. */
bool object__defines(const struct object *object, const char *name, struct definition *out);

/* Returns whether the object imports the function. */
bool object__imports(const struct object *object, const char *name);

/* Returns whether the dynamic linker searches the object itself first for its symbols
 * (-Bsymbolic). */
bool object__is_symbolic(const struct object *object);

/* Returns whether an object has DT_RPATH, which also applies to the libraries that the object
 * loads. Must not be called within objects__hold(). */
bool objects__pass_on_search_path(void);

/* Returns whether the program names libraries that audit the dynamic linker (DT_AUDIT,
 * DT_DEPAUDIT). */
bool objects__program_names_auditors(void);

/* Returns whether the object names directories in which its libraries are searched (DT_RPATH,
 * DT_RUNPATH). */
bool object__has_search_path(const struct object *object);

typedef void (*object_function_fn)(void *context, const char *name,
				   const struct definition *definition);

/* Calls @fn with each function that the object exports. */
void object__each_function(const struct object *object, object_function_fn fn, void *context);

/* @is_lazy: the slot may still lead to the dynamic linker, which binds it at the first call. */
typedef void (*object_slot_fn)(void *context, const char *name, __u64 *slot, bool is_lazy);

/* Returns whether a slot matters, judging by the value that it holds: reading its name takes longer. */
typedef bool (*object_slot_filter_fn)(void *context, const __u64 *slot, bool is_lazy);

/* Calls @fn with each word of the object that holds the address of a symbol, if @matters returns true
 * for it or is NULL. */
void object__each_slot(const struct object *object, object_slot_filter_fn matters,
		       object_slot_fn fn, void *context);

/* Starts or stops to keep what is read of the objects' symbol tables for later look-ups. Meanwhile no
 * object may come or go: the caller has stopped all other threads. */
void objects__keep_symbols(bool keeps);

/* The addresses at which an object is mapped. */
struct object_span {
	__u64 start, end;
	__u64 protected_start,
		/* End of the pages that are read-only once the object is relocated (RELRO). */
		protected_end;
	__u64 dynamic;
};

/* Finds the object that contains @address. */
bool objects__span(__u64 address, struct object_span *out);

/* Returns whether the object can write the @size bytes at the address, be it only until it is relocated. */
bool object__writes(const struct object *object, __u64 address, __u64 size);

/* Returns whether the object at @span has code that may lead to the address: four bytes that are the distance to it;
 * or data that may: a word with that value. */
bool objects__lead_to(const struct object_span *span, __u64 address);

/* @filled_end: behind it all words were 0 when the object was loaded. */
typedef void (*object_data_fn)(void *context, __u64 *start, __u64 *filled_end, __u64 *end);

/* Calls @fn with each range of words that the relocated object at @span can write. */
void objects__each_data(const struct object_span *span, object_data_fn fn, void *context);

/* Works like objects__find_function(), for variables. Returns the address, or NULL if there is
 * none. */
void *objects__find(const char *name);

/* Returns an address in the code of the dynamic linker; 0 if it is not a separate library (musl),
 * in which case it unloads nothing either. */
__u64 objects__linker_code(void);

/* Returns how many objects the dynamic linker has unloaded so far. */
__u64 objects__unloaded(void);

struct objects_changes {
	__u64 n_loaded, n_unloaded; /* so far; an object that fails to load counts in both */
};

/* @changes is NULL if the numbers are not known. */
typedef void (*objects_fn)(void *context, const struct objects_changes *changes);

/*
 * Calls @fn while no object is added to the list or unmapped. (musl may unmap an object that it
 * fails to load.) @fn must neither wait nor allocate, since a lock of the dynamic linker is held.
 */
void objects__hold(objects_fn fn, void *context);

/* The functions that this library interposes, and their next definitions. */

/* X(name, function under which its calls are counted). */
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
	X(dlclose)                                                                                 \
	X(pthread_setname_np)                                                                      \
	X(mmap)                                                                                    \
	X(mmap64)                                                                                  \
	X(munmap)                                                                                  \
	X(mremap)                                                                                  \
	X(mprotect)                                                                                \
	X(madvise)                                                                                 \
	X(getauxval)

#define NEXT_NUMBER(name, ...) NEXT_##name,
enum next {
	NEXT_ALLOCATOR(NEXT_NUMBER) NEXT_ALLOCATORS,
	NEXT_BEFORE_OTHERS = NEXT_ALLOCATORS - 1,
	NEXT_OTHERS(NEXT_NUMBER) NEXT_FUNCTIONS,
};
#undef NEXT_NUMBER

/* NULL: the function has not been looked up, or there is none. */
extern void *next_functions[NEXT_FUNCTIONS] __attribute__((visibility("hidden")));

/* Returns whether the program has a realloc of its own, which the C library calls. Set when
 * realloc is looked up. */
extern bool next_realloc_is_preceded __attribute__((visibility("hidden")));

/* Looks up the next definition. Returns NULL if there is none. */
void *next__find(enum next which);

static inline void *next__get(enum next which)
{
	void *function = next_functions[which];

	return likely(function) ? function : next__find(which);
}

/* Asks the C library, which the kernel has told it: a system call might meet a filter of the program's. */
__u64 objects__page_bytes(void);

/* Returns how many bytes a page of memory has. */
static inline __u64 page_bytes(void)
{
	return PROCESSOR_PAGE_BYTES ?: objects__page_bytes();
}

/* The range of addresses that contains the code of the allocator's functions. */
struct next_bodies {
	__u64 start, size;
};

extern struct next_bodies next_bodies __attribute__((visibility("hidden")));

/* Returns whether the return address is in one of the allocator's functions. */
bool next__is_body(__u64 return_address);

/* Looks up the next definitions of all functions of the allocator. */
void next__prepare(void);

#endif
