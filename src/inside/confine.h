/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Obeys the filters by which the target forbids itself system calls (seccomp(2)): a forbidden call
 * would kill it, or raise a signal for the target's own handler. So this library stops making
 * these calls, and counts what it loses by that.
 */
#ifndef ALLOCPROF_INSIDE_CONFINE_H
#define ALLOCPROF_INSIDE_CONFINE_H

#include <stdbool.h>

#include "sys.h"

/* To be called before the target enters strict mode. Returns the limits until then, which the
 * caller restores if the target's call fails. */
struct sys_limits confine__strictly(void);

/* Does the same for a filter. @program is the address of a struct sock_fprog, as the target passes
 * it, and may be invalid. @child: the result of process__child(). */
struct sys_limits confine__by_filter(unsigned long program, __u32 child);

void confine__take_back(const struct sys_limits *before);

#endif
