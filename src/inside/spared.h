/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The mappings that this library has made. A program that gives back or changes whatever it finds mapped (all that is shared, all
 * that was not there when it began) does so around them. No locks.
 */
#ifndef ALLOCPROF_INSIDE_SPARED_H
#define ALLOCPROF_INSIDE_SPARED_H

#include <linux/types.h>
#include <stdbool.h>

/* To be called when memory has been mapped, and before it is unmapped. Mappings for which there is no room are not spared. */
void spared__add(__u64 start, __u64 size);
void spared__remove(__u64 start);

/* No mapping is spared any more. */
void spared__end(void);

bool spared__overlaps(__u64 start, __u64 size);

/* Does to a range of memory what the target asked for; 0, or -1 with errno. */
typedef int (*spared_fn)(void *context, __u64 start, __u64 size);

/* Calls @fn with each part of the range in which there is none of these mappings; 0, or what @fn returns first that is not. */
int spared__around(__u64 start, __u64 size, spared_fn fn, void *context);

#endif
