/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The tables of functions by which the allocators of a definition with a domain are called (struct inside_domain): of
 * CPython, whose code calls its allocators by these words only, and which lets programs and itself replace them. A
 * table's words get the addresses of stubs (own.h). The context, the first argument, is what it was.
 */
#ifndef ALLOCPROF_INSIDE_DOMAINS_H
#define ALLOCPROF_INSIDE_DOMAINS_H

#include <linux/types.h>
#include <stdbool.h>

#include "objects.h"

struct interface_function;
struct inside_all_counted;

/* Takes the domains from the header of the measurement. */
void domains__begin(void);

extern __u32 domains_n __attribute__((visibility("hidden")));

/* Returns whether there are any. */
static inline bool domains__any(void)
{
	return domains_n;
}

/* Waits until the locks are free that objects hold while they copy or change their tables. They stay free while the caller
 * keeps all other threads stopped. */
void domains__await_locks(const struct inside_all_counted *counted);

/* Looks for tables in a relocated object, and changes their words. */
void domains__look(const struct object *object, const struct object_span *span);

/* Forgets tables of objects that are not in the linker's list any more. */
void domains__forget_unloaded(void);

/* Between these two an object may be unmapped: only the program's own table is looked at. */
void domains__begin_unload(void);
void domains__end_unload(void);
/* To be called in a forked child, in which no other thread unloads anything. */
void domains__forked(void);

/* To be called for a call of one of the stubs, whose row is @row. Returns false if no domain has the row, since the
 * stub is of an earlier measurement. */
bool domains__called(const struct interface_function *row, struct interface_function *out);

/* To be called when that call has returned. @was_handed_on: it has called a stub of its domain again. */
void domains__returned(const struct interface_function *row, bool was_handed_on);

/* To be called for each other call that counts. Where its caller has tables, their words may lead elsewhere by now. */
void domains__check(__u64 return_address);

/* To be called when the measurement is left, while other threads are stopped: words that lead to a stub get the
 * address of its function, also copies of them in the objects' data. Returns how many led elsewhere. */
__u64 domains__restore(void);

#endif
