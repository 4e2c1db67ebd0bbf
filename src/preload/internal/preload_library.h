/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef ALLOCPROF_PRELOAD_LIBRARY_H
#define ALLOCPROF_PRELOAD_LIBRARY_H

#include <limits.h>

struct error;

/* The path of the library that is preloaded. It is found from where this program's file is, and from nothing in the
 * environment, which may be another user's. -ENOENT with @error set. */
int preload_library__find(char path[PATH_MAX], struct error *error);

#endif
