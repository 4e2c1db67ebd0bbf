/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Tells code of Swift's async functions whose frames have their context. */
#ifndef ALLOCPROF_INSIDE_ASYNC_CODE_H
#define ALLOCPROF_INSIDE_ASYNC_CODE_H

#include <linux/types.h>
#include <stdbool.h>

#include "code.h"
#include "frame_rules.h"

/* The process has a library with Swift's tasks. */
extern bool async_is_there __attribute__((visibility("hidden")));

/* Looks for that library among the loaded objects. To be called within objects__hold(). */
void async_code__look(void);

/* Returns whether @address, for which the rule says that the frame pointer is set, is in such a function. Those of that library
 * itself do not count: what it has in C++ has the contexts of others, which it will resume. */
bool async_code__has(struct frame_work *work, __u64 address, const struct code_range *range);

#endif
