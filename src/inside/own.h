/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Functions of allocators beside those of the C library: operator new, mallocx, mi_malloc. This library does not define
 * them, since programs ask whether they are there. Instead the words in which other objects have their addresses get
 * that of a stub here, which counts the call and goes on to the function.
 */
#ifndef ALLOCPROF_INSIDE_OWN_H
#define ALLOCPROF_INSIDE_OWN_H

#include <linux/types.h>
#include <stdbool.h>

struct interface_function;

/* Number of stubs, and so of functions that can be followed. */
#define OWN_FUNCTIONS 512

struct own_function {
	void *address;
	__u64 size; /* bytes of code; 0 if the symbol does not say */
	/* NULL: its name resembles those of the table, and nothing else is known. */
	const struct interface_function *row;
};

struct own_functions {
	__u32 n;
	struct own_function list[OWN_FUNCTIONS];
};

extern struct own_functions own_functions __attribute__((visibility("hidden")));

/* Looks for allocators among the objects, and for words that have addresses of their functions. */
void own__update(void);

/* Objects are being loaded, by one more thread: they may be in the list before their words have values. */
void own__begin_load(void);

/* A load that own__begin_load() announced has ended. */
void own__end_load(void);

/* Objects may be loaded that own__update() is not called for. */
void own__await_end(void);

/* The process ends. Words that are found now may have been used, which is a gap. */
void own__end(void);

/* The measurement has ended, and the process goes on: no word is changed any more. */
void own__stop(void);

/* All libraries that the program begins with are there. */
void own__began(void);

/* Around a fork, in the parent: a child that is forked while another thread has the dynamic linker's lock would wait for it
 * for ever. */
void own__begin_fork(void);
void own__end_fork(void);

/* In a forked child: what another thread was doing is not finished. */
void own__forked(void);

/* Whether the return address lies in a public function of an allocator or in this library, which calls them. */
bool own__is_body(__u64 return_address);

/*
 * Returns whether @return_address is in an allocator's library and in none of its public functions. Public functions jump
 * to such code; the dynamic linker calls it, too, to run constructors, and so do threads that the library starts.
 */
bool own__is_inner(__u64 return_address);

#endif
