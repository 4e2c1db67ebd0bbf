/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Detects runtimes that allocate from memory which they map themselves, so that probes of malloc
 * do not see it. CPython's arenas serve requests of up to 512 bytes, which most of its objects
 * are, unless PYTHONMALLOC=malloc is set. Go's heap serves all that Go code allocates; C code that
 * the program calls, by cgo, calls malloc. Other runtimes are recognised by the names of their
 * files.
 */
#ifndef ALLOCPROF_RUNTIMES_H
#define ALLOCPROF_RUNTIMES_H

#include <sys/types.h>

#include "mapped_file.h"

struct runtimes;
struct mapped_file;
struct mapping_event;
struct parser;

/* Returns NULL if there is no memory. @parser reads the files, and stays the caller's. */
struct runtimes *runtimes__new(const struct file_identifier *identifier, struct parser *parser);
void runtimes__free(struct runtimes *runtimes);

/* Handles an executable mapping of a followed process: checks whether the file is a runtime's and,
 * if it is CPython, whether the process uses arenas. */
void runtimes__notice_mapping(struct runtimes *runtimes, const struct mapping_event *event);
/* Does the same for a file that a process has mapped or will map. */
void runtimes__notice_file(struct runtimes *runtimes, const struct mapped_file *mapped);
/* Does the same for all current mappings of process @pid. */
void runtimes__scan_process(struct runtimes *runtimes, pid_t pid);
/* Checks processes again whose environment was not there yet. To be called often; @now_ns of
 * CLOCK_MONOTONIC. */
void runtimes__attend(struct runtimes *runtimes, __u64 now_ns);

/* Returns a line "RUNTIME PATH" for each runtime found, with the first file of it: python (in a
 * process that uses arenas), go, java, erlang, dotnet, javascript, php, ruby. NULL if there is
 * none. */
const char *runtimes__own_heaps(const struct runtimes *runtimes);

#endif
