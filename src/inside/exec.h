/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Functions that execute programs: each names this library to what it executes, if that can be measured.
 * system(3) and its kin execute a shell beneath such a function, and LD_PRELOAD is shown for as long. */
#ifndef ALLOCPROF_INSIDE_EXEC_H
#define ALLOCPROF_INSIDE_EXEC_H

#include <stdbool.h>

/* syscall(2) of execve or execveat. */
long exec__by_number(long number, long a, long b, long c, long d, long e);

/*
 * system(3), popen(3) and wordexp(3) execute with the process's own environment, by functions inside of the C library. While they
 * run, LD_PRELOAD is in it.
 */

/* Puts the library @name, in @directory, into the process's environment, unless another thread has done so. Returns whether
 * shown__end() must be called when the function has returned. */
bool shown__begin(const char *directory, const char *name);

/* Removes it, unless another thread still needs it. */
void shown__end(void);

/* In a forked child: the threads that needed it are the parent's. */
void shown__forked(void);

#endif
