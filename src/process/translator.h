/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Refuses binary translators (DBI). They copy a probe's breakpoint into translated code, where the
 * kernel does not know it, so that the target dies of SIGTRAP. */
#ifndef ALLOCPROF_TRANSLATOR_H
#define ALLOCPROF_TRANSLATOR_H

#include <stdbool.h>

struct error;

/* Whether the program at @path has the name of a binary translator. */
bool translator__is_one(const char *path);

/* 0, or -ENOTSUP with @error set if the program at @path has the name of a binary translator. */
int translator__refuse(const char *path, struct error *error);

/* The same for the program of process @pid; 0 if that is unknown. */
int translator__refuse_process(int pid, struct error *error);

/* 0, or -EBUSY with @error set if a process that runs such a program has the file @fd mapped: breakpoints in the file
 * would end it. @path: the file's, for the message. Of a process whose program cannot be read nothing is known. */
int translator__refuse_mapped(int fd, const char *path, struct error *error);

#endif
