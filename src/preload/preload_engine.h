/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The engine of a library that is preloaded into the processes, docs/inside.md. It needs no privileges, and
 * measures launched commands only. */
#ifndef ALLOCPROF_PRELOAD_ENGINE_H
#define ALLOCPROF_PRELOAD_ENGINE_H

#include "engine.h"

extern const struct engine_operations preload_engine;

/* Whether the library is there that is preloaded: 0, or -ENOENT with @error set. */
int preload_engine__find_library(struct error *error);

#endif
