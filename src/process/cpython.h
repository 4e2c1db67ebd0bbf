/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * CPython's own arenas: it serves requests of up to 512 bytes, which most of its objects are, from memory
 * that it maps itself, unless its environment has PYTHONMALLOC=malloc. No malloc sees them.
 */
#ifndef ALLOCPROF_CPYTHON_H
#define ALLOCPROF_CPYTHON_H

#include <sys/types.h>

#include "file_identity.h"

struct cpython;
struct mapping_event;

/* NULL without memory. */
struct cpython *cpython__new(const struct file_asker *asker);
void cpython__free(struct cpython *cpython);

/* A file that a process of the target has mapped as code: is it an interpreter, or one's library, and
 * does that process use arenas? */
void cpython__notice_mapping(struct cpython *cpython, const struct mapping_event *event);
/* The same of all that process @pid has mapped now. */
void cpython__scan_process(struct cpython *cpython, pid_t pid);
/* Looks again at processes whose environment was not there yet. To be called often; @now_ns of
 * CLOCK_MONOTONIC. */
void cpython__attend(struct cpython *cpython, __u64 now_ns);

/* The first file that was found in a process which uses arenas, or NULL. */
const char *cpython__arenas(const struct cpython *cpython);

#endif
