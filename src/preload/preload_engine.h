/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The engine that preloads a library into processes (docs/inside.md). It needs no privileges. */
#ifndef ALLOCPROF_PRELOAD_ENGINE_H
#define ALLOCPROF_PRELOAD_ENGINE_H

#include "engine.h"

extern const struct engine_operations preload_engine;

/* Finds the library to preload. Writes its path to @path, of PATH_MAX bytes, unless that is NULL. Returns 0, or
 * -ENOENT with @error set. */
int preload_engine__find_library(char *path, struct error *error);

#endif
