/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * System calls that the target forbids itself, by seccomp(2): one that is forbidden would end it, or be seen by a
 * handler of its own. So this library makes none of these any more, and what needs them is lost and counted as such.
 */
#ifndef ALLOCPROF_INSIDE_CONFINE_H
#define ALLOCPROF_INSIDE_CONFINE_H

#include <stdbool.h>

#include "sys.h"

/* To be called before the target confines itself: what is permitted until then, to be given back where that fails. */
struct sys_limits confine__strictly(void);

/* The same for a filter, at the address of a struct sock_fprog, which may not be one. @child: process__child(). */
struct sys_limits confine__by_filter(unsigned long program, __u32 child);

void confine__take_back(const struct sys_limits *before);

#endif
