/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The stubs to which words lead, and the functions to which the stubs go on: stub number n counts a call of
 * own_functions.list[n] (own_calls.c). */
#ifndef ALLOCPROF_INSIDE_STUBS_H
#define ALLOCPROF_INSIDE_STUBS_H

#include <linux/types.h>
#include <stdbool.h>

#include "inside_abi.h"

struct interface_function;

#define OWN_FUNCTIONS INSIDE_STUBS

struct own_function {
	void *address;
	__u64 size; /* bytes of code; 0 if the symbol does not say */
	/* NULL: the function's name resembles those of the table, and nothing else is known of it. */
	const struct interface_function *row;
	/* The function that makes this one's calls in a process that ran already when the library came: no exception
	 * may pass the library's frames there, whose unwinder does not know them. It is this function; or, if
	 * this one may throw, that of the same allocator which returns NULL instead. NULL: there is none. */
	const struct own_function *returning;
};

struct own_functions {
	__u32 n;
	__u32 n_allocating; /* so many of them are an allocator's; the others are only counted (counted.h) */
	struct own_function list[OWN_FUNCTIONS];
};

extern struct own_functions own_functions __attribute__((visibility("hidden")));

/* allocprof finds the stubs by this symbol. */
extern const char allocprof_stubs[] __attribute__((visibility("protected")));

static inline __u64 stub__address(__u32 number)
{
	return (__u64)allocprof_stubs + number * INSIDE_STUB_BYTES;
}

/* Returns the number of the stub for the function; OWN_FUNCTIONS: there is none. */
__u32 stubs__find(const void *address, const struct interface_function *row);

/* Returns the address of a stub for the function, which is added if there is none; 0: there is no room. Threads may do so at the same time: until a function's stub is
 * used, nobody minds what the list has of it. @size: as own_function.size. */
__u64 stubs__lead_to(const void *address, __u64 size, const struct interface_function *row);

/* Adds a function of which calls come to a stub. Returns its number; OWN_FUNCTIONS: there is no room, which is a gap. */
__u32 stubs__add(const void *address, __u64 size, const struct interface_function *row);

/* Returns the function to which the stub at @address goes on; NULL if no stub is there. */
const struct own_function *stubs__function_at(__u64 address);

/* To be called for a function that was put into the list otherwise. */
void stubs__widen(const struct own_function *function);

/* Returns false if the return address is in none of the functions, as of nearly all calls. */
bool stubs__may_have(__u64 return_address);

#endif
