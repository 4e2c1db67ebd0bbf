/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Functions that programs call and that a compiler cannot write: entries_<processor>.c. A stub has own__enter() count the call, and
 * goes on to the function unless own__enter() has made the call itself. A compiler that sees the function's code lets its callers keep
 * values in each register that this code leaves alone, and align the stack as that code needs it: so all registers are restored but
 * that of the result, and the library's code, which has general registers only, gets an aligned stack.
 */
#ifndef ALLOCPROF_INSIDE_ENTRIES_H
#define ALLOCPROF_INSIDE_ENTRIES_H

#include <linux/types.h>
#include <stdbool.h>

#include "live.h"

/* Expands to the symbol of a function, which the host build renames. */
#define TEXT_OF(name) #name
#define NAME_OF(name) TEXT_OF(name)

/* A stub keeps this of a call in its frame: arguments, and the result where it has one already. */
struct own_frame {
	__u64 arguments[6];
	struct live_mark mark;
	__u64 result;
};

_Static_assert(sizeof(struct live_mark) == 8 && sizeof(struct own_frame) == 64,
	       "stubs have that room");

/* Counts the call of the function @number. Returns whether it has made the call as well: then the
 * result is stored. */
bool own__enter(__u32 number, struct own_frame *own, const __u64 *frame);

/* Returns the function to which syscall() jumps, with the registers and the stack of its caller:
 * the stack may not hold the last argument, and the called function may return twice, so no
 * arguments are copied. */
void *find_syscall(long number, long a);

#endif
