/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Refuses binary translators (DBI). They copy a probe's breakpoint into translated code, where the
 * kernel does not know it, so that the target dies of SIGTRAP. */
#ifndef ALLOCPROF_TRANSLATOR_H
#define ALLOCPROF_TRANSLATOR_H

#include <stdbool.h>

struct error;

/* Returns whether the program at @path has the name of a binary translator. */
bool translator__is_one(const char *path);

/* Returns 0, or -ENOTSUP with @error set if the program at @path has the name of a binary
 * translator. */
int translator__refuse(const char *path, struct error *error);

/* Does the same for the program of process @pid. Returns 0 if that is unknown. */
int translator__refuse_process(int pid, struct error *error);

/* Returns 0, or -EBUSY with @error set if a process that runs such a program has mapped the file
 * @fd: breakpoints in the file would kill it. @path is the file's path, for the message. Processes
 * whose program cannot be read are ignored. */
int translator__refuse_mapped(int fd, const char *path, struct error *error);

#endif
