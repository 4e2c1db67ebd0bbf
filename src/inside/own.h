/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Counts calls of allocators' functions beside those of the C library: operator new, mallocx,
 * mi_malloc. This library does not define them, since programs test whether they exist. Instead it
 * changes the words in which other objects keep their addresses to that of a stub, which counts
 * the call and goes on to the function.
 */
#ifndef ALLOCPROF_INSIDE_OWN_H
#define ALLOCPROF_INSIDE_OWN_H

#include <linux/types.h>
#include <stdbool.h>

#include "inside_abi.h"

/* Looks for allocators among the loaded objects, and changes the words that hold addresses of
 * their functions. */
void own__update(void);

/* Takes over the functions of an allocator in the program, whose other functions are not looked for. Returns false if
 * the stubs lead to other functions already. */
bool own__take(const struct inside_function *functions, __u64 n);

/* Adds the functions whose calls come to a stub. */
void own__list(struct inside_redirections *to);

/* To be called when one more thread begins to load objects, which may be in the list before their
 * words have values. */
void own__begin_load(void);

/* To be called when the load that own__begin_load() announced has ended. */
void own__end_load(void);

/* To be called when objects may be loaded without a call of own__update(). */
void own__await_end(void);

/* To be called when the process ends. Words that are found only now may have been used uncounted,
 * which is reported as a gap. */
void own__end(void);

/* To be called when the measurement has ended and the process goes on: no word is changed any
 * more. */
void own__stop(void);

/* To be called when all libraries with which the program begins are loaded. */
void own__began(void);

/* To be called around a fork in the parent. A child that was forked while another thread had the
 * dynamic linker's lock would wait for that lock for ever. */
void own__begin_fork(void);
void own__end_fork(void);

/* To be called in a forked child: drops what other threads of the parent had not finished. */
void own__forked(void);

/* Returns whether the return address is in a public function of an allocator, or in this library,
 * which calls such functions. */
bool own__is_body(__u64 return_address);

/*
 * Returns whether @return_address is in an allocator's library and in none of its public functions. Public functions jump
 * to such code; the dynamic linker calls it, too, to run constructors, and so do threads that the library starts.
 */
bool own__is_inner(__u64 return_address);

#endif
