/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Detects CPython's arenas: it serves requests of up to 512 bytes, most of its objects, from memory
 * that it maps itself, unless PYTHONMALLOC=malloc is set. Probes of malloc do not see these. */
#ifndef ALLOCPROF_CPYTHON_H
#define ALLOCPROF_CPYTHON_H

#include <sys/types.h>

#include "file_identity.h"

struct cpython;
struct mapped_file;
struct mapping_event;
struct parser;

/* NULL without memory. @parser reads the files, and stays the caller's. */
struct cpython *cpython__new(const struct file_identifier *identifier, struct parser *parser);
void cpython__free(struct cpython *cpython);

/* Handles an executable mapping of a target's process: checks whether the file is CPython, and
 * whether that process uses arenas. */
void cpython__notice_mapping(struct cpython *cpython, const struct mapping_event *event);
/* The same for a file that a process has mapped, or will. */
void cpython__notice_file(struct cpython *cpython, const struct mapped_file *mapped);
/* The same for all current mappings of process @pid. */
void cpython__scan_process(struct cpython *cpython, pid_t pid);
/* Checks processes again whose environment was not there yet. To be called often; @now_ns of
 * CLOCK_MONOTONIC. */
void cpython__attend(struct cpython *cpython, __u64 now_ns);

/* The first interpreter found in a process that uses arenas, or NULL. */
const char *cpython__arenas(const struct cpython *cpython);

#endif
